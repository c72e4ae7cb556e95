"""Errors that users see: each has a one-line message with its cause and remedy, and an exit code.

Exit codes of every command: 0 success; 1 nothing to do (``generate``: no URL is due; an unknown batch); 255 (Nutch's
-1) wrong usage, or the job failed. The codes in between identify the cause for scripts. 130 is Ctrl-C, 143 SIGTERM, 141
a closed output pipe.
"""

from __future__ import annotations

from collections.abc import Iterator


def iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all of its causes and contexts, including those in exception groups."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        cause = pending.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        group = cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
        pending += [cause.__cause__, cause.__context__, *group]


class NutchError(Exception):
    """A failure with known cause and remedy. ``str(error)`` is the whole message; no traceback is shown."""

    exit_code = 255

    def public_message(self) -> str:
        """Return the message for people who search; "" when they may only know that the server failed."""
        return ""


class UnknownBatchError(NutchError):
    """The named batch is unknown: there is nothing to do."""

    exit_code = 1


class UsageError(NutchError):
    """The arguments do not fit the command."""


class ConfigurationError(NutchError):
    """A property is missing or malformed, or a configuration file cannot be read."""

    exit_code = 2


class InputError(NutchError):
    """An input of the user (seeds, a dump, a folder) is missing, unreadable or malformed."""

    exit_code = 3

    def public_message(self) -> str:
        """Return the message: it is about the user's own input."""
        return str(self)


class _PublicError(NutchError):
    """A search failed, with a message for each side.

    Args:
        message: for operators; may name the index, its server and properties.
        public_message: for people who search.
    """

    def __init__(self, message: str, public_message: str) -> None:
        super().__init__(message)
        self._public_message = public_message

    def public_message(self) -> str:
        """Return the message without the index, its server and properties."""
        return self._public_message


class QueryError(_PublicError, InputError):
    """An index cannot run a query."""


class StoreError(NutchError):
    """The table cannot be opened, read or written."""

    exit_code = 4


class PermissionDeniedError(StoreError):
    """The user lacks permission for the table's files; the table itself may be sound."""


class IndexingError(NutchError):
    """The index cannot be opened, read or written."""

    exit_code = 5


class SearchStoppedError(_PublicError, IndexingError):
    """A search was stopped or rejected because it is expensive; other searches are not affected."""


class LockedError(NutchError):
    """Another running job holds a conflicting lock."""

    exit_code = 6


class PluginFailuresError(NutchError):
    """A plug-in failed on so many pages that the job stopped."""

    exit_code = 7


class RunnerError(NutchError):
    """The platform of the tasks failed: HDFS or YARN was unavailable too long, full, or lost the job or a task."""

    exit_code = 8


class NothingFetchedError(NutchError):
    """A crawl fetched no page; the message or the lines before it give the reason."""

    exit_code = 9


class LocalFailuresError(NutchError):
    """Too many pages of a fetch failed for a reason of this machine, its network or its configuration."""

    exit_code = 11


class DeletionsRefusedError(NutchError):
    """A job would have deleted more documents of an index than ``indexer.delete.max.share`` allows."""

    exit_code = 12

    def __init__(self, message: str, counters: dict[str, dict[str, int]] | None = None) -> None:
        super().__init__(message)
        self.counters = counters or {}
        """Counters of the job, of which everything but the deletions was done."""


class LockLostError(LockedError):
    """A job sent no heartbeat for so long that another one has taken over its lock."""
