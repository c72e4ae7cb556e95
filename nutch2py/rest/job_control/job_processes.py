"""Runs jobs as child processes, each with its own session and folder, so that they survive a restart of the server.

The folder holds the job's specification, its configuration (command lines carry no property), its output and its exit
code, which a shell writes when the command ends. The processes of a job hold a lock on a file of the folder, which the
kernel releases however they end: unlike process ids, which are reused, the lock shows reliably whether a job runs.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from xml.sax.saxutils import escape

from msgspec import Struct, field, structs

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.rest.http_error import HttpError, not_found
from nutch2py.rest.job_control.job_requests import SEEDS_FILE
from nutch2py.rest.state_dir import STALE_SECONDS, ensure_private_dir, read_json, validate_name, write_json
from nutch2py.support.file_locks import file_lock, is_file_locked

_SITE_FILE = "nutch-site.xml"
_RESERVED_BYTES = {"session": 16, "pid": 16, "asked": 16, "exit.part": 16, "tail": 4096}
"""Files whose space a job has from its start, as blanks that are overwritten: a full disk loses no exit code."""


def write_job_conf_dir(job_dir: Path, conf: Configuration, seeds: list[str] | None) -> None:
    """Write the configuration folder of a job, and its seed file unless ``seeds`` is None."""
    ensure_private_dir(job_dir / "conf")
    shipped = data_dir("conf")
    for site in (each for each in conf.conf_dirs if each.resolve() != shipped.resolve()):
        for path in site.iterdir():
            if path.name != _SITE_FILE and not (job_dir / "conf" / path.name).exists():
                (job_dir / "conf" / path.name).symlink_to(path.resolve())
    write_json(job_dir / "conf" / _SITE_FILE, _site_xml(conf).encode("utf-8"))
    if seeds is not None:
        write_json(job_dir / SEEDS_FILE, "".join(f"{seed}\n" for seed in seeds).encode("utf-8"))


def _site_xml(conf: Configuration) -> str:
    """Return nutch-site.xml with all properties that differ from the shipped defaults, variables unexpanded."""
    lines = ["<?xml version='1.0' encoding='UTF-8'?>", "<configuration>"]
    for name, value in conf.site_properties().items():
        shown = escape(value, {"\r": "&#13;"})
        lines.append(f"<property><name>{escape(name)}</name><value>{shown}</value></property>")
    return "\n".join([*lines, "</configuration>\n"])


_WRAPPER_SCRIPT = """trap : INT TERM HUP
echo $$ 1<>session
cd "$BASE" || exit
{
  trap : INT TERM HUP
  sh -c 'echo $$ 1<>"$JOB/pid"; exec "$@"' sh "$@" 2>&1 </dev/null
  echo $? 1<>"$JOB/exit.part"
} | {
  trap '' INT TERM HUP
  exec "$1" -ISc "$OUTPUT_LIMITER" "$OUTPUT_HEAD" "$OUTPUT_TAIL"
} >>"$JOB/output" 2>/dev/null
mv "$JOB/exit.part" "$JOB/exit"
"""
"""Runs a command, keeps the start and the end of its output, and records its exit code.

A signal to the process group ends the command, not the shells, nor what keeps the output. The limit of the output
holds without the server, which the job outlives.
"""
_OUTPUT_LIMITER = """
import os, sys
left, keep, rest, last, omitted, lost = int(sys.argv[1]), int(sys.argv[2]), b"", b"", False, ""
def write(data):
    global lost
    if lost and data:
        data = f"\\n[output lost: {lost}]\\n".encode() + data
    try:
        while data:
            data = data[os.write(1, data):]
            lost = ""
    except OSError as error:  # a full disk must not stop the job
        lost = error.strerror
while data := os.read(0, 65536):
    write(data[:left])
    rest += data[left:]
    left = max(left - len(data), 0)
    if len(rest) > keep and not omitted:
        omitted = True
        write(b"\\n[output omitted: over rest.job.output.bytes]\\n")
    rest = rest[-keep:]
    last = (last + data)[-keep:]
write(rest or (last if lost else b""))
if lost:
    os.write(os.open(os.environ["JOB"] + "/tail", os.O_WRONLY), last[-4000:] + b"\\n")
"""
"""Copies its input at once, so that the output can be followed; of what is over the limit it keeps the end.

