"""mrjob runners with one map task per input line and a configurable number of reduce tasks.

mrjob 0.7.4 is no longer developed, and pinned; the private methods that are overridden here will not change.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from nutch2py.errors import NutchError, RunnerError
from nutch2py.mapreduce import NLINE_INPUT_FORMAT, WARNING_PREFIX
from nutch2py.mapreduce.runners.fork_server import ForkedTask, ForkRequest, ForkServer
from nutch2py.mapreduce.runners.mrjob_compat import JobKeyMixin, mrjob_importable
from nutch2py.mapreduce.runners.task_exit import describe_exit
from nutch2py.support.invariants import not_none
from nutch2py.support.log_file import log_job_environment
from nutch2py.support.reporting import capture_reporting, warn

with mrjob_importable():
    from mrjob.inline import InlineMRJobRunner
    from mrjob.local import LocalMRJobRunner, _sort_lines_with_sort_bin
    from mrjob.sim import _sort_lines_in_memory

MAX_IN_MEMORY_SORT = 4 << 20
"""Bytes of map output sorted in memory; for more, the program sort takes half the time."""
_SORT_MEMORY = "100M"
_COPY_BYTES, _LOOKBACK_BYTES = 1 << 20, 4096  # bytes copied, and searched backwards, at once
_STDERR_TAIL_BYTES = 4096  # bytes
_TERMINATION_GRACE = 6.0  # seconds that tasks have to stop after SIGTERM


class _OneLinePerMapRunner(JobKeyMixin):
    """Splits the input by lines; mrjob's inline and local runners split it by bytes, into two parts per core."""

    reduce_tasks = 1

    def __init__(self, **options: object) -> None:
        if options.get("hadoop_input_format") == NLINE_INPUT_FORMAT:
            options["hadoop_input_format"] = None  # the split of NLineInputFormat is done below
        super().__init__(**options)

    def _split_mapper_input(self, input_paths: Iterator[str], step_num: int) -> list[dict[str, object]]:
        if step_num:
            return self._link_inputs(input_paths, step_num)
        results: list[dict[str, object]] = []
        for path in input_paths:
            with open(path, "rb") as source:  # noqa: PTH123
                for line in source:
                    with open(self._prepare_task_path(step_num, len(results)), "wb") as target:  # noqa: PTH123
                        target.write(line)
                    results.append({"file": path, "start": 0, "length": len(line)})
        return results

    def _link_inputs(self, input_paths: Iterator[str], step_num: int) -> list[dict[str, object]]:
        """Pass the files between two steps on without a copy: one task per file."""
        results = []
        for number, path in enumerate(input_paths):
            os.link(path, self._prepare_task_path(step_num, number))
            results.append({"file": path, "start": 0, "length": os.stat(path).st_size})  # noqa: PTH116
        return results

    def _prepare_task_path(self, step_num: int, number: int, kind: str = "mapper") -> str:
        path: str = self._task_input_path(kind, step_num, number)  # type: ignore[attr-defined]
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        return path

    def _split_reducer_input(self, step_num: int) -> int:
        """Split the sorted input into at most ``reduce_tasks`` parts of whole keys, of similar size, in key order."""
        path: str = self._sorted_reducer_input_path(step_num)  # type: ignore[attr-defined]
        if self.reduce_tasks <= 1:
            os.rename(path, self._prepare_task_path(step_num, 0, "reducer"))  # noqa: PTH104
            return 1
        with open(path, "rb") as source:  # noqa: PTH123
            cuts = find_cuts(source, os.stat(path).st_size, self.reduce_tasks)  # noqa: PTH116
            for number, (start, stop) in enumerate(pairwise(cuts)):
                with open(self._prepare_task_path(step_num, number, "reducer"), "wb") as target:  # noqa: PTH123
                    source.seek(start)
                    target.writelines(
                        source.read(min(_COPY_BYTES, stop - at)) for at in range(start, stop, _COPY_BYTES)
                    )
        return len(cuts) - 1

    def _sort_input_func(self) -> Callable[[list[str], str], None]:
        """Sort in memory, or large input with :command:`sort`: its memory is bounded, and the order is the same."""
        values: bool = self._sort_values  # type: ignore[attr-defined]
        folder: str = self._get_local_tmp_dir()  # type: ignore[attr-defined]
        command = ["sort", "-S", _SORT_MEMORY, *([] if values else ["-t", "\t", "-k", "1,1", "-s"])]

        def sort(input_paths: list[str], output_path: str) -> None:
            size = sum(os.stat(path).st_size for path in input_paths)  # noqa: PTH116
            if size <= MAX_IN_MEMORY_SORT:
                _sort_lines_in_memory(input_paths, output_path, values)
            else:
                _sort_lines_with_sort_bin(input_paths, output_path, command, values, folder)

        return sort


