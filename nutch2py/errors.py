"""The errors that reach a user: one line that says what is wrong and how to repair it, and an exit code.

Exit codes of every command: 0 done; 1 nothing to do (``generate``: no URL is due; a batch that is not there); 255
(Nutch's -1) wrong usage, or the job failed. The numbers between name the cause, so that a script can tell them apart;
130 is Ctrl-C, 143 SIGTERM, 141 a reader of the output that is gone.
"""

from __future__ import annotations

from collections.abc import Iterator


def iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Give an exception and all that it was raised from or beside, those of an exception group included."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        cause = waiting.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        several = cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
        waiting += [cause.__cause__, cause.__context__, *several]


class NutchError(Exception):
    """A failure whose cause and repair are known. ``str(error)`` is the whole message; no traceback is shown."""

    exit_code = 255


class UnknownBatchError(NutchError):
    """A batch was named of which nothing is known: there is nothing to do."""

    exit_code = 1


class UsageError(NutchError):
    """The words of the command line do not fit the command."""


class ConfigurationError(NutchError):
    """A property is missing or malformed, or a configuration file cannot be read."""

    exit_code = 2


class InputError(NutchError):
    """What the user named to be read (seeds, a dump, a folder) is missing, unreadable or malformed."""

    exit_code = 3


class StoreError(NutchError):
    """The table cannot be opened, read or written."""

    exit_code = 4


class PermissionDeniedError(StoreError):
    """The user lacks a right to the table's files, which says nothing of the table itself."""


class IndexingError(NutchError):
    """The index cannot be opened, read or written."""

    exit_code = 5


class LockedError(NutchError):
    """Another job is at work on what this one would change."""

    exit_code = 6


class PluginFailuresError(NutchError):
    """A plug-in failed on so many pages that going on would waste the crawl."""

    exit_code = 7


class RunnerError(NutchError):
    """What runs the tasks failed: HDFS or YARN was away for too long, full, or lost the job, or a task was killed."""

    exit_code = 8


class NothingFetchedError(NutchError):
    """A crawl fetched no page at all; the message or the lines before it say why."""

    exit_code = 9


class LockLostError(LockedError):
    """A job was silent for so long that another one has taken its place."""