What a full disk does not take is lost, but for the end, which has the error message.
"""
_OMISSION_BYTES = 100  # of the line that stands for omitted output, and of the processes' numbers

NOTHING_TO_DO, INTERRUPTED_CODES = 1, (130, 143)
_CHILD_PROCESSES: dict[str, subprocess.Popen[bytes]] = {}
"""Wrapper shells that are children of this process, by job id; shared by all servers of the process."""
_OLD_SPEC_KEYS = {"words": "commandArgs", "args": "nutchArgs", "by": "requestedBy", "begun": "startTime"}
"""Keys in job.json files of older versions."""
_MISSING_FILE_ERRORS = (FileNotFoundError, NotADirectoryError, PermissionError)
_POLL_COUNT, _POLL_SECONDS = 200, 0.02
_REAP_SECONDS = 5.0  # for a process that has released its lock to exit
_TAIL_BYTES = 4096  # end of the output that is kept, and searched for the error message
DEFAULT_OUTPUT_BYTES = 16 << 20
"""Bytes of the output of a job."""


class JobProcessState(StrEnum):
    """State of a job, while it runs and after it ended."""

    RUNNING = "running"
    STOPPING = "stopping"  # interrupted, but still running
    KILLING = "killing"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    KILLED = "killed"  # or ended without an exit code, for instance by a power failure

    @property
    def is_alive(self) -> bool:
        """Whether the job is still running."""
        return self in (JobProcessState.RUNNING, JobProcessState.STOPPING, JobProcessState.KILLING)


class JobSpec(Struct, rename="camel", frozen=True, kw_only=True):
    """Specification of a job. ``requested_by``: name of the caller's token. ``start_time``: ms since 1970."""

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
    """A job with its state. Times are ms since 1970. ``exit_code``: None while it runs, and when it was killed."""

    state: JobProcessState
    pid: int | None = None
    finish_time: int | None = None
    exit_code: int | None = None
    message: str = ""


