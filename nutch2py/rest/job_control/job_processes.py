"""Jobs as child processes: each in a session and a folder of its own, found again by whatever server comes next.

The folder holds what was asked for, the configuration (no property stands on a command line), the output and the exit
code, which a shell writes when the command has ended. The processes of a job hold a file of it locked, and the kernel
lets go of it however they end: so whether a job runs is no matter of process ids, which are given anew.

The configuration of a job, as a folder that its command is given: the site's own files, and what is set besides.
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
from xml.sax.saxutils import escape

from msgspec import Struct, field, structs

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.rest.http_error import HttpError, not_found
from nutch2py.rest.job_control.job_requests import SEEDS_FILE
from nutch2py.rest.state_dir import STALE_SECONDS, ensure_private_dir, file_lock, read_json, validate_name, write_json

_SITE_FILE = "nutch-site.xml"


def write_job_conf_dir(job_dir: Path, conf: Configuration, seeds: list[str] | None) -> None:
    """Write the files of a job that is to work with ``conf`` and a list of seeds."""
    ensure_private_dir(job_dir / "conf")
    shipped = data_dir("conf")
    for site in (each for each in conf.conf_dirs if each.resolve() != shipped.resolve()):
        for path in site.iterdir():
            if path.name != _SITE_FILE and not (job_dir / "conf" / path.name).exists():
                (job_dir / "conf" / path.name).symlink_to(path.resolve())
    write_json(job_dir / "conf" / _SITE_FILE, _site_xml(conf, shipped).encode("utf-8"))
    if seeds is not None:
        write_json(job_dir / SEEDS_FILE, "".join(f"{seed}\n" for seed in seeds).encode("utf-8"))


def _site_xml(conf: Configuration, shipped: Path) -> str:
    """Return all properties that are not the shipped ones, variables as they were written."""
    default = str(shipped / "nutch-default.xml")
    lines = ["<?xml version='1.0' encoding='UTF-8'?>", "<configuration>"]
    for name, value in conf.raw_properties().items():
        if conf.origin(name) != default:
            shown = escape(value, {"\r": "&#13;"})
            lines.append(f"<property><name>{escape(name)}</name><value>{shown}</value></property>")
    return "\n".join([*lines, "</configuration>\n"])


_WRAPPER_SCRIPT = """trap : INT TERM HUP
echo $$ >session
cd "$BASE" || exit
sh -c 'echo $$ >"$JOB/pid"; exec "$@"' sh "$@" >"$JOB/output" 2>&1 </dev/null
code=$?
echo $code >"$JOB/exit.part" && mv "$JOB/exit.part" "$JOB/exit"
"""
"""Runs a command and writes down how it ended. A signal to the group ends the command, not the shell."""

NOTHING_TO_DO, INTERRUPTED_CODES = 1, (130, 143)
_CHILD_PROCESSES: dict[str, subprocess.Popen[bytes]] = {}
"""Shells that are children of this process, by the ids of their jobs: they are, whichever server asks."""
_MISSING_FILE_ERRORS = (FileNotFoundError, NotADirectoryError, PermissionError)
_POLL_COUNT, _POLL_SECONDS = 200, 0.02
_REAP_SECONDS = 5.0  # seconds for a process that has let go of its lock to be gone from the table of processes
_TAIL_BYTES = 4096  # bytes of the output in which the reason of a failure is looked for


class JobProcessState(StrEnum):
    """How a job is, or how it ended."""

    RUNNING = "running"
    STOPPING = "stopping"  # it was sent an interrupt, and has not ended
    KILLING = "killing"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    KILLED = "killed"  # or it ended without a word, as when the machine went down

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self in (JobProcessState.RUNNING, JobProcessState.STOPPING, JobProcessState.KILLING)


class JobSpec(Struct, rename="camel", frozen=True, kw_only=True):
    """What a job is: ``command_args`` of the command; ``requested_by``: whose token, or which schedule, asked for it."""

    id: str
    job: str
    crawl_id: str
    configuration: str
    command_args: list[str]
    properties: dict[str, str] = field(default_factory=dict)
    nutch_args: dict[str, str] = field(default_factory=dict)
    requested_by: str = ""
    schedule: str = ""
    start_time: int = 0


class JobProcess(JobSpec, rename="camel", frozen=True, kw_only=True):
    """A job as it is. Times are ms since 1970; ``exit_code``: of the command, None when there is none (yet)."""

    state: JobProcessState
    pid: int | None = None
    finish_time: int | None = None
    exit_code: int | None = None
    message: str = ""


class JobProcessManager:
    """The jobs of a server, in ``<rest.folder>/jobs``.

    ``running``: how many may run at a time; ``keep``: how many that have ended are remembered.
    """

    def __init__(self, state_dir: Path, max_running: int, max_finished: int) -> None:
        self.jobs_dir = state_dir / "jobs"
        self._max_running, self._max_finished = max_running, max_finished
        self._lock = threading.Lock()
        self._finished: dict[str, JobProcess] = {}

    def start(self, spec: JobSpec, conf: Configuration, seeds: list[str] | None = None) -> JobProcess:
        """Run a job; Refusal when too many run. ``conf``: what it is to work with; ``seeds``: lines of its seed file.

        The id of ``spec`` is given here.
        """
        ensure_private_dir(self.jobs_dir)
        with self._lock, file_lock(self.jobs_dir / ".lock"):
            alive = sum(
                _is_alive(folder) for folder in self.jobs_dir.glob("[0-9]*")
            )  # whatever else can be read of them
            if alive >= self._max_running:
                told = f"{alive} jobs run, which is as many as may (rest.jobs.running)"
                raise HttpError(HTTPStatus.TOO_MANY_REQUESTS, told, {"Retry-After": "10"})
            begun = time.time_ns() // 1_000_000
            spec = structs.replace(spec, id=f"{begun:013d}-{secrets.token_hex(3)}", start_time=begun)
            folder = ensure_private_dir(self.jobs_dir / spec.id)
            try:
                with _lock_file(folder / "lock") as lock:  # before one can read what job it is: it would have ended
                    write_job_conf_dir(folder, conf, seeds)
                    write_json(folder / "job.json", spec)
                    _CHILD_PROCESSES[spec.id] = _spawn(folder, lock, conf, spec.command_args)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)  # nothing of it has begun
                raise
        self.prune()
        return self.get(spec.id)

    def get(self, job_id: str) -> JobProcess:
        """Return a job; Refusal when there is none of this id."""
        child = self._read(validate_name(job_id, "job"))
        if child is None:
            raise not_found(f"job {job_id}")
        return child

    def all(self) -> list[JobProcess]:
        """Return all jobs, the newest first."""
        return list(self._iter_all())

    def _iter_all(self) -> Iterator[JobProcess]:
        names = sorted((path.name for path in self.jobs_dir.glob("[0-9]*")), reverse=True)
        return (child for name in names if (child := self._read(name)) is not None)

    def _read(self, job_id: str) -> JobProcess | None:
        if (ended := self._finished.get(job_id)) is not None:
            return ended
        folder = self.jobs_dir / job_id
        spec = read_json(folder / "job.json", JobSpec)
        if spec is None:
            return None
        try:
            child = _read_process(folder, spec)
        except FileNotFoundError:  # another server forgets it just now
            return None
        if not child.state.is_alive:
            self._finished[job_id] = child
            process = _CHILD_PROCESSES.pop(job_id, None)
            if process is not None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_REAP_SECONDS)
        return child

    def stop(self, job_id: str) -> JobProcess:
        """Interrupt a job, as Ctrl-C does: it ends when it is at a good place. One that has ended is left.

        By SIGTERM: in the background of a shell, where a server may stand, no process hears SIGINT.
        """
        child = self.get(job_id)
        if child.state in (JobProcessState.RUNNING, JobProcessState.STOPPING):
            folder = self.jobs_dir / job_id
            _write_stop_request(folder, "stop")
            for _ in range(_POLL_COUNT):
                if _read_text(folder / "pid") or not _is_alive(folder):
                    break
                time.sleep(
                    _POLL_SECONDS
                )  # it has just begun: the shell would hear the signal, and the command would not
            with suppress(OSError, ValueError):
                os.killpg(self._session_id(job_id), signal.SIGTERM)
        return self.get(job_id)

    def abort(self, job_id: str) -> JobProcess:
        """Kill all processes of a job. The next command on the crawl goes on where it was."""
        child = self.get(job_id)
        if child.state.is_alive:
            folder = self.jobs_dir / job_id
            _write_stop_request(folder, "abort")
            for _ in range(_POLL_COUNT):
                with suppress(OSError, ValueError):
                    _kill_session(self._session_id(job_id))
                if not _is_alive(folder) or not self.get(job_id).state.is_alive:
                    break
                time.sleep(_POLL_SECONDS)  # for the kernel, or a process that has begun meanwhile
        return self.get(job_id)

    def _session_id(self, job_id: str) -> int:
        process = _CHILD_PROCESSES.get(job_id)
        return _read_number(self.jobs_dir / job_id / "session") if process is None else process.pid

    def delete(self, job_id: str) -> None:
        """Forget a job that has ended."""
        child = self.get(job_id)
        if child.state.is_alive:
            raise HttpError(HTTPStatus.CONFLICT, f"the job {job_id} runs: stop or abort it first")
        self._finished.pop(job_id, None)
        shutil.rmtree(self.jobs_dir / job_id, ignore_errors=True)

    def prune(self) -> None:
        """Forget the oldest jobs that have ended, beyond as many as are kept, and what never became a job."""
        ended = [child for child in self._iter_all() if not child.state.is_alive]
        for child in ended[self._max_finished :]:
            with suppress(HttpError):  # another server was first
                self.delete(child.id)
        for folder in self.jobs_dir.glob("[0-9]*"):
            with suppress(OSError):
                old = time.time() - folder.stat().st_mtime > STALE_SECONDS
                if old and not _is_alive(folder) and read_json(folder / "job.json", JobSpec) is None:
                    shutil.rmtree(folder, ignore_errors=True)

    def read_output(self, job_id: str, offset: int, limit: int) -> tuple[bytes, int]:
        """Return what a job has printed: at most ``limit`` bytes from ``offset`` on; and how many bytes there are."""
        self.get(job_id)
        try:
            with (self.jobs_dir / job_id / "output").open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(min(offset, size))
                return file.read(limit), size
        except FileNotFoundError:
            return b"", 0


@contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    """Lock a file, for the processes that are given its descriptor meanwhile."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _spawn(folder: Path, lock: int, conf: Configuration, words: list[str]) -> subprocess.Popen[bytes]:
    """Start the processes of a job, which go on holding its lock."""
    given = [str(folder / SEEDS_FILE) if word == SEEDS_FILE else word for word in words]
    command = [sys.executable, "-m", "nutch2py", *given, "--conf", str(folder / "conf")]
    surroundings = {**os.environ, "JOB": str(folder), "BASE": str(conf.base_dir), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        ["sh", "-c", _WRAPPER_SCRIPT, "sh", *command],
        cwd=folder, env=surroundings, pass_fds=[lock], start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _read_process(folder: Path, spec: JobSpec) -> JobProcess:
    """Return how a job is. Whether it runs is looked at first: what it left behind is whole when it does not."""
    alive = _is_alive(folder)
    asked = _read_text(folder / "asked")
    given = {name: getattr(spec, name) for name in spec.__struct_fields__}
    with suppress(ValueError):
        given["pid"] = _read_number(folder / "pid")
    if alive:
        return JobProcess(state={"stop": JobProcessState.STOPPING, "abort": JobProcessState.KILLING}.get(asked, JobProcessState.RUNNING),
                     **given)  # fmt: skip
    code = -1
    with suppress(ValueError):
        code = _read_number(folder / "exit")
    if code < 0:
        ended = max((path.stat().st_mtime_ns for path in folder.iterdir()), default=0) // 1_000_000
        state = JobProcessState.STOPPED if asked == "stop" else JobProcessState.KILLED
        return JobProcess(state=state, finish_time=ended, message=f"it was {state}", **given)
    ended = (folder / "exit").stat().st_mtime_ns // 1_000_000
    state = JobProcessState.FAILED
    if code in (0, NOTHING_TO_DO):
        state = JobProcessState.FINISHED
    elif code in INTERRUPTED_CODES:
        state = JobProcessState.STOPPED
    message = "" if code == 0 else _read_error_line(folder / "output")
    return JobProcess(state=state, finish_time=ended, exit_code=code, message=message, **given)


def _is_alive(folder: Path) -> bool:
    """Tell whether a process holds the lock of a job; OSError when that cannot be found out just now."""
    try:
        lock = os.open(folder / "lock", os.O_RDONLY)
    except _MISSING_FILE_ERRORS:
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
    found = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _session_id(path) == session]
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if not found:
        os.killpg(session, signal.SIGKILL)


def _session_id(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[3])
    except (OSError, IndexError, ValueError):
        return -1


def _write_stop_request(folder: Path, word: str) -> None:
    """Note down what a job was asked; that there is no room for it keeps nobody from stopping one."""
    with suppress(OSError):
        (folder / "asked").write_text(word)


def _read_text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except _MISSING_FILE_ERRORS:  # of any other trouble nothing follows, and how a job has ended is remembered
        return ""


def _read_number(path: Path) -> int:
    return int(_read_text(path))


def _read_error_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    told = [line for line in lines if line.startswith("nutch2py: ")] or [line for line in lines if line.strip()]
    return told[-1].removeprefix("nutch2py: ")[:1000] if told else ""
