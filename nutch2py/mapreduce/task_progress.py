"""Progress of tasks: rows done, log lines, and the error that ended a task, from tasks to the driver.

Tasks run inside the driver (inline), as its children (local) or elsewhere (Hadoop). The first two share a directory,
the channel: each task writes its row count to its own file and appends log lines to a common one. On Hadoop there is no
channel: counts become the task's status line, which also prevents a timeout, and lines go to the task's log.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TextIO

import orjson

from nutch2py import errors
from nutch2py.errors import NutchError
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.support import log_file
from nutch2py.support.reporting import Progress, current_reporter
from nutch2py.support.retry import failed_attempt_count
from nutch2py.support.terminal import StyledText, escape_controls

_ERASE_LINE = StyledText("\r\x1b[2K")
_COUNT_INTERVAL = 0.25  # seconds between two updates of a count
_STATUS_INTERVAL = 10.0  # seconds between two status lines on Hadoop
_IDLE_CPU_SECONDS = 0.02  # CPU seconds in a status interval below which a task without rows or notes counts as hanging
TASK_ERROR_PREFIX = "nutch2py.error "
"""Prefix of the line with the error of a task, as JSON, on its standard error; on Hadoop."""


class TaskChannel:
    """The task's end of the channel."""

    def __init__(self, folder: str, name: str, set_status: Callable[[str], None]) -> None:
        self._dir = Path(folder) if folder else None
        self._set_status = set_status
        self._name, self._failed_plugins = name, list[str]()
        self._rows, self._next_publish = 0, 0.0
        self._note, self._note_count = "", 0
        self._note_file = self._dir / f"note-{os.getpid()}-{name}" if self._dir else None
        self._queues_file = self._dir / f"queues-{os.getpid()}-{name}" if self._dir else None
        self._closed = threading.Event()
        self._count_file: int | None = None
        self._log_file: int | None = None
        if self._dir is not None:
            flags = os.O_CREAT | os.O_WRONLY
            self._count_file = os.open(self._dir / f"rows-{os.getpid()}-{name}", flags, 0o600)
            self._log_file = os.open(self._dir / "log", flags | os.O_APPEND, 0o600)
        else:
            threading.Thread(target=self._report_status, name="status", daemon=True).start()

    def _report_status(self) -> None:
        """Report the status while the task is active: Hadoop kills a silent task after its timeout.

        A note counts as activity, because waiting politely takes neither rows nor CPU time. Notes come from the task's
        own work, never from a background thread. A retry of an unavailable service counts, too; it has a timeout of its
        own.
        """
        before, cpu = (-1, 0, 0), 0.0
        while not self._closed.wait(_STATUS_INTERVAL):
            done, now = (self._rows, self._note_count, failed_attempt_count()), time.process_time()
            if done != before or now - cpu > _IDLE_CPU_SECONDS:
                self._publish()
            before, cpu = done, now

    def advance(self, rows: int = 1) -> None:
        """Add to the count of rows done."""
        self._rows += rows
        if self._dir is None:
            return
        now = time.monotonic()
        if now >= self._next_publish:
            self._next_publish = now + _COUNT_INTERVAL
            self._publish()

    def _publish(self) -> None:
        if self._count_file is not None:
            os.pwrite(self._count_file, b"%020d" % self._rows, 0)
        else:
            self._set_status(f"{self._rows} rows{', ' if self._note else ''}{self._note}")

    def set_note(self, text: str) -> None:
        """Set a short status text, shown next to the rows until the next note; counts as activity."""
        self._note = text
        self._note_count += 1
        if self._note_file is not None:
            part = self._note_file.with_name(f"part-{self._note_file.name}")
            part.write_text(text, encoding="utf-8")
            part.replace(self._note_file)

    def save_counters(self, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Save all counters of the task so far, for the log of a job that does not finish; not on Hadoop."""
        if self._dir is not None:
            name = f"counters-{os.getpid()}-{self._name}"
            part = self._dir / f"part-{name}"
            part.write_bytes(orjson.dumps(counters))
            part.replace(self._dir / name)

    def save_queues(self, queues: Sequence[Mapping[str, object]]) -> None:
        """Save the state of the task's fetch queues, for the log of a running job; not on Hadoop."""
        if self._queues_file is not None:
            part = self._queues_file.with_name(f"part-{self._queues_file.name}")
            part.write_bytes(orjson.dumps(queues))
            part.replace(self._queues_file)

    def log_line(self, text: str) -> None:
        """Write a line to the job's log."""
        if self._log_file is not None:
            os.write(self._log_file, (text.replace("\n", " ") + "\n").encode("utf-8", "replace"))
        else:
            print(text, file=sys.stderr)

    def report_error(self, error: NutchError, trace: str = "") -> None:
        """Report to the driver why the task fails, for users; ``trace`` is for developers."""
        message = orjson.dumps({"kind": type(error).__name__, "text": str(error), "trace": trace})
        if self._dir is None:
            print(f"{TASK_ERROR_PREFIX}{message.decode()}", file=sys.stderr, flush=True)
            return
        part = self._dir / f"part-{os.getpid()}"
        part.write_bytes(message)
        part.replace(self._dir / f"error-{os.getpid()}")

    def report_plugin_failure(self, error: PluginError) -> None:
        """Report the first failure of a plug-in to the driver; on Hadoop it is only in the task's log."""
        if self._dir is not None:
            message = orjson.dumps((error.plugin_id, str(error)))
            (self._dir / f"plugin-{os.getpid()}-{self._name}-{len(self._failed_plugins)}").write_bytes(message)
            self._failed_plugins.append(error.plugin_id)

    def close(self) -> None:
        """Write the last count."""
        self._closed.set()
        self._publish()
        for file in (self._note_file, self._queues_file):
            if file is not None:
                file.unlink(missing_ok=True)
        for number in (self._count_file, self._log_file):
            if number is not None:
                os.close(number)
        self._count_file = self._log_file = None


class ProgressMonitor:
    """The driver's end: shows progress, prints the log lines, and keeps the tasks' error.

    On a terminal it updates one line; otherwise it prints a line every ten seconds. Progress goes to standard error,
    log lines to standard output; or all to the :class:`nutch2py.support.reporting.Reporter` of the caller.
    """

    def __init__(self, channel_dir: Path, title: str, expected_rows: int | None) -> None:
        self.channel_dir, self._title, self._expected = channel_dir, title, expected_rows
        self._out, self._err = sys.stdout, sys.stderr
        self._reporter = current_reporter()
        self._offset, self._incomplete_line = 0, b""
        self._started = time.monotonic()
        self._last_shown = 0.0
        self._is_terminal = _is_terminal(self._err)
        self._has_drawn_line = False
        self._job_note = ""
        self._stop = threading.Event()
        self._callback_error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._callback_error is not None:  # a callback has failed: do not call it again
            if kind is None:
                raise self._callback_error
            return
        self._relay_log()
        self._erase_line()
        if kind is None and self._reporter is not None:
            self._reporter.report_progress(self._current_progress())

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.1):
                self._relay_log()
                self._show()
        except Exception as error:  # noqa: BLE001 - of a callback: raised where the job was called
            self._callback_error = error

    def _relay_log(self) -> None:
        with contextlib.suppress(FileNotFoundError), (self.channel_dir / "log").open("rb") as log:
            log.seek(self._offset)
            data = log.read()
            if data:
                self._offset += len(data)
                complete, newline, self._incomplete_line = (self._incomplete_line + data).rpartition(b"\n")
                self._print_log((complete + newline).decode("utf-8", "replace"))

    def _print_log(self, text: str) -> None:
        log_file.write_log_lines("INFO", text)
        if self._reporter is None:
            self._erase_line()
            self._out.write(escape_controls(text))
            self._out.flush()
        else:
            for line in text.splitlines():
                self._reporter.report_line(line)

    def row_count(self) -> int:
        """Return the number of rows that the tasks have done."""
        total = 0
        for path in self.channel_dir.glob("rows-*"):
            with contextlib.suppress(OSError, ValueError):
                total += int(path.read_bytes() or b"0")
        return total

    def saved_counters(self) -> dict[str, dict[str, int]]:
        """Return the sums of the counters that tasks saved."""
        sums: dict[str, dict[str, int]] = {}
        for path in self.channel_dir.glob("counters-*"):
            with contextlib.suppress(OSError, ValueError):
                for group, names in orjson.loads(path.read_bytes()).items():
                    for name, amount in names.items():
                        sums.setdefault(group, {})[name] = sums.get(group, {}).get(name, 0) + amount
        return sums

    def saved_queues(self) -> list[dict[str, object]]:
        """Return the fetch queues that running tasks saved."""
        found: list[dict[str, object]] = []
        for path in sorted(self.channel_dir.glob("queues-*")):
            with contextlib.suppress(OSError, ValueError):
                found += orjson.loads(path.read_bytes())
        return found

    def set_note(self, text: str) -> None:
        """Show ``text`` instead of a row count, for tasks that run elsewhere."""
        self._job_note = text

    def log_line(self, text: str) -> None:
        """Print a line of the job's log with the job's title as prefix."""
        with (self.channel_dir / "log").open("a", encoding="utf-8") as log:
            log.write(f"{self._title}: {text}\n")

    def task_notes(self) -> list[str]:
        """Return the notes of the tasks."""
        found = []
        for path in sorted(self.channel_dir.glob("note-*")):
            with contextlib.suppress(OSError):
                found.append(path.read_text(encoding="utf-8"))
        return found

    def current_notes(self) -> list[str]:
        """Return the notes of the tasks, or the status of tasks that run elsewhere."""
        return [self._job_note] if self._job_note else self.task_notes()

    def _show(self) -> None:
        now = time.monotonic()
        interval = 0.5 if self._is_terminal or self._reporter is not None else 10.0
        if now - max(self._last_shown, self._started) < interval:
            return
        self._last_shown = now
        if self._reporter is not None:
            self._reporter.report_progress(self._current_progress())
            return
        rows = self.row_count()
        rate = rows / (now - self._started)
        text = f"{self._title}: {rows:,} rows, {rate:,.0f} rows/s"
        if self._expected and rows <= self._expected:
            share = 100 * rows // self._expected
            text = f"{self._title}: {rows:,} of {self._expected:,} rows ({share} %), {rate:,.0f} rows/s"
            if rate > 0:
                text += f", {(self._expected - rows) / rate:,.0f} s left"
        if self._job_note:
            text = f"{self._title}: {self._job_note}, {now - self._started:,.0f} s"
        if self._is_terminal:
            if said := self.task_notes():
                done = f"{100 * rows // self._expected} %" if self._expected else f"{rows:,} rows"
                text = f"{self._title}: {done}, {' | '.join(said)}"
            text = text[: _terminal_columns(self._err) - 1]  # a wrapped line could not be overwritten
            text, self._has_drawn_line = StyledText(f"{_ERASE_LINE}{escape_controls(text)}"), True
        elif rows or self._job_note:
            text += "\n"
        else:
            return
        with contextlib.suppress(OSError):  # a full disk must not stop the job because of a progress line
            self._err.write(text)
            self._err.flush()

    def _current_progress(self) -> Progress:
        seconds = time.monotonic() - self._started
        return Progress(self._title, self.row_count(), self._expected, seconds, tuple(self.current_notes()))

    def _erase_line(self) -> None:
        if self._has_drawn_line:
            with contextlib.suppress(OSError):
                self._err.write(_ERASE_LINE)
                self._err.flush()
            self._has_drawn_line = False

    def first_plugin_failures(self) -> dict[str, str]:
        """Return the first failure of each plug-in that failed in a task, by plug-in id."""
        return dict(orjson.loads(path.read_bytes()) for path in sorted(self.channel_dir.glob("plugin-*"), reverse=True))

    def find_task_error(self) -> NutchError | None:
        """Return the error that a task reported, if any."""
        for path in sorted(self.channel_dir.glob("error-*")):
            return decode_error(path.read_bytes())
        return None


