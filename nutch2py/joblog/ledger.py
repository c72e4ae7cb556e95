"""How a job keeps its entry in the job log: written when it begins, every few seconds, and when it has ended.

A thread of its own writes while the job works, so the job waits for the log only at its end, for one row. The log takes
no lock, waits for no service that is away, and never fails a job: what goes wrong is a warning.
"""

from __future__ import annotations

import getpass
import os
import resource
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from nutch2py.conf import Configuration
from nutch2py.disk import disk_trouble
from nutch2py.errors import NutchError, StoreError
from nutch2py.joblog.entry import JobEntry, JobState
from nutch2py.joblog.figures import Figures
from nutch2py.joblog.publishing import publish
from nutch2py.joblog.stored import AT_WORK, Stored, encode, forget_old, key_of
from nutch2py.log_file import working
from nutch2py.mapreduce.processes import Process
from nutch2py.mapreduce.steps import ACCOUNT
from nutch2py.reporting import adopt, reporter, warn
from nutch2py.secrets import concealed
from nutch2py.table import DataStore, open_store
from nutch2py.table.clock import now_ms
from nutch2py.webpage import BatchEntry

_RENEWAL, _SLOWEST = 2.0, 15.0  # seconds between two writes: at the beginning, and of a job that takes long
_KEEP = 10_000
_FEW = 500  # entries that may be counted after each job
_SELDOM = 64  # of so many jobs one counts them when there may be more
_LONGEST = 500  # characters of a message
_MOST_COUNTERS = 1000
_MOST_NOTES = 16  # tasks of which it is told how they go
_LATEST = 10**13  # ms: what an id has room for
_HADOOP = frozenset(
    {"File System Counters", "Job Counters", "Map-Reduce Framework", "Shuffle Errors"}
    | {f"File {way} Format Counters" for way in ("Input", "Output")}
)
_IMPATIENT = {
    "service.wait.seconds": 0,
    "hbase.thrift.timeout": 8000,
    "hbase.thrift.connect.timeout": 3000,
}
"""The log does not wait for a table that is away: the job itself does, and says so."""


