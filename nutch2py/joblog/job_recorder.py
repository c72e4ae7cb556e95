"""Records a job in the job log: at its start, every few seconds, and at its end.

A background thread writes while the job runs, so the job waits for the log only at its end, for one row. The log takes
no lock, does not wait for unavailable services, and never fails a job: errors are warnings.
"""

from __future__ import annotations

import getpass
import heapq
import os
import resource
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact, redact_property
from nutch2py.errors import NutchError, StoreError
from nutch2py.fetcher.queues.queue_state import QueueState
from nutch2py.joblog.job_entry import JobEntry, JobState, StoredJobEntry
from nutch2py.joblog.job_liveness import OWN_RUNNING_IDS
from nutch2py.joblog.job_log_store import delete_old_entries, encode_entry, entry_key
from nutch2py.joblog.metrics_export import export_metrics
from nutch2py.joblog.table_stats import TableStats
from nutch2py.mapreduce.step_events import STEP_LISTENER
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.clock import now_ms
from nutch2py.support.disk_errors import disk_error_message
from nutch2py.support.invariants import not_none
from nutch2py.support.log_file import log_job_context
from nutch2py.support.process_identity import ProcessIdentity
from nutch2py.support.reporting import current_reporter, set_reporter, warn
from nutch2py.table import DataStore
from nutch2py.table.store_factory import open_store_without_wait

MIN_UPDATE_INTERVAL, _MAX_UPDATE_INTERVAL = 2.0, 15.0
"""Seconds between writes, at the start and of a long job."""
_DEFAULT_MAX_ENTRIES = 10_000
_ALWAYS_PRUNED_BELOW = 500  # entries; up to this limit the log is pruned after each job
_PRUNE_EVERY = 64  # with a larger log one of this many jobs prunes it
_MAX_MESSAGE_LENGTH = 500  # characters
_MAX_COUNTERS = 1000
_MAX_NOTES = 16  # tasks whose progress is stored
_MAX_QUEUES = 20  # fetch queues
_MAX_PROPERTIES, _MAX_VALUE_LENGTH = 200, 1000  # properties, and characters of a value
_MAX_ID_TIME = 10**13  # ms; the digits of an id
_HADOOP_GROUPS = frozenset(
    {"File System Counters", "Job Counters", "Map-Reduce Framework", "Shuffle Errors"}
    | {f"File {direction} Format Counters" for direction in ("Input", "Output")}
)