_ERROR_TYPES: dict[str, type[NutchError]] = {
    name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, NutchError)
}
"""Error classes that a task may name: a task reports what its input caused, so that it must name no other object."""


def decode_error(message: bytes) -> NutchError:
    """Decode an error of :meth:`TaskChannel.report_error`."""
    fields = orjson.loads(message)
    kind = _ERROR_TYPES.get(fields["kind"], NutchError)
    error: NutchError = kind(fields["text"])
    if fields["trace"]:
        error.add_note(fields["trace"])
    return error


def _terminal_columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


_watched_drivers: set[tuple[int, str]] = set()


def watch_driver(pid: int, channel_dir: str) -> None:
    """Stop this task when the driver exits, or removes ``channel_dir`` because it gave the job up.

    mrjob lets the tasks of a killed driver, and those in parallel to a failed task, run to their end.
    """
    if (os.getpid(), channel_dir) in _watched_drivers:  # a Spark worker runs one task after the other
        return
    _watched_drivers.add((os.getpid(), channel_dir))
    parent = os.getppid()

    def watch() -> None:
        while True:
            time.sleep(0.2)
            if os.getppid() != parent:  # the fork server has ended with a driver that is still a zombie
                os._exit(1)
            try:
                os.kill(pid, 0)
                os.stat(channel_dir)  # noqa: PTH116
            except (ProcessLookupError, FileNotFoundError):
                os._exit(1)

    threading.Thread(target=watch, name="driver-watch", daemon=True).start()


def exit_on_signals() -> None:
    """Let SIGTERM and SIGINT stop this task by an exception, so that it saves its results.

    Ctrl-C on a terminal reaches the tasks as well as their driver, which then signals them again. So only the first
    signal counts, and the driver kills tasks that take too long.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
