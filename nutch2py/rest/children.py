"""Jobs as child processes: each in a session and a folder of its own, found again by whatever server comes next.

The folder holds what was asked for, the configuration (no property stands on a command line), the output and the exit
code, which a shell writes when the command has ended. The processes of a job hold a file of it locked, and the kernel
lets go of it however they end: so whether a job runs is no matter of process ids, which are given anew.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path

from msgspec import Struct, field, structs

from nutch2py.conf import Configuration
from nutch2py.rest.child_folder import prepare
from nutch2py.rest.kinds import SEEDS
from nutch2py.rest.refusal import Refusal, not_found
from nutch2py.rest.state import ABANDONED, checked_name, held, made, read, write

_SHELL = """trap : INT TERM HUP
echo $$ >session
cd "$BASE" || exit
sh -c 'echo $$ >"$JOB/pid"; exec "$@"' sh "$@" >"$JOB/output" 2>&1 </dev/null
code=$?
echo $code >"$JOB/exit.part" && mv "$JOB/exit.part" "$JOB/exit"
"""
"""Runs a command and writes down how it ended. A signal to the group ends the command, not the shell."""

NOTHING_TO_DO, INTERRUPTED = 1, (130, 143)
_PROCESSES: dict[str, subprocess.Popen[bytes]] = {}
"""Shells that are children of this process, by the ids of their jobs: they are, whichever server asks."""
_NOT_THERE = (FileNotFoundError, NotADirectoryError, PermissionError)
_TRIES, _PAUSE = 200, 0.02
_ENDING = 5.0  # seconds for a process that has let go of its lock to be gone from the table of processes
_TAIL = 4096  # bytes of the output in which the reason of a failure is looked for


class ChildState(StrEnum):
    """How a job is, or how it ended."""

    RUNNING = "running"
    STOPPING = "stopping"  # it was sent an interrupt, and has not ended
    KILLING = "killing"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    KILLED = "killed"  # or it ended without a word, as when the machine went down

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self in (ChildState.RUNNING, ChildState.STOPPING, ChildState.KILLING)


class Spec(Struct, rename="camel", frozen=True, kw_only=True):
    """What a job is: ``words`` of the command; ``by``: whose token, or which schedule, asked for it."""

    id: str
    job: str
    crawl_id: str
    configuration: str
    words: list[str]
    properties: dict[str, str] = field(default_factory=dict)
    args: dict[str, str] = field(default_factory=dict)
    by: str = ""
    schedule: str = ""
    begun: int = 0


class Child(Spec, rename="camel", frozen=True, kw_only=True):
    """A job as it is. Times are ms since 1970; ``exit_code``: of the command, None when there is none (yet)."""

    state: ChildState
    pid: int | None = None
    ended: int | None = None
    exit_code: int | None = None
    message: str = ""


class Children:
    """The jobs of a server, in ``<rest.folder>/jobs``.

    ``running``: how many may run at a time; ``keep``: how many that have ended are remembered.
    """

    def __init__(self, folder: Path, running: int, keep: int) -> None:
        self.folder = folder / "jobs"
        self._running, self._keep = running, keep
        self._lock = threading.Lock()
        self._ended: dict[str, Child] = {}

    def start(self, spec: Spec, conf: Configuration, seeds: list[str] | None = None) -> Child:
        """Run a job; Refusal when too many run. ``conf``: what it is to work with; ``seeds``: lines of its seed file.

        The id of ``spec`` is given here.
        """
        made(self.folder)
        with self._lock, held(self.folder / ".lock"):
            alive = sum(_alive(folder) for folder in self.folder.glob("[0-9]*"))  # whatever else can be read of them
            if alive >= self._running:
                told = f"{alive} jobs run, which is as many as may (rest.jobs.running)"
                raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, told, {"Retry-After": "10"})
            begun = time.time_ns() // 1_000_000
            spec = structs.replace(spec, id=f"{begun:013d}-{secrets.token_hex(3)}", begun=begun)
            folder = made(self.folder / spec.id)
            try:
                with _locked(folder / "lock") as lock:  # before one can read what job it is: it would have ended
                    prepare(folder, conf, seeds)
                    write(folder / "job.json", spec)
                    _PROCESSES[spec.id] = _run(folder, lock, conf, spec.words)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)  # nothing of it has begun
                raise
        self.forget()
        return self.get(spec.id)

    def get(self, job_id: str) -> Child:
        """Return a job; Refusal when there is none of this id."""
        child = self._read(checked_name(job_id, "job"))
        if child is None:
            raise not_found(f"job {job_id}")
        return child

    def all(self) -> list[Child]:
        """Return all jobs, the newest first."""
        return list(self._all())

    def _all(self) -> Iterator[Child]:
        names = sorted((path.name for path in self.folder.glob("[0-9]*")), reverse=True)
        return (child for name in names if (child := self._read(name)) is not None)

    def _read(self, job_id: str) -> Child | None:
        if (ended := self._ended.get(job_id)) is not None:
            return ended
        folder = self.folder / job_id
        spec = read(folder / "job.json", Spec)
        if spec is None:
            return None
        try:
            child = _child(folder, spec)
        except FileNotFoundError:  # another server forgets it just now
            return None
        if not child.state.alive:
            self._ended[job_id] = child
            process = _PROCESSES.pop(job_id, None)
            if process is not None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_ENDING)
        return child

    def stop(self, job_id: str) -> Child:
        """Interrupt a job, as Ctrl-C does: it ends when it is at a good place. One that has ended is left.

        By SIGTERM: in the background of a shell, where a server may stand, no process hears SIGINT.
        """
        child = self.get(job_id)
        if child.state in (ChildState.RUNNING, ChildState.STOPPING):
            folder = self.folder / job_id
            _ask(folder, "stop")
            for _ in range(_TRIES):
                if _text(folder / "pid") or not _alive(folder):
                    break
                time.sleep(_PAUSE)  # it has just begun: the shell would hear the signal, and the command would not
            with suppress(OSError, ValueError):
                os.killpg(self._session(job_id), signal.SIGTERM)
        return self.get(job_id)

    def abort(self, job_id: str) -> Child:
        """Kill all processes of a job. The next command on the crawl goes on where it was."""
        child = self.get(job_id)
        if child.state.alive:
            folder = self.folder / job_id
            _ask(folder, "abort")
            for _ in range(_TRIES):
                with suppress(OSError, ValueError):
                    _kill_session(self._session(job_id))
                if not _alive(folder) or not self.get(job_id).state.alive:
                    break
                time.sleep(_PAUSE)  # for the kernel, or a process that has begun meanwhile
        return self.get(job_id)

    def _session(self, job_id: str) -> int:
        process = _PROCESSES.get(job_id)
        return _number(self.folder / job_id / "session") if process is None else process.pid

    def delete(self, job_id: str) -> None:
        """Forget a job that has ended."""
        child = self.get(job_id)
        if child.state.alive:
            raise Refusal(HTTPStatus.CONFLICT, f"the job {job_id} runs: stop or abort it first")
        self._ended.pop(job_id, None)
        shutil.rmtree(self.folder / job_id, ignore_errors=True)

    def forget(self) -> None:
        """Forget the oldest jobs that have ended, beyond as many as are kept, and what never became a job."""
        ended = [child for child in self._all() if not child.state.alive]
        for child in ended[self._keep :]:
            with suppress(Refusal):  # another server was first
                self.delete(child.id)
        for folder in self.folder.glob("[0-9]*"):
            with suppress(OSError):
                old = time.time() - folder.stat().st_mtime > ABANDONED
                if old and not _alive(folder) and read(folder / "job.json", Spec) is None:
                    shutil.rmtree(folder, ignore_errors=True)

    def output(self, job_id: str, offset: int, limit: int) -> tuple[bytes, int]:
        """Return what a job has printed: at most ``limit`` bytes from ``offset`` on; and how many bytes there are."""
        self.get(job_id)
        try:
            with (self.folder / job_id / "output").open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(min(offset, size))
                return file.read(limit), size
        except FileNotFoundError:
            return b"", 0


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Lock a file, for the processes that are given its descriptor meanwhile."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _run(folder: Path, lock: int, conf: Configuration, words: list[str]) -> subprocess.Popen[bytes]:
    """Start the processes of a job, which go on holding its lock."""
    given = [str(folder / SEEDS) if word == SEEDS else word for word in words]
    command = [sys.executable, "-m", "nutch2py", *given, "--conf", str(folder / "conf")]
    surroundings = {**os.environ, "JOB": str(folder), "BASE": str(conf.base), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        ["sh", "-c", _SHELL, "sh", *command],
        cwd=folder, env=surroundings, pass_fds=[lock], start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _child(folder: Path, spec: Spec) -> Child:
    """Return how a job is. Whether it runs is looked at first: what it left behind is whole when it does not."""
    alive = _alive(folder)
    asked = _text(folder / "asked")
    given = {name: getattr(spec, name) for name in spec.__struct_fields__}
    with suppress(ValueError):
        given["pid"] = _number(folder / "pid")
    if alive:
        return Child(state={"stop": ChildState.STOPPING, "abort": ChildState.KILLING}.get(asked, ChildState.RUNNING),
                     **given)  # fmt: skip
    code = -1
    with suppress(ValueError):
        code = _number(folder / "exit")
    if code < 0:
        ended = max((path.stat().st_mtime_ns for path in folder.iterdir()), default=0) // 1_000_000
        state = ChildState.STOPPED if asked == "stop" else ChildState.KILLED
        return Child(state=state, ended=ended, message=f"it was {state}", **given)
    ended = (folder / "exit").stat().st_mtime_ns // 1_000_000
    state = ChildState.FAILED
    if code in (0, NOTHING_TO_DO):
        state = ChildState.FINISHED
    elif code in INTERRUPTED:
        state = ChildState.STOPPED
    message = "" if code == 0 else _last_line(folder / "output")
    return Child(state=state, ended=ended, exit_code=code, message=message, **given)


def _alive(folder: Path) -> bool:
    """Tell whether a process holds the lock of a job; OSError when that cannot be found out just now."""
    try:
        lock = os.open(folder / "lock", os.O_RDONLY)
    except _NOT_THERE:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _kill_session(session: int) -> None:
    """Kill all processes of a session; where the system does not list them, its first group."""
    found = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _session_of(path) == session]
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if not found:
        os.killpg(session, signal.SIGKILL)


def _session_of(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[3])
    except (OSError, IndexError, ValueError):
        return -1


def _ask(folder: Path, word: str) -> None:
    """Note down what a job was asked; that there is no room for it keeps nobody from stopping one."""
    with suppress(OSError):
        (folder / "asked").write_text(word)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except _NOT_THERE:  # of any other trouble nothing follows, and how a job has ended is remembered
        return ""


def _number(path: Path) -> int:
    return int(_text(path))


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    told = [line for line in lines if line.startswith("nutch2py: ")] or [line for line in lines if line.strip()]
    return told[-1].removeprefix("nutch2py: ")[:1000] if told else ""
