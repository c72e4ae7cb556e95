"""The log file of a command (``--log-file``): what jobs say, warnings and failures, each with time, level, job, batch.

The terminal shows what it always does, and with ``-v`` also what is logged by Python's logging. Every process that a
command starts on this machine appends to the same file, a line at a time: it finds it in its environment. What plug-ins
log by Python's logging, from WARNING on, is there, too.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from nutch2py.conf.redaction import redact

LOG_FILE_VARIABLE, LOG_JOB_VARIABLE = "NUTCH2PY_LOG_FILE", "NUTCH2PY_LOG_WORK"
"""Variables of the environment: format and path, between them a colon; job and batch, between them a tab."""
LOG_FORMATS = ("text", "json")
_MAX_LINE_LENGTH = 8000  # characters: so that a line is one write
_secrets: set[str] = set()


def open_log(path: Path, log_format: str) -> None:
    """Let this process and those that it starts write to a file; OSError when that cannot be written."""
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    os.environ[LOG_FILE_VARIABLE] = f"{log_format}:{path.absolute()}"
    attach_log_handler()


def close_log() -> None:
    """Let this process write no more."""
    os.environ.pop(LOG_FILE_VARIABLE, None)
    os.environ.pop(LOG_JOB_VARIABLE, None)
    logging.getLogger().removeHandler(_LOG_FILE_HANDLER)


def add_secrets(secrets: Iterable[str]) -> None:
    """Let what is written not show these values."""
    _secrets.update(secrets)


def attach_log_handler(secrets: Iterable[str] = ()) -> None:
    """Take what is logged by Python's logging in this process, if there is a log file."""
    add_secrets(secrets)
    if LOG_FILE_VARIABLE in os.environ and _LOG_FILE_HANDLER not in logging.getLogger().handlers:
        logging.getLogger().addHandler(_LOG_FILE_HANDLER)


@contextmanager
def log_job_context(job: str, batch: str) -> Iterator[None]:
    """Let the lines of the block be those of a job."""
    before = os.environ.get(LOG_JOB_VARIABLE)
    if LOG_FILE_VARIABLE in os.environ:
        os.environ[LOG_JOB_VARIABLE] = f"{job}\t{batch}"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(LOG_JOB_VARIABLE, None)
        elif LOG_FILE_VARIABLE in os.environ:
            os.environ[LOG_JOB_VARIABLE] = before


def write_log_lines(level: str, text: str) -> None:
    """Write lines, each with its head, if there is a log file; a disk that takes none is no reason to stop."""
    place = os.environ.get(LOG_FILE_VARIABLE)
    if not place:
        return
    form, _, path = place.partition(":")
    job, _, batch = os.environ.get(LOG_JOB_VARIABLE, "").partition("\t")
    now = time.time()
    moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
    lines = [line[:_MAX_LINE_LENGTH] for line in redact(text, _secrets).splitlines() if line.strip()]
    if form == "json":
        told = [
            json.dumps({"time": moment, "level": level, "job": job, "batch": batch, "message": line}) for line in lines
        ]
    else:
        told = [f"{moment} {level} {job or '-'} {batch or '-'} {line}" for line in lines]
    with suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            for line in told:
                os.write(file, f"{line}\n".encode("utf-8", "backslashreplace"))
        finally:
            os.close(file)


class _LogFileHandler(logging.Handler):
    """Gives what Python's logging takes to the log file."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; one that cannot be formatted is left out, as logging itself would do."""
        with suppress(Exception):
            write_log_lines(record.levelname, f"{record.name}: {self.format(record)}")


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Prints what is logged on standard error, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        return redact(f"{record.levelname} {record.name}: {super().format(record)}", _secrets)


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Print in the block what this process logs by Python's logging, from INFO on; the log file has that, too."""
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