class Ledger:
    """The entry of one job, kept from :meth:`begins` to :meth:`ends`. It is the account of the job's steps.

    ``name``: as the command is called; ``batch``: "" for none. :meth:`ends` without :meth:`begins` notes down a job
    that was refused. ``quiet``: that the log cannot be written is not worth a warning, as of a job that only reads.
    """

    def __init__(self, conf: Configuration, name: str, batch: str = "", *, quiet: bool = False) -> None:
        self._conf, self._name, self._batch, self._quiet = conf, name, _plain(batch), quiet
        self._keep = conf.get_int("joblog.keep", _KEEP)
        self._store: DataStore[BatchEntry] | None = None
        self._process = Process.own()
        self._begun, self._running = now_ms(), time.monotonic()
        self._cpu, self._id, self._token = _cpu_ms(), "", ""
        self._lock = threading.Lock()
        self._counters: dict[str, dict[str, int]] = {}
        self._done: tuple[int, int | None] = (0, None)  # of the step that did most, and how many were expected
        self._expected: int | None = None
        self._rows: Callable[[], int] | None = None
        self._notes: Callable[[], list[str]] = list
        self._tasks_cpu = self._tasks_peak = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._warned = False
        self.exit_code = 0
        self.figures: Figures | None = None

    @property
    def work(self) -> tuple[str, str]:
        """The job and its batch."""
        return self._name, self._batch

    # the steps of the job

    def step_begins(self, rows: Callable[[], int], expected: int | None, notes: Callable[[], list[str]] = list) -> None:
        """Take word that a step begins."""
        with self._lock:
            self._rows, self._expected, self._notes = rows, expected, notes

    def step_is_over(self) -> None:
        """Keep how far a step came."""
        with self._lock:
            if self._rows is not None:
                with suppress(OSError):
                    self._done = max(self._done, (self._rows(), self._expected), key=lambda done: done[0])
            self._rows, self._notes = None, list

    def step_ends(self, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Add what a step counted; Hadoop's own counters tell processor time and memory of its tasks."""
        with self._lock:
            for group, names in counters.items():
                if group in _HADOOP:
                    self._tasks_cpu += names.get("CPU time spent (ms)", 0)
                    peaks = (names.get(f"Peak {kind} Physical memory (bytes)", 0) for kind in ("Map", "Reduce"))
                    self._tasks_peak = max(self._tasks_peak, *peaks)
                    continue
                sums = self._counters.setdefault(group, {})
                for name, amount in names.items():
                    if name in sums or sum(map(len, self._counters.values())) < _MOST_COUNTERS:
                        sums[name] = sums.get(name, 0) + amount

    # the entry

    def begins(self, token: str = "") -> None:
        """Note down that the job is at work, under the lock with this token."""
        self._token = token
        self._open()
        if self._store is not None:
            AT_WORK.add(self._id)
            self._thread = threading.Thread(target=self._renew, args=(reporter(),), name="job log", daemon=True)
            self._thread.start()

    def _open(self) -> None:
        if self._keep <= 0:
            return
        conf = self._conf.copy()
        for name, value in _IMPATIENT.items():
            conf.set(name, value)
        with self._trying():
            store = open_store(conf, BatchEntry)
            if not store.exists():
                return
            time_of_crawl = store.clock.next()
            self._id = f"{time_of_crawl if time_of_crawl < _LATEST else self._begun:013d}-{secrets.token_hex(3)}"
            self._store = store

    def _renew(self, taken: object) -> None:
        adopt(taken)  # type: ignore[arg-type]
        wait = 0.0
        while not self._over.wait(wait):
            self._write(JobState.RUNNING)
            wait = min(_SLOWEST, max(_RENEWAL, (time.monotonic() - self._running) / 20))

    def ends(self, error: BaseException | None = None, figures: Callable[[], Figures | None] | None = None) -> None:
        """Note down how the job has ended; ``figures`` gives a snapshot of the table."""
        if self._process.pid != os.getpid():  # a forked child that ends by an exception
            return
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        elif error is not None and self._store is None:
            self._open()
        if self._store is None:
            return
        state, code, message = self._outcome(error)
        snapshot = None
        with self._trying():
            snapshot = figures() if figures is not None and self.figures is None else self.figures
        self._write(state, code, message, snapshot)
        AT_WORK.discard(self._id)
        if self._keep <= _FEW or secrets.randbelow(_SELDOM) == 0:
            with self._trying():
                forget_old(self._store, self._keep)
        self._store.close()

    def publish(self) -> None:
        """Write and send the metrics of the crawl, when the job has ended and given its lock back."""
        if self._store is not None:
            with self._trying():
                publish(self._conf, self._store)
                self._store.close()

    def _outcome(self, error: BaseException | None) -> tuple[JobState, int, str]:
        if error is None:
            return JobState.FINISHED, self.exit_code, ""
        if isinstance(error, KeyboardInterrupt):
            return JobState.STOPPED, 130, "interrupted"
        if isinstance(error, SystemExit | GeneratorExit):
            code = error.code if isinstance(error, SystemExit) else None
            return JobState.STOPPED, code if isinstance(code, int) else 255, "ended from outside"
        if isinstance(error, NutchError):
            code, told = error.exit_code, str(error)
        elif (trouble := disk_trouble(error, "what this job writes")) is not None:
            code, told = StoreError.exit_code, trouble
        else:
            code, told = 255, f"{type(error).__name__}: {error}"
        return JobState.FAILED, code, _plain(" ".join(concealed(told, self._conf.secrets()).split()))[:_LONGEST]

    def _entry(self, state: JobState, code: int | None, message: str, figures: Figures | None) -> Stored:
        with self._lock:
            done, expected = self._done
            if self._rows is not None:
                with suppress(OSError):  # the step is just over
                    done, expected = self._rows(), self._expected
            notes: list[str] = []
            if state == JobState.RUNNING:
                with suppress(OSError):
                    notes = [_plain(note)[:_LONGEST] for note in self._notes()[:_MOST_NOTES]]
            counters = {group: dict(names) for group, names in self._counters.items()}
            cpu, peak = self._tasks_cpu, self._tasks_peak
        elapsed = int((time.monotonic() - self._running) * 1000)
        entry = JobEntry(
            id=self._id,
            job=self._name,
            crawl_id=self._conf.get_trimmed("storage.crawl.id"),
            batch_id=self._batch,
            state=state,
            begun=self._begun,
            ended=None if state == JobState.RUNNING else self._begun + elapsed,  # the clock may have been set
            seen=now_ms(),
            host=self._process.host,
            pid=self._process.pid,
            user=_user(),
            exit_code=code,
            message=message,
            done=done,
            notes=tuple(notes),
            expected=expected,
            counters=counters,
            cpu_ms=_cpu_ms() - self._cpu + cpu,
            peak_bytes=max(_peak_bytes(), peak),
            figures=figures,
        )
        lease = self._conf.get_float("crawl.lock.lease", 60.0)
        process = self._process
        return Stored(entry=entry, token=self._token, machine=process.machine, started=process.started, lease=lease)

    def _write(
        self, state: JobState, code: int | None = None, message: str = "", figures: Figures | None = None
    ) -> None:
        assert self._store is not None
        with self._trying(), self._store.batch() as batch:
            batch.put(key_of(self._id), encode(self._entry(state, code, message, figures)))

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Let nothing that goes wrong in the block end a job; the first such thing is warned of."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is: the job is more than its log
            if not self._warned and not self._quiet:
                self._warned = True
                warn(f"the job log cannot be written ({concealed(str(error), self._conf.secrets())})")


@contextmanager
def keeping(ledger: Ledger, token: str = "", figures: Callable[[], Figures | None] | None = None) -> Iterator[Ledger]:
    """Keep the entry of a job for as long as it works in the block."""
    ledger.begins(token)
    before = ACCOUNT.set(ledger)
    try:
        with working(*ledger.work):
            yield ledger
    except BaseException as error:
        ledger.ends(error, figures)
        raise
    else:
        ledger.ends(None, figures)
    finally:
        ACCOUNT.reset(before)


def note(
    *, figures: Figures | None = None, exit_code: int = 0, counters: Mapping[str, Mapping[str, int]] | None = None
) -> None:
    """Let the entry of the job in this thread, if there is one, have what the job itself found of the table.

    ``exit_code``: of a job that is finished and had nothing to do; ``counters``: of a job without steps.
    """
    account = ACCOUNT.get()
    if isinstance(account, Ledger):
        account.step_ends(counters or {})
        account.figures, account.exit_code = figures or account.figures, exit_code or account.exit_code


def _plain(text: str) -> str:
    """Return a text that can be written: what came from the command line may hold bytes that are no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _cpu_ms() -> int:
    """Return the processor time of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return int(sum(each.ru_utime + each.ru_stime for each in used) * 1000)


def _peak_bytes() -> int:
    """Return the most memory that this process has had, or a child that has ended."""
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return peak if sys.platform == "darwin" else peak * 1024


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's number without a name
        return str(os.getuid())
