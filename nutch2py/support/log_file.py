"""The log file of a command (``--log-file``): output, warnings and errors of jobs with time, level, job and batch.

Based on :mod:`logging`. A handler adds the job and batch of the current context (:func:`log_job_context`) to each
record, redacts secrets and appends to the file. It also writes what libraries and plug-ins log, from WARNING on; ``-v``
prints that on the terminal, too, from INFO on.

All processes that a command starts on this machine append to the same file, each line with one write. They read its
path, and the job and batch of their parent, from the environment at start-up.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple, TextIO

from nutch2py.conf.redaction import redact
from nutch2py.support.terminal import escape_controls

LOG_FILE_VARIABLE, LOG_JOB_VARIABLE = "NUTCH2PY_LOG_FILE", "NUTCH2PY_LOG_WORK"
"""Environment variables: format and path, separated by a colon; job and batch of the parent, separated by a tab."""
LOG_FORMATS = ("text", "json")
_MAX_LINE_LENGTH = 8000  # characters: so that a line is one write
_OUTPUT_LOGGER = "nutch2py.output"
_secrets: set[str] = set()


class LogJob(NamedTuple):
    """Job and batch of log lines, "" for none."""

    job: str
    batch: str


_current_job: ContextVar[LogJob | None] = ContextVar("log_job", default=None)
_running_jobs: list[tuple[int, LogJob]] = []  # of this process, with the id of their thread
_running_jobs_lock = threading.Lock()


def open_log(path: Path, log_format: str) -> None:
    """Write the log of this process and its children to a file; OSError when that cannot be written."""
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    os.environ[LOG_FILE_VARIABLE] = f"{log_format}:{path.absolute()}"
    attach_log_handler()


def close_log() -> None:
    """Stop writing the log of this process."""
    os.environ.pop(LOG_FILE_VARIABLE, None)
    logging.getLogger().removeHandler(_LOG_FILE_HANDLER)


def add_secrets(secrets: Iterable[str]) -> None:
    """Redact these values in the log."""
    _secrets.update(secrets)


def attach_log_handler(secrets: Iterable[str] = ()) -> None:
    """Write records of :mod:`logging` in this process to the log file, if there is one."""
    add_secrets(secrets)
    if LOG_FILE_VARIABLE in os.environ and _LOG_FILE_HANDLER not in logging.getLogger().handlers:
        logging.getLogger().addHandler(_LOG_FILE_HANDLER)


@contextmanager
def log_job_context(job: str, batch: str) -> Iterator[None]:
    """Set job and batch of the log lines of the block, in this context: jobs of other threads keep theirs."""
    current = LogJob(job, batch)
    entry = (threading.get_ident(), current)
    token = _current_job.set(current)
    with _running_jobs_lock:
        _running_jobs.append(entry)
    try:
        yield
    finally:
        with _running_jobs_lock:
            _running_jobs.remove(entry)
        _current_job.reset(token)


def set_log_job(job: LogJob | None) -> None:
    """Set job and batch of the log lines of this thread, which a job has started."""
    _current_job.set(job)


def current_log_job() -> LogJob:
    """Return job and batch of this context.

    A thread without a context of its own, such as a library's, belongs to the job of this process if only one thread
    runs jobs; in a process without jobs, to the job of its parent.
    """
    job = _current_job.get()
    if job is not None:
        return job
    with _running_jobs_lock:
        if _running_jobs:
            threads = {thread for thread, _ in _running_jobs}
            return _running_jobs[-1][1] if len(threads) == 1 else LogJob("", "")
    job_name, _, batch = os.environ.get(LOG_JOB_VARIABLE, "").partition("\t")
    return LogJob(job_name, batch)


def log_job_environment() -> dict[str, str]:
    """Return the environment variables that pass job and batch to a child process; empty without a log file."""
    return {LOG_JOB_VARIABLE: "\t".join(current_log_job())} if LOG_FILE_VARIABLE in os.environ else {}


def write_log_lines(level: str, text: str) -> None:
    """Write lines, each with its prefix, if there is a log file; a full disk does not stop the job."""
    if LOG_FILE_VARIABLE in os.environ:
        number = logging.getLevelNamesMapping()[level]
        _OUTPUT_HANDLER.handle(logging.LogRecord(_OUTPUT_LOGGER, number, "", 0, text, None, None))


class JobContextFilter(logging.Filter):
    """Adds ``job`` and ``batch`` of the current context to records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Accept every record."""
        record.job, record.batch = current_log_job()
        return True


class LogFileFormatter(logging.Formatter):
    """Formats a record as lines with time, level, job and batch each, without secrets. ``log_format``: text or json."""

    def __init__(self, log_format: str) -> None:
        super().__init__()
        self._is_json = log_format == "json"

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record, each with its line feed; records of libraries show their logger's name."""
        text = super().format(record)
        if record.name != _OUTPUT_LOGGER:
            text = f"{record.name}: {text}"
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        moment, level = f"{seconds}.{int(record.created * 1000) % 1000:03d}Z", record.levelname
        job, batch = str(vars(record)["job"]), str(vars(record)["batch"])
        lines = [line[:_MAX_LINE_LENGTH] for line in redact(text, _secrets).splitlines() if line.strip()]
        if self._is_json:
            rows = [
                json.dumps({"time": moment, "level": level, "job": job, "batch": batch, "message": line})
                for line in lines
            ]
        else:
            rows = [escape_controls(f"{moment} {level} {job or '-'} {batch or '-'} {line}") for line in lines]
        return "".join(f"{row}\n" for row in rows)


_FORMATTERS = {name: LogFileFormatter(name) for name in LOG_FORMATS}


class _LogFileHandler(logging.Handler):
    """Appends records to the log file that the environment names."""

    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self.addFilter(JobContextFilter())

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; one that cannot be formatted or written is skipped, as logging itself does."""
        with suppress(Exception):
            log_format, _, path = os.environ[LOG_FILE_VARIABLE].partition(":")
            lines = _FORMATTERS[log_format].format(record)
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                for line in lines.splitlines(keepends=True):
                    os.write(file, line.encode("utf-8", "backslashreplace"))
            finally:
                os.close(file)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Prints records on standard error, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        return escape_controls(redact(f"{record.levelname} {record.name}: {super().format(record)}", _secrets))


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Print the records of :mod:`logging` in the block, from INFO on; the log file has them, too."""
    root, printer = logging.getLogger(), _StderrHandler(sys.stderr)
    before = root.level, _LOG_FILE_HANDLER.level
    root.addHandler(printer)
    root.setLevel(logging.INFO)
    _LOG_FILE_HANDLER.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(printer)
        root.setLevel(before[0])
        _LOG_FILE_HANDLER.setLevel(before[1])


_LOG_FILE_HANDLER = _LogFileHandler(logging.WARNING)
_OUTPUT_HANDLER = _LogFileHandler()
