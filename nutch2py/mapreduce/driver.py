"""The driver: runs a TableJob with mrjob, shows its progress, and gives back its counters and its output."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, NutchError
from nutch2py.mapreduce.job import TableJob
from nutch2py.mapreduce.progress import ProgressMonitor
from nutch2py.mapreduce.splits import Split, encode_split

RUNNERS = ("inline", "local", "hadoop", "spark")


@dataclass
class JobResult:
    """Counters by group and name, and the pairs that the last step put out."""

    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    output: list[tuple[str, Any]] = field(default_factory=list)

    def count(self, group: str, name: str) -> int:
        """Return a counter, 0 when nothing was counted."""
        return self.counters.get(group, {}).get(name, 0)


def runner_name(conf: Configuration) -> str:
    """Return ``mapreduce.runner``: inline, local, hadoop or spark."""
    name = conf.get_trimmed("mapreduce.runner", "inline")
    if name not in RUNNERS:
        raise ConfigurationError(f"mapreduce.runner is {name!r}: choose one of {', '.join(RUNNERS)}")
    return name


def map_tasks(conf: Configuration) -> int:
    """Return how many map tasks to make: ``mapreduce.job.maps``, else one inline and one a core elsewhere."""
    return conf.get_int("mapreduce.job.maps") or (1 if runner_name(conf) == "inline" else os.cpu_count() or 1)


def reduce_tasks(conf: Configuration) -> int:
    """Return how many reduce tasks to make: ``mapreduce.job.reduces``, else one inline and one a core elsewhere."""
    return conf.get_int("mapreduce.job.reduces") or (1 if runner_name(conf) == "inline" else os.cpu_count() or 1)


def run_job(
    job_class: type[TableJob],
    conf: Configuration,
    splits: Sequence[Split],
    *,
    title: str,
    expected: int | None = None,
    reducers: int | None = None,
    output: Path | None = None,
) -> JobResult:
    """Run a job to its end.

    ``expected`` is about how many rows will be read, for the progress shown; ``output``: a folder for what the last
    step puts out, as part files, instead of the result. A task's :class:`NutchError` is raised here again, whichever
    process it came from.
    """
    if not splits:
        return JobResult()
    runner = runner_name(conf)
    work = Path(tempfile.mkdtemp(prefix="nutch2py-job-"))
    try:
        channel = work / "channel"
        channel.mkdir()
        task_conf = conf.copy()
        task_conf.set("mapreduce.task.channel", str(channel))
        task_conf.set("mapreduce.driver.pid", os.getpid())
        _write_configuration(work / "configuration.json", task_conf)
        (work / "splits").write_bytes(b"".join(encode_split(split) + b"\n" for split in splits))
        arguments = ["-r", runner, "--no-conf", "--quiet", "--configuration", str(work / "configuration.json")]
        arguments += ["--cleanup", "ALL", "--cleanup-on-failure", "ALL", str(work / "splits")]
        if output is not None:
            arguments += ["--output-dir", str(output.absolute())]
        job = job_class(args=arguments)
        with ProgressMonitor(channel, title, expected) as monitor, _stoppable(), _scratch_folder(work):
            return _run(job, reducers or reduce_tasks(conf), monitor, output is None)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(job: TableJob, reducers: int, monitor: ProgressMonitor, read_output: bool) -> JobResult:
    logging.getLogger("mrjob").setLevel(logging.CRITICAL)
    result = JobResult()
    with job.make_runner() as runner:
        runner.reduce_tasks = reducers
        try:
            runner.run()
        except NutchError:
            raise
        except Exception as error:
            known = monitor.task_error()
            if known is not None:
                raise known from error
            raise
        for counters in runner.counters():
            for group, names in counters.items():
                merged = result.counters.setdefault(group, {})
                for name, amount in names.items():
                    merged[name] = merged.get(name, 0) + amount
        if read_output:
            result.output = list(job.parse_output(runner.cat_output()))
    return result


def _write_configuration(path: Path, conf: Configuration) -> None:
    fields = {"properties": conf.raw(), "folders": [str(folder) for folder in conf.folders]}
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:  # may hold passwords
        file.write(orjson.dumps(fields))


@contextmanager
def _scratch_folder(work: Path) -> Iterator[None]:
    """Let mrjob keep its files in the job's own folder, which goes with the job."""
    before = tempfile.tempdir
    tempfile.tempdir = str(work)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _stoppable() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that tasks are ended and files removed before the driver goes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def merge_counters(results: Iterable[JobResult]) -> JobResult:
    """Return the sum of the counters of several runs."""
    total = JobResult()
    for result in results:
        for group, names in result.counters.items():
            merged = total.counters.setdefault(group, {})
            for name, amount in names.items():
                merged[name] = merged.get(name, 0) + amount
        total.output += result.output
    return total