class JobRecorder:
    """Records one job from :meth:`start` to :meth:`finish`, and listens to its steps.

    :meth:`finish` without :meth:`start` records a job that was rejected.

    Args:
        conf: Configuration of the job.
        name: Name of the command.
        batch: Batch of the job, "" for none.
        is_quiet: Log no warning if the log cannot be written, as for jobs that only read.
    """

    def __init__(self, conf: Configuration, name: str, batch: str = "", *, is_quiet: bool = False) -> None:
        self._conf, self._name, self._batch, self._is_quiet = conf, name, _to_valid_text(batch), is_quiet
        self._max_entries = conf.get_int("joblog.keep", _DEFAULT_MAX_ENTRIES)
        self._store: DataStore[DerivedRow] | None = None
        self._process = ProcessIdentity.current()
        self._start_time, self._start_monotonic = now_ms(), time.monotonic()
        self._start_cpu_ms, self._entry_id, self._token = _cpu_ms(), "", ""
        self._lock = threading.Lock()
        self._counters: dict[str, dict[str, int]] = {}
        self._best_step_rows: tuple[int, int | None] = (0, None)  # rows and expected rows of the largest step
        self._expected: int | None = None
        self._count_rows: Callable[[], int] | None = None
        self._notes: Callable[[], list[str]] = list
        self._get_queues: Callable[[], Sequence[Mapping[str, object]]] = list
        self._get_step_counters: Callable[[], Mapping[str, Mapping[str, int]]] = dict
        self._properties = _site_properties(conf)
        self._tasks_cpu_ms = self._tasks_peak_bytes = 0
        self._finished = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_warned = False
        self.exit_code = 0
        self.table_stats: TableStats | None = None

    @property
    def job_and_batch(self) -> tuple[str, str]:
        """The job and its batch."""
        return self._name, self._batch

    # steps of the job

    def step_started(
        self,
        count_rows: Callable[[], int],
        expected: int | None,
        get_notes: Callable[[], list[str]] = list,
        get_counters: Callable[[], Mapping[str, Mapping[str, int]]] = dict,
        get_queues: Callable[[], Sequence[Mapping[str, object]]] = list,
    ) -> None:
        """Use the progress of a new step."""
        with self._lock:
            self._count_rows, self._expected, self._notes = count_rows, expected, get_notes
            self._get_step_counters, self._get_queues = get_counters, get_queues

    def step_closed(self) -> None:
        """Store the progress of the finished step, and its counters so far in case that it failed."""
        with self._lock:
            with suppress(OSError):
                saved = self._get_step_counters()
                self._get_step_counters = lambda: saved
            if self._count_rows is not None:
                with suppress(OSError):
                    self._best_step_rows = max(
                        self._best_step_rows, (self._count_rows(), self._expected), key=lambda progress: progress[0]
                    )
            self._count_rows, self._notes, self._get_queues = None, list, list

    def step_finished(self, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Add the counters of a step; CPU time and memory of tasks come from Hadoop's own counters."""
        with self._lock:
            self._get_step_counters = dict  # the counters of the whole step replace them
            for group, names in counters.items():
                if group in _HADOOP_GROUPS:
                    self._tasks_cpu_ms += names.get("CPU time spent (ms)", 0)
                    peaks = (names.get(f"Peak {kind} Physical memory (bytes)", 0) for kind in ("Map", "Reduce"))
                    self._tasks_peak_bytes = max(self._tasks_peak_bytes, *peaks)
                    continue
                _add_counters(self._counters, {group: names})

    # the entry

    def start(self, token: str = "") -> None:
        """Record that the job runs, with the token of its lock."""
        self._token = token
        self._open_store()
        if self._store is not None:
            OWN_RUNNING_IDS.add(self._entry_id)
            self._thread = threading.Thread(
                target=self._update_loop, args=(current_reporter(),), name="job log", daemon=True
            )
            self._thread.start()

    def _open_store(self) -> None:
        if self._max_entries <= 0:
            return
        with self._warn_on_error():
            store = open_store_without_wait(self._conf, DerivedRow)  # the job itself waits, with a warning
            if not store.exists():
                return
            time_of_crawl = store.clock.next()
            self._entry_id = (
                f"{time_of_crawl if time_of_crawl < _MAX_ID_TIME else self._start_time:013d}-{secrets.token_hex(3)}"
            )
            self._store = store

    def _update_loop(self, reporter: object) -> None:
        set_reporter(reporter)  # type: ignore[arg-type]
        wait = 0.0
        while not self._finished.wait(wait):
            self._write(JobState.RUNNING)
            wait = min(_MAX_UPDATE_INTERVAL, max(MIN_UPDATE_INTERVAL, (time.monotonic() - self._start_monotonic) / 20))

    def finish(
        self, error: BaseException | None = None, get_table_stats: Callable[[], TableStats | None] | None = None
    ) -> None:
        """Record the end of the job; ``get_table_stats`` returns the table statistics to store with it."""
        if self._process.pid != os.getpid():  # a forked child that exits by an exception
            return
        self._finished.set()
        if self._thread is not None:
            self._thread.join()
        elif error is not None and self._store is None:
            self._open_store()
        if self._store is None:
            return
        state, code, message = self._outcome(error)
        snapshot = None
        with self._warn_on_error():
            snapshot = (
                get_table_stats() if get_table_stats is not None and self.table_stats is None else self.table_stats
            )
        self._write(state, code, message, snapshot)
        OWN_RUNNING_IDS.discard(self._entry_id)
        if self._max_entries <= _ALWAYS_PRUNED_BELOW or secrets.randbelow(_PRUNE_EVERY) == 0:
            with self._warn_on_error():
                delete_old_entries(self._store, self._max_entries)
        self._store.close()

    def export_metrics(self) -> None:
        """Export the metrics of the crawl after the job released its lock."""
        if self._store is not None:
            with self._warn_on_error():
                export_metrics(self._conf, self._store)
                self._store.close()

    def _outcome(self, error: BaseException | None) -> tuple[JobState, int, str]:
        if error is None:
            return JobState.FINISHED, self.exit_code, ""
        if isinstance(error, KeyboardInterrupt):
            return JobState.STOPPED, 130, "interrupted"
        if isinstance(error, SystemExit | GeneratorExit):
            code = error.code if isinstance(error, SystemExit) else None
            return JobState.STOPPED, code if isinstance(code, int) else 255, "terminated"
        if isinstance(error, NutchError):
            code, message = error.exit_code, str(error)
        elif (problem := disk_error_message(error, "the output of this job")) is not None:
            code, message = StoreError.exit_code, problem
        else:
            code, message = 255, f"{type(error).__name__}: {error}"
        return (
            JobState.FAILED,
            code,
            _to_valid_text(" ".join(redact(message, self._conf.secret_values()).split()))[:_MAX_MESSAGE_LENGTH],
        )

    def _create_entry(
        self, state: JobState, code: int | None, message: str, table_stats: TableStats | None
    ) -> StoredJobEntry:
        with self._lock:
            rows, expected = self._best_step_rows
            if self._count_rows is not None:
                with suppress(OSError):  # the step has just finished
                    rows, expected = self._count_rows(), self._expected
            notes: list[str] = []
            queues: list[QueueState] = []
            if state == JobState.RUNNING:
                with suppress(OSError):
                    queues = _longest_queues(self._get_queues())
                    notes = [_to_valid_text(note)[:_MAX_MESSAGE_LENGTH] for note in self._notes()[:_MAX_NOTES]]
            counters = {group: dict(names) for group, names in self._counters.items()}
            with suppress(OSError):
                _add_counters(counters, self._get_step_counters())
            cpu, peak = self._tasks_cpu_ms, self._tasks_peak_bytes
        elapsed = int((time.monotonic() - self._start_monotonic) * 1000)
        entry = JobEntry(
            id=self._entry_id,
            job=self._name,
            crawl_id=self._conf.get_trimmed("storage.crawl.id"),
            batch_id=self._batch,
            state=state,
            start_time=self._start_time,
            # by the monotonic clock: the system clock may have been set
            finish_time=None if state == JobState.RUNNING else self._start_time + elapsed,
            last_seen=now_ms(),
            host=self._process.host,
            pid=self._process.pid,
            user=_user_name(),
            exit_code=code,
            message=message,
            rows=rows,
            notes=tuple(notes),
            expected=expected,
            counters=counters,
            cpu_ms=_cpu_ms() - self._start_cpu_ms + cpu,
            peak_bytes=max(_peak_bytes(), peak),
            table_stats=table_stats,
            properties=self._properties,
            queues=tuple(queues),
        )
        lease = self._conf.get_float("crawl.lock.lease", 60.0)
        process = self._process
        return StoredJobEntry(
            entry=entry, token=self._token, machine=process.machine_id, started=process.start_time, lease=lease
        )

    def _write(
        self, state: JobState, code: int | None = None, message: str = "", table_stats: TableStats | None = None
    ) -> None:
        store = not_none(self._store, "store of the job log")
        with self._warn_on_error(), store.batch() as batch:
            batch.put(entry_key(self._entry_id), encode_entry(self._create_entry(state, code, message, table_stats)))

    @contextmanager
    def _warn_on_error(self) -> Iterator[None]:
        """Suppress errors of the block, so that they do not fail the job; log a warning for the first one."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the log must never fail the job
            if not self._has_warned and not self._is_quiet:
                self._has_warned = True
                reason = redact(str(error), self._conf.secret_values())
                warn(f"cannot write the job log ({reason}): the job continues, and nutch2py jobs may not show it")


@contextmanager
def record_job(
    recorder: JobRecorder, token: str = "", get_table_stats: Callable[[], TableStats | None] | None = None
) -> Iterator[JobRecorder]:
    """Record the job that runs in the block."""
    recorder.start(token)
    reset_token = STEP_LISTENER.set(recorder)
    try:
        with log_job_context(*recorder.job_and_batch):
            yield recorder
    except BaseException as error:
        recorder.finish(error, get_table_stats)
        raise
    else:
        recorder.finish(None, get_table_stats)
    finally:
        STEP_LISTENER.reset(reset_token)


def annotate_job(
    *,
    table_stats: TableStats | None = None,
    exit_code: int = 0,
    counters: Mapping[str, Mapping[str, int]] | None = None,
) -> None:
    """Add results to the entry of the job in this thread, if it is recorded.

    Args:
        table_stats: Table statistics that the job counted.
        exit_code: Exit code of a finished job that had nothing to do.
        counters: Counters of a job without steps.
    """
    recorder = STEP_LISTENER.get()
    if isinstance(recorder, JobRecorder):
        recorder.step_finished(counters or {})
        recorder.table_stats = table_stats or recorder.table_stats
        recorder.exit_code = exit_code or recorder.exit_code


def _longest_queues(queues: Sequence[Mapping[str, object]]) -> list[QueueState]:
    """Return the fetch queues of all tasks that will take longest, with valid text."""
    found = [msgspec.convert(each, QueueState) for each in queues]
    longest = heapq.nlargest(_MAX_QUEUES, found, key=lambda each: each.next_request + each.waiting * each.delay_ms)
    return [replace(each, queue=_to_valid_text(each.queue)) for each in longest]


def _site_properties(conf: Configuration) -> dict[str, str]:
    """Return the properties for the log: those that differ from the shipped defaults, without secrets."""
    properties = islice(sorted(conf.site_properties().items()), _MAX_PROPERTIES)
    return {name: _to_valid_text(redact_property(name, value))[:_MAX_VALUE_LENGTH] for name, value in properties}


def _add_counters(sums: dict[str, dict[str, int]], counters: Mapping[str, Mapping[str, int]]) -> None:
    """Add counters by group and name; no more names than :data:`_MAX_COUNTERS`."""
    for group, names in counters.items():
        sums_of_group = sums.setdefault(group, {})
        for name, amount in names.items():
            if name in sums_of_group or sum(map(len, sums.values())) < _MAX_COUNTERS:
                sums_of_group[name] = sums_of_group.get(name, 0) + amount


def _to_valid_text(text: str) -> str:
    """Return valid UTF-8 text: arguments of the command line may contain other bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _cpu_ms() -> int:
    """Return the CPU time of this process and of its finished children."""
    used = (resource.getrusage(target) for target in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return int(sum(each.ru_utime + each.ru_stime for each in used) * 1000)


def _peak_bytes() -> int:
    """Return the peak memory of this process or of its largest finished child."""
    peak = max(resource.getrusage(target).ru_maxrss for target in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return peak if sys.platform == "darwin" else peak * 1024


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in containers
        return str(os.getuid())
