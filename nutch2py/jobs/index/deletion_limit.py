"""Limits how many documents one run of ``index`` or ``clean`` deletes from an index.

A mistake of the crawler, or of all servers at once, makes many pages look gone. Tasks therefore do not delete: they
look up which documents exist and pass their ids to the job, which counts them and deletes all or none. Duplicates do
not count, since a document with the same content stays. A run that is killed before the deletion and run again finds
the same documents. Without a limit (share 1) tasks delete by themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import DeletionsRefusedError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.job_context import CrawlTables
from nutch2py.mapreduce.driver import JobResult
from nutch2py.mapreduce.step_events import STEP_LISTENER
from nutch2py.mapreduce.table_job import KeyValuePair
from nutch2py.url.keys import unreverse_url

SHARE_PROPERTY, COUNT_PROPERTY = "indexer.delete.max.share", "indexer.delete.max.count"
DUPLICATE_REASON = "duplicate"
_DOCUMENTS_PER_LOOKUP = 500
_MAX_NAMED = 5  # documents in the message
_SUMMARY_KEY = ""


def remove_limit(conf: Configuration) -> None:
    """Let jobs of a configuration delete any number of documents, as ``-force`` does."""
    conf.set(SHARE_PROPERTY, "1")


def is_limited(conf: Configuration) -> bool:
    """Return whether there is a limit."""
    return conf.get_float(SHARE_PROPERTY, 0.1) < 1


class DeletionCollector:
    """Collects the documents that a task would delete; ``writers`` are open.

    Of those that count, a task passes on no more than its index allows: the job then deletes none of them.
    """

    def __init__(self, conf: Configuration, writers: IndexWriters) -> None:
        self._conf, self._writers = conf, writers
        self._pending: dict[str, str] = {}
        self._candidates: Counter[str] = Counter()
        self._existing: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._collected: list[KeyValuePair] = []
        self._limits: Mapping[str, int] | None = None

    def add(self, document_id: str, reason: str) -> None:
        """Add a document, and why it is to be deleted."""
        self._pending[document_id] = reason
        self._candidates[reason] += 1
        if len(self._pending) >= _DOCUMENTS_PER_LOOKUP:
            self._look_up()

    def _look_up(self) -> None:
        pending, self._pending = self._pending, {}
        if not pending:
            return
        if self._limits is None:
            self._limits = compute_limits(self._conf, self._writers)
        for document_id, names in self._writers.find_documents([*pending]).items():
            reason = pending[document_id]
            if reason != DUPLICATE_REASON:
                self._existing[reason] += bool(names)
                self._counted.update(names)
                if any(self._counted[name] > self._limits[name] + 1 for name in names):
                    continue  # too many: counted only
            self._collected.append((document_id, reason))

    def finish(self) -> Iterator[KeyValuePair]:
        """Yield the documents to delete, and the numbers of the task."""
        self._look_up()
        if self._candidates:
            yield from self._collected
            yield _SUMMARY_KEY, [dict(self._candidates), dict(self._existing), dict(self._counted)]


def compute_limits(conf: Configuration, writers: IndexWriters) -> dict[str, int]:
    """Return how many documents may be deleted, by writer."""
    share, minimum = conf.get_float(SHARE_PROPERTY, 0.1), conf.get_int(COUNT_PROPERTY, 25)
    return {name: max(minimum, int(share * count)) for name, count in writers.count_documents().items()}


def delete_collected(
    conf: Configuration, tables: CrawlTables, result: JobResult, job: str, *, commit: bool = True
) -> tuple[Counter[str], DeletionsRefusedError | None]:
    """Delete the documents that the tasks of a job collected, or only the duplicates among them if they are too many.

    Args:
        conf: Configuration.
        tables: Tables of the crawl; the job still has to hold its lock.
        result: Result of the tasks; its output is consumed.
        job: Name of the command.
        commit: Make the deletions searchable at once.

    Returns:
        The number of documents deleted by reason, and the error if some were not deleted.
    """
    candidates, existing, counted = Counter[str](), Counter[str](), Counter[str]()
    found: dict[str, str] = {}
    for key, value in result.output:
        if key == _SUMMARY_KEY:
            for total, part in zip((candidates, existing, counted), value, strict=True):
                total.update(part)
        else:
            found[key] = value
    result.output = []
    if not candidates:
        return candidates, None
    refusal = None
    with IndexWriters(conf) as writers:
        limits = compute_limits(conf, writers) if counted else {}
        if exceeded := [name for name, count in counted.items() if count > limits[name]]:
            refusal = _refuse(conf, job, existing, found, {name: (counted[name], limits[name]) for name in exceeded})
            for reason, count in existing.items():
                candidates[reason] -= count
            found = {key: reason for key, reason in found.items() if reason == DUPLICATE_REASON}
        tables.check_lock()
        for document_id in found:
            writers.delete(document_id)
        if found and commit:
            writers.commit()
    return +candidates, refusal


def _refuse(
    conf: Configuration,
    job: str,
    existing: Mapping[str, int],
    found: Mapping[str, str],
    exceeded: Mapping[str, tuple[int, int]],
) -> DeletionsRefusedError:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(existing.items(), key=lambda each: -each[1]))
    counts = ", ".join(
        f"{count:,} documents of {name}, of which {limit:,} may go" for name, (count, limit) in exceeded.items()
    )
    named = [unreverse_url(key) for key, reason in found.items() if reason != DUPLICATE_REASON][:_MAX_NAMED]
    return DeletionsRefusedError(
        f"{job} would delete {counts} ({SHARE_PROPERTY} {conf.get_float(SHARE_PROPERTY, 0.1):g}, {COUNT_PROPERTY} "
        f"{conf.get_int(COUNT_PROPERTY, 25)}), and deleted none of them: {reasons}, such as {', '.join(named)}. "
        f"Check why (readdb -url URL); if it is right, run {job} again with -force"
    )


def add_deletion_counters(result: JobResult, counters: dict[str, dict[str, int]]) -> None:
    """Add the counters of the deletions to a job's result and to its entry in the job log."""
    counters = {group: names for group, names in counters.items() if names}
    result.add_counters(counters)
    listener: Any = STEP_LISTENER.get()
    if counters and listener is not None:
        listener.step_finished(counters)
