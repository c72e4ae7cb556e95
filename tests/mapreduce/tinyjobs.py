"""Small jobs with tasks that report their actions; tasks in other processes import them from here."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nutch2py.errors import StoreError
from nutch2py.mapreduce.input_splits import FileSplit, read_split_lines
from nutch2py.mapreduce.job_parameters import BatchParameters
from nutch2py.mapreduce.mrjob_protocols import SortedTextProtocol
from nutch2py.mapreduce.table_job import KeyValuePair, TableJob


@dataclass(frozen=True, kw_only=True)
class AskedParameters(BatchParameters):
    word: str
    numbers: tuple[int, ...]
    share: float
    nothing: str | None = "something"


class AskedJob(TableJob[AskedParameters]):
    """Yield the requested outcome, from the reduce task."""

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        yield "asked", self.parameters.batch_id

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[KeyValuePair]:
        asked = self.parameters
        for key, values in groups:
            yield key, [*values, asked.word, asked.numbers, asked.share, asked.nothing]


class WordJob(TableJob):
    """Count words; every task notes its process and how many groups or lines it had."""

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        lines = 0
        for line in read_split_lines(split):
            lines += 1
            for word in line.decode().split():
                yield word, 1
            self.channel.advance()
        self.count("words", "map_splits")
        self.count("words", "lines", lines)
        self.channel.log_line(f"split {split.order} has {lines} lines")

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[KeyValuePair]:
        for key, values in groups:
            yield key, [sum(values), os.getpid()]
        self.count("words", "reduce_tasks")


class OrderJob(TableJob):
    """Yield what the reducer saw, in the order in which it came."""

    INTERNAL_PROTOCOL = SortedTextProtocol
    SORT_VALUES = True

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        for line in read_split_lines(split):
            key, value = line.decode().rstrip("\n").split("=", 1)
            yield key.replace("T", "\t"), value.replace("T", "\t")

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[str]]]) -> Iterator[KeyValuePair]:
        for key, values in groups:
            yield key, list(values)


class ParentJob(TableJob):
    """Yield the parents of the tasks, and what a task knows of its surroundings."""

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        yield "map", [os.getppid(), os.environ["TINY"], Path.cwd().as_posix(), sys.stdin.read()]

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[KeyValuePair]:
        for key, values in groups:
            yield key, [*values]
        yield "reduce", [os.getppid()]


class FailingJob(TableJob):
    """Fail in the way that the property ``tiny.failure`` names."""

    reduce_steps = 0

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        if split.order == 0:
            if self.conf.get("tiny.failure") == "store":
                raise StoreError("the table is on fire: put it out")
            raise ValueError("that is not right")
        yield "", None


class SlowJob(TableJob):
    """Write a file with its process id, then wait for a minute."""

    reduce_steps = 0

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        Path(self.conf.get("tiny.folder", ""), str(os.getpid())).touch()
        time.sleep(60)
        yield "", None


class KilledJob(SlowJob):
    """The first task is killed by the signal, or ends with the exit code, that ``tiny.ending`` is."""

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        if split.order:
            yield from super().map_file(split)
        ending = int(self.conf.get("tiny.ending", ""))
        print("Fatal Python error: it rains", file=sys.stderr, flush=True)
        if ending < 0:
            os.kill(os.getpid(), -ending)
        os._exit(ending)


class OrphanJob(SlowJob):
    """The second task kills the process that it was forked from, once the first is at work."""

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        folder = Path(self.conf.get("tiny.folder", ""))
        while split.order and not any(folder.iterdir()):
            time.sleep(0.01)
        if split.order:
            os.kill(os.getppid(), signal.SIGKILL)
        yield from super().map_file(split)


class OneFailsJob(SlowJob):
    """The first task fails as soon as the second one is at work."""

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        if split.order:
            self.channel.advance()
            yield from super().map_file(split)
        while not any(Path(self.conf.get("tiny.folder", "")).iterdir()):
            time.sleep(0.05)
        raise StoreError("the table is on fire: put it out")
