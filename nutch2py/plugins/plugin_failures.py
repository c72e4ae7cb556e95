"""What an exception of a plug-in does: the page it failed on is named and counted as failed, and the job goes on.

Whoever calls a plug-in catches what it raises and calls :func:`raise_plugin_error`, which gives it the plug-in's name
and the page's URL; a ``try`` that catches nothing costs nothing. The job that works on the page catches the
:class:`PluginError`, leaves the page as it was, and tells :class:`PluginFailureTracker`, which ends the job when too
many pages fail (``plugin.failures.share``, ``plugin.failures.minimum``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError, PluginFailuresError
from nutch2py.plugins.loading import plugin_id_of

PLUGIN_FAILURES_GROUP = "PluginFailures"
"""Counter group: pages on which a plug-in failed, by its id."""
PLUGIN_PAGES_COUNTER = "plugin_pages"
"""Begins the names of two counters of the group ``table``: pages for which map and reduce tasks asked plug-ins."""
_MAX_LOGGED_FAILURES = 10  # failures of a plug-in that a task names
_EARLY_CHECK_FACTOR = (
    10  # times the minimum: before so many pages a task is not ended, for rows of one host stand together
)
_MAX_REASON_LENGTH = 1000  # characters of an exception's text


class PluginError(NutchError):
    """A plug-in failed on a page. ``plugin_id``: its id; ``reason``: class and text of what it raised."""

    def __init__(self, plugin_id: str, url: str, reason: str) -> None:
        super().__init__(f"plug-in {plugin_id} failed on {url}: {reason}")
        self.plugin_id, self.url, self.reason = plugin_id, url, reason

    def for_page(self, url: str) -> PluginError:
        """Return the error of the page ``url``, which names what it was about: this one's URL is perhaps a link's."""
        if url == self.url:
            return self
        return PluginError(self.plugin_id, url, f"{self.reason}, at {self.url[:_MAX_REASON_LENGTH]}")


def describe_exception(error: Exception) -> str:
    """Return class and text of an exception, on one line."""
    return " ".join(f"{type(error).__name__}: {error}"[:_MAX_REASON_LENGTH].split())


def raise_plugin_error(plugin: object, url: str, error: Exception) -> NoReturn:
    """Raise a PluginError for what ``plugin`` raised on the page, or while it was shown the link, ``url``.

    A NutchError goes on as it is: it says itself what is wrong, and whether that is the page's matter or ends the job.
    So does a MemoryError: it is no one's fault that stands in line when memory runs out.
    """
    if isinstance(error, NutchError | MemoryError):
        raise error
    raise PluginError(plugin_id_of(plugin), url, describe_exception(error)) from error


class PluginFailureTracker:
    """The failures of one task. ``pages``: those for which plug-ins were asked so far; the task counts them up.

    ``count`` takes counter group, name, amount; ``say`` a line for the job's log; ``first`` the first failure of each
    plug-in, for the driver.
    """

    def __init__(
        self,
        conf: Configuration,
        count: Callable[[str, str, int], None],
        log: Callable[[str], None],
        on_first: Callable[[PluginError], None],
    ) -> None:
        self._limits = PluginFailureLimits(conf)
        self._count, self._log, self._on_first = count, log, on_first
        self._failed_pages: dict[str, int] = {}
        self._first_messages: dict[str, str] = {}
        self.pages = 0

    def record_exception(self, plugin: object, url: str, error: Exception) -> None:
        """Note what ``plugin`` raised on a page; raise what is no page's matter, as :func:`raise_plugin_error` does."""
        try:
            raise_plugin_error(plugin, url, error)
        except PluginError as failure:
            self.record(failure)

    def record(self, error: PluginError) -> None:
        """Name and count a page that failed; raise :class:`PluginFailuresError` when too many of many pages have."""
        plugin = error.plugin_id
        failed = self._failed_pages[plugin] = self._failed_pages.get(plugin, 0) + 1
        self._count(PLUGIN_FAILURES_GROUP, plugin, 1)
        if failed == 1:
            self._first_messages.setdefault(plugin, str(error))
            self._on_first(error)
        if failed <= _MAX_LOGGED_FAILURES:
            self._log(f"{error}{' (no further ones are named)' if failed == _MAX_LOGGED_FAILURES else ''}")
        if self.pages >= _EARLY_CHECK_FACTOR * self._limits.min_failures:
            self._limits.check(plugin, failed, self.pages, self._first_messages[plugin])


class PluginFailureLimits:
    """How many pages may fail: ``plugin.failures.share`` of them, and fewer than ``plugin.failures.minimum`` always."""

    def __init__(self, conf: Configuration) -> None:
        self.max_share = conf.get_float("plugin.failures.share", 0.5)
        self.min_failures = max(1, conf.get_int("plugin.failures.minimum", 100))

    def check(self, plugin_id: str, failed: int, pages: int, first_message: str) -> None:
        """Raise :class:`PluginFailuresError` when ``failed`` of ``pages`` are too many."""
        if failed >= self.min_failures and failed > self.max_share * pages:
            raise PluginFailuresError(
                f"plug-in {plugin_id} failed on {failed} of {pages} pages, which is over plugin.failures.share: "
                f"mend it, or take it out of plugin.includes{f'; first: {first_message}' if first_message else ''}"
            )

    def check_all(self, failed: Mapping[str, int], pages: int, first_messages: Mapping[str, str]) -> None:
        """Raise when a plug-in failed on too many pages of all tasks; ``first_messages``: by plug-in."""
        for plugin, amount in failed.items():
            self.check(plugin, amount, max(pages, amount), first_messages.get(plugin, ""))
