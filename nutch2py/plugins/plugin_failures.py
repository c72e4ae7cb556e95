"""Failures of plug-ins: an exception fails the page on which it happened, and the job continues.

Callers run a plug-in in ``with PluginCall(plugin, url):``, which converts exceptions into a :class:`PluginError` with
the plug-in's id and the page's URL. The job that processes the page catches it, leaves the page unchanged, and passes
it to :class:`PluginFailureTracker`, which stops the job when too many pages fail (``plugin.failures.share``,
``plugin.failures.minimum``).
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
"""Prefix of two counters of the group ``table``: pages for which map and reduce tasks called plug-ins."""
_MAX_LOGGED_FAILURES = 10  # per plug-in and task
_EARLY_CHECK_FACTOR = 10  # a task fails only after this many times the minimum: rows of one host are adjacent
_MAX_REASON_LENGTH = 1000  # characters of an exception's text


class PluginError(NutchError):
    """A plug-in failed on a page. ``plugin_id``: its id; ``reason``: class and text of what it raised."""

    def __init__(self, plugin_id: str, url: str, reason: str) -> None:
        super().__init__(f"plug-in {plugin_id} failed on {url}: {reason}")
        self.plugin_id, self.url, self.reason = plugin_id, url, reason

    def for_page(self, url: str) -> PluginError:
        """Return the error for the page ``url``; the reason names this error's URL, which may be that of a link."""
        if url == self.url:
            return self
        return PluginError(self.plugin_id, url, f"{self.reason}, at {self.url[:_MAX_REASON_LENGTH]}")


def describe_exception(error: Exception) -> str:
    """Return class and text of an exception, on one line."""
    return " ".join(f"{type(error).__name__}: {error}"[:_MAX_REASON_LENGTH].split())


def raise_plugin_error(plugin: object, url: str, error: Exception) -> NoReturn:
    """Raise a PluginError for an exception of ``plugin`` on the page or link ``url``.

    For hot loops, where a ``try`` without an exception costs nothing; elsewhere use :class:`PluginCall`. A NutchError
    is raised unchanged: its class says whether it fails the page or the job. So is a MemoryError: the allocation that
    fails is not necessarily the cause.
    """
    if isinstance(error, NutchError | MemoryError):
        raise error
    raise PluginError(plugin_id_of(plugin), url, describe_exception(error)) from error


class PluginCall:
    """Context manager for a call of a plug-in on a page or link: see :func:`raise_plugin_error`."""

    __slots__ = ("_plugin", "_url")

    def __init__(self, plugin: object, url: str) -> None:
        self._plugin, self._url = plugin, url

    def __enter__(self) -> None:
        """Do nothing: only exceptions matter."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, NutchError | MemoryError):
            raise_plugin_error(self._plugin, self._url, error)


class PluginFailureTracker:
    """Counts the failures of one task. ``pages``: pages for which plug-ins were called; the task increments it.

    ``count`` receives counter group, name, amount; ``log`` a line for the job's log; ``on_first`` the first failure of
    each plug-in, for the driver.
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
        """Record an exception of ``plugin`` on a page; raise a NutchError or MemoryError again."""
        try:
            raise_plugin_error(plugin, url, error)
        except PluginError as failure:
            self.record(failure)

    def record(self, error: PluginError) -> None:
        """Log and count a failed page; raise :class:`PluginFailuresError` when too many of many pages have failed."""
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
    """Limits of failed pages: ``plugin.failures.share``, from ``plugin.failures.minimum`` failures on."""

    def __init__(self, conf: Configuration) -> None:
        self.max_share = conf.get_float("plugin.failures.share", 0.5)
        self.min_failures = max(1, conf.get_int("plugin.failures.minimum", 100))

    def check(self, plugin_id: str, failed: int, pages: int, first_message: str) -> None:
        """Raise :class:`PluginFailuresError` when ``failed`` of ``pages`` are too many."""
        if failed >= self.min_failures and failed > self.max_share * pages:
            raise PluginFailuresError(
                f"plug-in {plugin_id} failed on {failed} of {pages} pages, which is over plugin.failures.share: "
                f"fix it, or remove it from plugin.includes{f'; first: {first_message}' if first_message else ''}"
            )

    def check_all(self, failed: Mapping[str, int], pages: int, first_messages: Mapping[str, str]) -> None:
        """Raise when a plug-in failed on too many pages of all tasks; ``first_messages``: by plug-in."""
        for plugin, amount in failed.items():
            self.check(plugin, amount, max(pages, amount), first_messages.get(plugin, ""))