class JobProcessManager:
    """The jobs of a server, in ``<rest.folder>/jobs``.

    Args:
        state_dir: The folder ``rest.folder``.
        max_running: Limit of concurrent jobs; as an attribute, it may change while the server runs.
        max_finished: Finished jobs that are kept.
        max_bytes: Limit of the folders of all jobs; the oldest finished jobs beyond it are deleted.
        max_output_bytes: Limit of the stored output of a job; the middle of a longer one is omitted.
    """

    def __init__(
        self,
        state_dir: Path,
        max_running: int,
        max_finished: int,
        max_bytes: int,
        max_output_bytes: int = DEFAULT_OUTPUT_BYTES,
    ) -> None:
        self.jobs_dir = state_dir / "jobs"
        self.max_running, self._max_finished, self._max_bytes = max_running, max_finished, max_bytes
        self._max_output_bytes = max_output_bytes
        self._lock = threading.Lock()
        self._finished: dict[str, JobProcess] = {}
        self._finished_bytes: dict[str, int] = {}

    def start(self, spec: JobSpec, conf: Configuration, seeds: list[str] | None = None) -> JobProcess:
        """Start a job.

        Args:
            spec: the job; its id and start time are set here.
            conf: its configuration.
            seeds: the lines of its seed file, None for a job without seeds.

        Raises:
            HttpError: too many jobs are running, or their folders are too large.
        """
        ensure_private_dir(self.jobs_dir)
        _reap(0.0, *_CHILD_PROCESSES)
        with self._lock, file_lock(self.jobs_dir / ".lock"):
            # unreadable jobs count too
            alive = [folder for folder in self.jobs_dir.glob("[0-9]*") if _is_alive(folder)]
            if len(alive) >= self.max_running:
                message = f"too many jobs: {len(alive)} are running (rest.jobs.running)"
                raise HttpError(HTTPStatus.TOO_MANY_REQUESTS, message, {"Retry-After": "10"})
            used = sum(map(self._reserved_bytes, alive)) + sum(len(seed.encode()) + 1 for seed in seeds or ())
            used += self._output_bytes()
            if used > self._max_bytes:
                message = (
                    f"the running jobs and this one may use {used:,} of {self._max_bytes:,} bytes (rest.jobs.bytes; "
                    f"{self._output_bytes():,} each for its output, rest.job.output.bytes): wait or stop one"
                )
                raise HttpError(HTTPStatus.INSUFFICIENT_STORAGE, message, {"Retry-After": "60"})
            now = time.time_ns() // 1_000_000
            spec = structs.replace(spec, id=f"{now:013d}-{secrets.token_hex(3)}", start_time=now)
            folder = ensure_private_dir(self.jobs_dir / spec.id)
            try:
                with file_lock(folder / "lock") as lock:  # before job.json exists: an unlocked job counts as ended
                    write_job_conf_dir(folder, conf, seeds)
                    _reserve_space(folder)
                    write_json(folder / "job.json", spec)
                    _CHILD_PROCESSES[spec.id] = _spawn(folder, lock, conf, spec.command_args, self._output_bytes())
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)  # the job has not started
                raise
        self.prune()
        return self.get(spec.id)

    def _output_bytes(self) -> int:
        """Return the limit of the output of a job: as many jobs as may run fit into the limit of all folders."""
        return min(self._max_output_bytes, self._max_bytes // max(self.max_running, 1))

    def _reserved_bytes(self, folder: Path) -> int:
        """Return the bytes that the folder of a running job has, or can still grow to."""
        output = 0
        with suppress(OSError):
            output = (folder / "output").lstat().st_size
        return _folder_bytes(folder) - output + max(output, self._output_bytes())

    def get(self, job_id: str) -> JobProcess:
        """Return a job; raise HttpError when no job has this id."""
        job = self._read(validate_name(job_id, "job"))
        if job is None:
            raise not_found(f"job {job_id}")
        return job

    def all(self) -> list[JobProcess]:
        """Return all jobs, newest first."""
        return list(self._iter_all())

    def _iter_all(self) -> Iterator[JobProcess]:
        names = sorted((path.name for path in self.jobs_dir.glob("[0-9]*")), reverse=True)
        return (job for name in names if (job := self._read(name)) is not None)

    def _read(self, job_id: str) -> JobProcess | None:
        if (finished := self._finished.get(job_id)) is not None:
            return finished
        folder = self.jobs_dir / job_id
        spec = _read_spec(folder)
        if spec is None:
            return None
        try:
            job = _read_process(folder, spec)
        except FileNotFoundError:  # another server is deleting it
            return None
        if not job.state.is_alive:
            self._finished[job_id] = job
            _reap(_REAP_SECONDS, job_id)
        return job

    def stop(self, job_id: str) -> JobProcess:
        """Interrupt a job, as Ctrl-C does: it stops at its next safe point. A job that has ended is unchanged.

        It sends SIGTERM, because processes started by a background shell ignore SIGINT.
        """
        job = self.get(job_id)
        if job.state in (JobProcessState.RUNNING, JobProcessState.STOPPING):
            folder = self.jobs_dir / job_id
            _write_stop_request(folder, "stop")
            for _ in range(_POLL_COUNT):
                if _read_text(folder / "pid") or not _is_alive(folder):
                    break
                time.sleep(_POLL_SECONDS)  # just started: the signal would reach only the shell, not the command
            with suppress(OSError, ValueError):
                os.killpg(self._session_id(job_id), signal.SIGTERM)
        return self.get(job_id)

    def abort(self, job_id: str) -> JobProcess:
        """Kill all processes of a job. The next command on the crawl resumes its work."""
        job = self.get(job_id)
        if job.state.is_alive:
            folder = self.jobs_dir / job_id
            _write_stop_request(folder, "abort")
            for _ in range(_POLL_COUNT):
                with suppress(OSError, ValueError):
                    _kill_session(self._session_id(job_id))
                if not _is_alive(folder) or not self.get(job_id).state.is_alive:
                    break
                time.sleep(_POLL_SECONDS)  # the kernel needs a moment, or a process was started meanwhile
        return self.get(job_id)

    def _session_id(self, job_id: str) -> int:
        process = _CHILD_PROCESSES.get(job_id)
        return _read_number(self.jobs_dir / job_id / "session") if process is None else process.pid

    def delete(self, job_id: str) -> None:
        """Delete a job that has ended."""
        job = self.get(job_id)
        if job.state.is_alive:
            raise HttpError(HTTPStatus.CONFLICT, f"the job {job_id} is running: stop or abort it first")
        self._finished.pop(job_id, None)
        shutil.rmtree(self.jobs_dir / job_id, ignore_errors=True)

    def prune(self) -> None:
        """Delete the oldest finished jobs beyond the limits, and folders of jobs that never started."""
        jobs = [*self._iter_all()]
        used = sum(_folder_bytes(self.jobs_dir / job.id) for job in jobs if job.state.is_alive)
        finished = [job for job in jobs if not job.state.is_alive]
        known, self._finished_bytes = self._finished_bytes, {}
        for number, job in enumerate(finished):
            size = known[job.id] if job.id in known else _folder_bytes(self.jobs_dir / job.id)
            self._finished_bytes[job.id] = size
            used += size
            if number >= self._max_finished or used > self._max_bytes:
                with suppress(HttpError):  # another server was first
                    self.delete(job.id)
        for folder in self.jobs_dir.glob("[0-9]*"):
            with suppress(OSError):
                old = time.time() - folder.stat().st_mtime > STALE_SECONDS
                if old and not _is_alive(folder) and _read_spec(folder) is None:
                    shutil.rmtree(folder, ignore_errors=True)

    def read_output(self, job_id: str, offset: int, limit: int) -> tuple[bytes, int]:
        """Return at most ``limit`` bytes of a job's output from ``offset`` on, and the size of the output."""
        self.get(job_id)
        try:
            with (self.jobs_dir / job_id / "output").open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(min(offset, size))
                return file.read(limit), size
        except FileNotFoundError:
            return b"", 0


def _folder_bytes(folder: Path) -> int:
    """Return the bytes of the files of a job; links to the server's configuration do not count."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            size += path.lstat().st_size
    return size


def _reap(seconds: float, *job_ids: str) -> None:
    """Wait at most ``seconds`` for each of these shells, and forget those that have exited."""
    for job_id in job_ids:
        process = _CHILD_PROCESSES.get(job_id)
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
                _CHILD_PROCESSES.pop(job_id, None)


def _reserve_space(folder: Path) -> None:
    """Create the files that the processes of a job write, with blanks in the place of their content."""
    (folder / "output").touch(0o600)
    for name, size in _RESERVED_BYTES.items():
        (folder / name).write_bytes(b" " * (size - 1) + b"\n")


def _read_spec(folder: Path) -> JobSpec | None:
    return read_json(folder / "job.json", JobSpec, _OLD_SPEC_KEYS)


def _spawn(
    folder: Path, lock: int, conf: Configuration, command_args: list[str], output_bytes: int
) -> subprocess.Popen[bytes]:
    """Start the processes of a job, which inherit its lock."""
    tail = max(min(_TAIL_BYTES, output_bytes // 2), 1)
    limits = {
        "OUTPUT_LIMITER": _OUTPUT_LIMITER,
        "OUTPUT_HEAD": str(max(output_bytes - tail - _OMISSION_BYTES, 1)),
        "OUTPUT_TAIL": str(tail),
    }
    command = job_command(command_args, folder)
    environment = {**os.environ, "JOB": str(folder), "BASE": str(conf.base_dir), "PYTHONUNBUFFERED": "1", **limits}
    return subprocess.Popen(  # noqa: S603 - the shell reads a constant; the arguments are words, not code
        ["/bin/sh", "-c", _WRAPPER_SCRIPT, "sh", *command],
        cwd=folder, env=environment, pass_fds=[lock], start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def job_command(command_args: list[str], folder: Path) -> list[str]:
    """Return the words that run a job with the configuration of its folder."""
    args = [str(folder / SEEDS_FILE) if arg == SEEDS_FILE else arg for arg in command_args]
    return [sys.executable, "-m", "nutch2py", *args, "--conf", str(folder / "conf")]


def _read_process(folder: Path, spec: JobSpec) -> JobProcess:
    """Return a job with its state. The lock is checked first: the files of an ended job are complete."""
    alive = _is_alive(folder)
    stop_request = _read_text(folder / "asked")
    values = {name: getattr(spec, name) for name in spec.__struct_fields__}
    with suppress(ValueError):
        values["pid"] = _read_number(folder / "pid")
    if alive:
        states = {"stop": JobProcessState.STOPPING, "abort": JobProcessState.KILLING}
        return JobProcess(state=states.get(stop_request, JobProcessState.RUNNING), **values)
    code = -1
    with suppress(ValueError):
        code = _read_number(folder / "exit")
    if code < 0:
        finish_time = max((path.stat().st_mtime_ns for path in folder.iterdir()), default=0) // 1_000_000
        state = JobProcessState.STOPPED if stop_request == "stop" else JobProcessState.KILLED
        return JobProcess(state=state, finish_time=finish_time, message=f"the job was {state}", **values)
    finish_time = (folder / "exit").stat().st_mtime_ns // 1_000_000
    state = JobProcessState.FAILED
    if code in (0, NOTHING_TO_DO):
        state = JobProcessState.FINISHED
    elif code in INTERRUPTED_CODES:
        state = JobProcessState.STOPPED
    message = "" if code == 0 else _read_error_line(folder / "tail") or _read_error_line(folder / "output")
    return JobProcess(state=state, finish_time=finish_time, exit_code=code, message=message, **values)


def _is_alive(folder: Path) -> bool:
    """Return whether a process holds the lock of a job; raise OSError when that is unknown."""
    return is_file_locked(folder / "lock")


def _kill_session(session: int) -> None:
    """Kill all processes of a session; without ``/proc``, its first process group."""
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _session_id(path) == session]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if not pids:
        os.killpg(session, signal.SIGKILL)


def _session_id(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[3])
    except (OSError, IndexError, ValueError):
        return -1


def _write_stop_request(folder: Path, word: str) -> None:
    """Record a stop or an abort in the reserved space; a full disk must not prevent it."""
    with suppress(OSError), open(os.open(folder / "asked", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:  # noqa: PTH123
        file.write(f"{word}\n".encode())


def _read_text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except _MISSING_FILE_ERRORS:  # other errors propagate: the state of an ended job is cached
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
    messages = [line for line in lines if line.startswith("nutch2py: ")] or [line for line in lines if line.strip()]
    return messages[-1].removeprefix("nutch2py: ")[:1000] if messages else ""