def find_cuts(source: BinaryIO, size: int, runs: int) -> list[int]:
    """Return the offsets at which parts of whole keys of a sorted file start, and its end; at least one part.

    Each part starts with the first key after its share of the bytes.
    """
    cuts = [0]
    for number in range(1, runs):
        at = max(-(-size * number // runs), cuts[-1] + 1)
        if at >= size:
            break
        at = _find_line_start(source, at)
        source.seek(at)
        key = None
        for line in source:
            found = line.partition(b"\t")[0]
            if key is not None and found != key:
                cuts.append(at)
                break
            key = found
            at += len(line)
    return [*cuts, size]


def _find_line_start(source: BinaryIO, at: int) -> int:
    """Return the start of the line that contains the byte before ``at``."""
    start = at - 1
    while start > 0:
        first = max(0, start - _LOOKBACK_BYTES)
        source.seek(first)
        if (found := source.read(start - first).rfind(b"\n")) >= 0:
            return first + found + 1
        start = first
    return 0


def _forward_warnings(said: BinaryIO) -> None:
    """Forward the warnings that a task has written since the last call; mrjob keeps the tasks' output in files."""
    while line := said.readline():
        if not line.endswith(b"\n"):
            said.seek(-len(line), os.SEEK_CUR)  # the line is not complete yet
            return
        if line.startswith(WARNING_PREFIX.encode()):
            warn(line.decode("utf-8", "replace").rstrip("\n").removeprefix(WARNING_PREFIX))


@contextmanager
def _repeat_every_second(action: Callable[[], None]) -> Iterator[None]:
    """Repeat ``action`` every second in a thread during the block, and once after it.

    A thread, because waiting with a timeout would check for the end of a task every 50 ms.
    """
    done = threading.Event()
    use_context = capture_reporting()
    failures: list[Exception] = []

    def repeat() -> None:
        use_context()
        try:
            while not done.wait(1.0):
                action()
        except Exception as error:  # noqa: BLE001 - of a callback: raised below
            failures.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if failures:
            raise failures[0]
        action()


class InlineRunner(_OneLinePerMapRunner, InlineMRJobRunner):  # type: ignore[misc]
    """All tasks in this process and thread, one after the other.

    mrjob would change the process for each of them: its directory, environment, module path and standard streams. That
    would affect other jobs in the process; our tasks need none of it.
    """

    def _invoke_task_func(self, task_type: str, step_num: int, task_num: int) -> Callable[..., None]:
        words = [f"--step-num={step_num}", f"--{task_type}", *self._mr_job_extra_args(local=True)]

        def invoke(stdin: object, stdout: object, stderr: object, wd: str, env: object) -> None:
            self._mrjob_cls(words).sandbox(stdin, stdout, stderr).execute()

        return invoke


def _last_stderr_line(said: Path) -> str:
    """Return the last line that a task has written to its standard error."""
    with said.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _STDERR_TAIL_BYTES))
        lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line and not line.startswith(WARNING_PREFIX)), "")


class TaskExitError(Exception):
    """A task ended without reporting an error. ``kind``: map or reduce; ``exit_code`` as in subprocess."""

    def __init__(self, kind: str, exit_code: int, last_line: str) -> None:
        super().__init__(
            f"a {kind} task {describe_exit(exit_code)}{f', after the message: {last_line}' if last_line else ''}"
        )
        self.exit_code = exit_code


class LocalRunner(_OneLinePerMapRunner, LocalMRJobRunner):  # type: ignore[misc]
    """Tasks as processes of this machine, as many in parallel as it has cores.

    mrjob uses a pool of forked processes, which can hang on an error. Threads are sufficient, because each only waits
    for its task, and they can stop the tasks when one fails or the driver receives a signal. The tasks are forked from
    one process that has loaded the job (:mod:`nutch2py.mapreduce.runners.fork_server`).
    """

    job_class: type[Any]

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self._tasks: set[ForkedTask] = set()
        self._is_stopping = False
        self._fork_server: ForkServer | None = None
        self._log_environment: dict[str, str] = {}

    def run(self) -> None:
        """Run the job."""
        words = self._mr_job_extra_args(local=True)
        job = f"{self.job_class.__module__}:{self.job_class.__name__}"
        self._log_environment = log_job_environment()
        self._fork_server = ForkServer(job, words[words.index("--configuration") + 1])
        try:
            super().run()
        finally:
            self._fork_server.close()

    def _invoke_task_func(self, task_type: str, step_num: int, task_num: int) -> Callable[..., None]:
        words = [f"--step-num={step_num}", f"--{task_type}", *self._mr_job_extra_args(local=True)]
        return partial(self._run_forked_task, words)

    def _run_forked_task(self, words: list[str], stdin: Any, stdout: Any, stderr: Any, wd: str, env: Any) -> None:
        task = not_none(self._fork_server, "fork server").fork_task(
            ForkRequest(words, wd, {**env, **self._log_environment}),
            [each.fileno() for each in (stdin, stdout, stderr)],
        )
        self._tasks.add(task)
        if self._is_stopping:
            task.send_signal(signal.SIGKILL)
        with open(stderr.name, "rb") as said, _repeat_every_second(partial(_forward_warnings, said)):  # noqa: PTH123
            code = task.wait()
        self._tasks.discard(task)
        if code:
            kind = "reduce" if "--reducer" in words else "map"
            raise TaskExitError(kind, code, _last_stderr_line(Path(stderr.name)))

    def _run_multiple(self, funcs: Iterable[Callable[[], None]], num_processes: int | None = None) -> None:
        threads = num_processes or self._opts["num_cores"] or os.cpu_count()
        with ThreadPoolExecutor(threads, initializer=capture_reporting()) as pool:
            running = [pool.submit(func) for func in funcs]
            try:
                for done in as_completed(running):
                    done.result()
            except BaseException:
                self._is_stopping = True
                pool.shutdown(wait=False, cancel_futures=True)
                self._terminate_tasks()
                raise

    def explain(self, error: Exception) -> NutchError | None:
        """Return the error of a task that ended without a report."""
        if not isinstance(error, TaskExitError):
            return None
        again = "run the same command again"
        if error.exit_code in (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGBUS):
            again = "give the machine more memory, or run it with -r inline, which runs one task at a time"
        return RunnerError(f"{error}: {again}")

    def _terminate_tasks(self) -> None:
        """Send SIGTERM to the tasks, so that they can save their results; kill those that do not stop."""
        tasks = list(self._tasks)
        for task in tasks:
            task.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _TERMINATION_GRACE
        while any(task.poll() is None for task in tasks) and time.monotonic() < deadline:
            time.sleep(0.05)
        for task in tasks:
            task.send_signal(signal.SIGKILL)
