"""What an exception of a plug-in does: the page it failed on is named and counted as failed, and the job goes on.

Whoever calls a plug-in catches what it raises and calls :func:`blame`, which gives it the plug-in's name and the
page's URL; a ``try`` that catches nothing costs nothing. The job that works on the page catches the
:class:`PluginError`, leaves the page as it was, and tells :class:`PluginFailures`, which ends the job when too many
pages fail (``plugin.failures.share``, ``plugin.failures.minimum``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from nutch2py.conf import Configuration
from nutch2py.errors import NutchError, PluginFailuresError
from nutch2py.plugins import id_of

FAILURES = "PluginFailures"
"""Counter group: pages on which a plug-in failed, by its id."""
PAGES = "plugin_pages"
"""Begins the names of two counters of the group ``table``: pages for which map and reduce tasks asked plug-ins."""
_TOLD = 10  # failures of a plug-in that a task names
_EARLY = 10  # times the minimum: before so many pages a task is not ended, for rows of one host stand together
_LONGEST = 1000  # characters of an exception's text


class PluginError(NutchError):
    """A plug-in failed on a page. ``plugin``: its id; ``reason``: class and text of what it raised."""

    def __init__(self, plugin: str, url: str, reason: str) -> None:
        super().__init__(f"plug-in {plugin} failed on {url}: {reason}")
        self.plugin, self.url, self.reason = plugin, url, reason

    def of_page(self, url: str) -> PluginError:
        """Return the error of the page ``url``, which names what it was about: this one's URL is perhaps a link's."""
        if url == self.url:
            return self
        return PluginError(self.plugin, url, f"{self.reason}, at {self.url[:_LONGEST]}")


def reason_of(error: Exception) -> str:
    """Return class and text of an exception, on one line."""
    return " ".join(f"{type(error).__name__}: {error}"[:_LONGEST].split())


def blame(plugin: object, url: str, error: Exception) -> NoReturn:
    """Raise a PluginError for what ``plugin`` raised on the page, or while it was shown the link, ``url``.

    A NutchError goes on as it is: it says itself what is wrong, and whether that is the page's matter or ends the job.
    So does a MemoryError: it is no one's fault that stands in line when memory runs out.
    """
    if isinstance(error, NutchError | MemoryError):
        raise error
    raise PluginError(id_of(plugin), url, reason_of(error)) from error


class PluginFailures:
    """The failures of one task. ``pages``: those for which plug-ins were asked so far; the task counts them up.

    ``count`` takes counter group, name, amount; ``say`` a line for the job's log; ``first`` the first failure of each
    plug-in, for the driver.
    """

    def __init__(
        self,
        conf: Configuration,
        count: Callable[[str, str, int], None],
        say: Callable[[str], None],
        first: Callable[[PluginError], None],
    ) -> None:
        self._limits = Limits(conf)
        self._count, self._say, self._first = count, say, first
        self._failed: dict[str, int] = {}
        self._firsts: dict[str, str] = {}
        self.pages = 0

    def note_of(self, plugin: object, url: str, error: Exception) -> None:
        """Note what ``plugin`` raised on a page; raise what is no page's matter, as :func:`blame` does."""
        try:
            blame(plugin, url, error)
        except PluginError as failure:
            self.note(failure)

    def note(self, error: PluginError) -> None:
        """Name and count a page that failed; raise :class:`PluginFailuresError` when too many of many pages have."""
        plugin = error.plugin
        failed = self._failed[plugin] = self._failed.get(plugin, 0) + 1
        self._count(FAILURES, plugin, 1)
        if failed == 1:
            self._firsts.setdefault(plugin, str(error))
            self._first(error)
        if failed <= _TOLD:
            self._say(f"{error}{' (no further ones are named)' if failed == _TOLD else ''}")
        if self.pages >= _EARLY * self._limits.minimum:
            self._limits.check(plugin, failed, self.pages, self._firsts[plugin])


class Limits:
    """How many pages may fail: ``plugin.failures.share`` of them, and fewer than ``plugin.failures.minimum`` always."""

    def __init__(self, conf: Configuration) -> None:
        self.share = conf.get_float("plugin.failures.share", 0.5)
        self.minimum = max(1, conf.get_int("plugin.failures.minimum", 100))

    def check(self, plugin: str, failed: int, pages: int, first: str) -> None:
        """Raise :class:`PluginFailuresError` when ``failed`` of ``pages`` are too many."""
        if failed >= self.minimum and failed > self.share * pages:
            raise PluginFailuresError(
                f"plug-in {plugin} failed on {failed} of {pages} pages, which is over plugin.failures.share: "
                f"mend it, or take it out of plugin.includes{f'; first: {first}' if first else ''}"
            )

    def check_all(self, failed: Mapping[str, int], pages: int, firsts: Mapping[str, str]) -> None:
        """Raise when a plug-in failed on too many pages of all tasks; ``firsts``: the first failure by plug-in."""
        for plugin, amount in failed.items():
            self.check(plugin, amount, max(pages, amount), firsts.get(plugin, ""))
