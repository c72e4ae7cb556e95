"""TableJob: a job over a table, as an mrjob job.

A subclass says which ``fields`` it reads, and defines :meth:`TableJob.map_pages` (rows in, pairs out) and, unless it is
map-only, :meth:`TableJob.reduce_groups` (groups in, pairs out). Both may write rows. It then runs unchanged in this
process, in child processes, on Hadoop and on Spark. This module and :mod:`nutch2py.mapreduce.runners` are the only ones
that know mrjob's inner side.
"""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin

import msgspec

from nutch2py import log_file
from nutch2py.conf import Configuration
from nutch2py.disk import temporary_trouble
from nutch2py.errors import NutchError
from nutch2py.mapreduce import NLINE, PACKAGE_FOLDER
from nutch2py.mapreduce.held import check_held
from nutch2py.mapreduce.job_file import JobFile, read_job_file
from nutch2py.mapreduce.parameters import JobParameters
from nutch2py.mapreduce.progress import TASK_ERROR, TaskChannel, stop_when_told, watch_driver
from nutch2py.mapreduce.protocol import KeyValueProtocol, SortedBytesProtocol, StreamedTextProtocol, text_of
from nutch2py.mapreduce.runner_classes import runner_class
from nutch2py.mapreduce.splits import FileSplit, ListSplit, RangeSplit, SideSplit, Split, decode_split
from nutch2py.mapreduce.standins import mrjob_importable
from nutch2py.plugin_guard import PAGES, PluginFailures
from nutch2py.record import Field
from nutch2py.table import DataStore, MarkCondition, Query, WriteBatch, open_store
from nutch2py.table.unreadable import RowCheck
from nutch2py.webpage import BatchEntry, WebPage

with mrjob_importable():
    from mrjob.job import MRJob
    from mrjob.protocol import BytesValueProtocol
    from mrjob.step import MRStep

P = TypeVar("P", bound=JobParameters)
Pair = tuple[str, Any]
Pages = Iterator[tuple[str, WebPage]]
_KEY, _VALUE = itemgetter(0), itemgetter(-1)
_CHANNELS = itertools.count()  # not id(): it is given again, and a task would write over the rows of one before it
_CHUNK = 500  # rows read at once through a batch list
ROWS_UNREADABLE = "rows_unreadable"
_STUB = """\
import os, sys
if os.path.isdir("{folder}"):
    if sys.version_info[:2] != {python}:
        text = "a node runs Python %d.%d" % sys.version_info[:2] + ", and the client Python %d.%d" % {python}
        text += ": install the client's Python on the nodes, and name it with mapreduce.python"
        sys.stderr.write('{marker}{{"kind":"ConfigurationError","text":"%s","trace":""}}\\n' % text)
        sys.exit(2)
    sys.path.insert(0, os.path.abspath("{folder}/lib"))
from {module} import {name}
from nutch2py.mapreduce.memory import collect_rarely

if __name__ == "__main__":
    collect_rarely()
    {name}.run()
"""


class TableJob(MRJob, Generic[P]):  # type: ignore[misc]
    """A job over the crawl's table, ``TableJob[its parameters]``.

    Tasks find what the run was asked for in ``self.parameters``, the properties in ``self.conf``, the table in
    ``self.store``.
    """

    takes: ClassVar[type[JobParameters]] = JobParameters
    """The class of the parameters, as the subclass names it in brackets."""
    fields: frozenset[Field[Any]] = frozenset()
    """What the job reads of a page; :meth:`prepare` may set it by the configuration."""
    mark: MarkCondition | None = None  # only rows with this mark; set by prepare() from the parameters
    reduce_steps: int = 1
    """How many times groups are reduced after the map step; 0: the pairs of the map step are the result."""
    plugin_points: ClassVar[tuple[str, ...]] = ()
    """Extension points of which every task needs the plug-ins."""
    puts_out_text: ClassVar[bool] = False
    """A job without reduce step may yield ``(None, bytes)``: lines for people, as they are."""

    INPUT_PROTOCOL = BytesValueProtocol
    INTERNAL_PROTOCOL: ClassVar[type[KeyValueProtocol | SortedBytesProtocol]] = KeyValueProtocol
    OUTPUT_PROTOCOL = KeyValueProtocol
    HADOOP_INPUT_FORMAT = NLINE
    JOBCONF: ClassVar[dict[str, str]] = {
        "stream.map.input.ignoreKey": "true",
        "mapreduce.input.lineinputformat.linespermap": "1",
        "mapreduce.map.speculative": "false",
        "mapreduce.reduce.speculative": "false",
    }

    def __init_subclass__(cls, **options: Any) -> None:
        """Note the parameters that ``class NameJob(TableJob[NameParameters])`` says."""
        super().__init_subclass__(**options)
        for base in cls.__dict__.get("__orig_bases__", ()):
            (taken,) = get_args(base) or (None,)
            if isinstance(taken, type) and isinstance(origin := get_origin(base), type) and issubclass(origin, MRJob):
                cls.takes = taken

    def __init__(self, args: list[str] | None = None) -> None:
        super().__init__(args)
        self._counts: Counter[tuple[str, str]] = Counter()
        self._rows = RowCheck()
        if self.is_task() and self.file.driver not in (0, os.getpid()):
            watch_driver(self.file.driver, self.file.channel)
            stop_when_told()
            if self.file.runner == "local":  # where a relative path of a property means what it means to the driver
                self.options.configuration = os.path.abspath(self.options.configuration)  # noqa: PTH100
                os.chdir(self.file.base)

    @classmethod
    def local_outputs(cls, conf: Configuration, parameters: P) -> str:
        """Return what the job writes to the disk of the machine that a task runs on, in words; empty: nothing."""
        return ""

    def jobconf(self) -> dict[str, str]:
        """Return what Hadoop streaming shall know of the job."""
        jobconf: dict[str, str] = dict(super().jobconf())
        if self.puts_out_text:
            # lines are text, not key and value: streaming would put a tab behind one that has none
            jobconf["stream.map.output"] = "keyonlytext"
        return jobconf

    def output_protocol(self) -> Any:
        """Return what writes the output of the last step."""
        if not self.puts_out_text:
            return super().output_protocol()
        streamed = self.is_task() and self.file.runner == "hadoop"
        return StreamedTextProtocol() if streamed else BytesValueProtocol()

    def configure_args(self) -> None:
        """Declare the one option that every task gets: the file with the whole configuration."""
        super().configure_args()
        self.add_file_arg("--configuration", help="JSON file with the job's properties, folders and parameters")

    def steps(self) -> list[MRStep]:
        """Return the map step with the first reduce step, and the other reduce steps."""
        if not self.reduce_steps:
            return [MRStep(mapper=self.mapper)]
        others = [MRStep(reducer=self.reducer) for _ in range(1, self.reduce_steps)]
        return [MRStep(mapper=self.mapper, reducer=self.reducer), *others]

    @property
    def file(self) -> JobFile:
        """What the driver handed over."""
        return read_job_file(os.path.abspath(self.options.configuration))[0]  # noqa: PTH100

    @cached_property
    def conf(self) -> Configuration:
        """The properties, as the user set them."""
        return read_job_file(os.path.abspath(self.options.configuration))[1]  # noqa: PTH100

    @cached_property
    def parameters(self) -> P:
        """What this run was asked for."""
        found: Any = msgspec.json.decode(self.file.parameters, type=self.takes)
        asked: P = found
        return asked

    @cached_property
    def store(self) -> DataStore[WebPage]:
        """The crawl's table."""
        return open_store(self.conf, WebPage)

    @cached_property
    def batches(self) -> DataStore[BatchEntry]:
        """The derived table of batch lists and journals."""
        return open_store(self.conf, BatchEntry)

    @cached_property
    def channel(self) -> TaskChannel:
        """Where rows done and log lines go."""
        return TaskChannel(self.file.channel, str(next(_CHANNELS)), self.set_status)

    @cached_property
    def failures(self) -> PluginFailures:
        """Pages on which a plug-in failed."""
        channel = self.channel
        return PluginFailures(self.conf, self.count, channel.line, channel.first_failure)

    # what a subclass defines

    def prepare(self) -> None:
        """Set up a task: called once before the first row."""

    def map_pages(self, pages: Pages) -> Iterator[Pair]:
        """Map the rows of one split."""
        raise TypeError(f"{type(self).__name__} has no map_pages")

    def map_file(self, split: FileSplit) -> Iterator[Pair]:
        """Map a piece of a text file."""
        raise TypeError(f"{type(self).__name__} does not read files")

    def map_side(self, split: SideSplit) -> Iterator[Pair]:
        """Map rows of the derived table."""
        raise TypeError(f"{type(self).__name__} does not read the derived table")

    def reduce_groups(self, groups: Iterator[tuple[str, Iterator[Any]]]) -> Iterator[Pair]:
        """Reduce the groups of one task, in key order; each group must be consumed before the next is taken."""
        raise TypeError(f"{type(self).__name__} has no reduce_groups")

    # what mrjob calls

    def mapper(self, _: None, line: bytes) -> Iterator[Pair]:
        """Map one split; here so that mrjob knows there is a mapper."""
        yield from self.map_split(decode_split(line))

    def reducer(self, key: str, values: Iterator[Any]) -> Iterator[Pair]:
        """Reduce one group; here so that mrjob knows there is a reducer."""
        yield from self.reduce_groups(iter([(key, values)]))

    def map_split(self, split: Split) -> Iterator[Pair]:
        """Map the rows, or the lines, of a split."""
        if isinstance(split, FileSplit):
            return self.map_file(split)
        if isinstance(split, SideSplit):
            return self.map_side(split)
        return self.map_pages(self.pages(split))

    def map_pairs(self, pairs: Iterable[tuple[Any, Any]], step_num: int = 0) -> Iterator[Pair]:
        """Run one map task."""
        if step_num:
            yield from super().map_pairs(pairs, step_num)
            return
        with self._reporting():
            self.prepare()
            for _, line in pairs:
                yield from self.map_split(decode_split(line))
            self._finish("map")

    def reduce_pairs(self, pairs: Iterable[Pair], step_num: int = 0) -> Iterator[Pair]:
        """Run one reduce task."""
        with self._reporting():
            self.prepare()
            groups = ((text_of(key), map(_VALUE, group)) for key, group in groupby(pairs, key=_KEY))
            yield from self.reduce_step(groups, step_num)
            self._finish("reduce")

    def _wrap_protocols(self, step_num: int, step_type: str) -> tuple[Callable[[], Iterator[Any]], Callable[..., None]]:
        """Return what reads the lines of a step and what writes them; mrjob's own does more for each line."""
        read, write = self.pick_protocols(step_num, step_type)
        put = self.stdout.write

        def write_line(key: Any, value: Any) -> None:
            put(write(key, value) + b"\n")

        ends = read is not SortedBytesProtocol.read  # which leaves blanks to who reads a value
        lines = (line.rstrip(b"\r\n") for line in self._read_input()) if ends else self._read_input()
        return lambda: map(read, lines), write_line

    def reduce_step(self, groups: Iterator[tuple[str, Iterator[Any]]], step_num: int) -> Iterator[Pair]:
        """Reduce in one of several steps; jobs with more than one override it."""
        return self.reduce_groups(groups)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Tell the driver why the task fails: it sees no exception of another process."""
        self.store.clock.see(self.file.clock)
        if self.file.runner == "local":  # a process of its own
            log_file.listen(self.conf.secrets())
        try:
            yield
        except Exception as error:
            runner = self.file.runner
            known = isinstance(error, NutchError)
            if runner == "inline" and not known:
                raise
            found = error if isinstance(error, NutchError) else temporary_trouble(error)
            told = found or NutchError(f"{type(error).__name__}: {error}")
            self.channel.failed(told, "" if known else traceback.format_exc())
            if runner == "hadoop":
                traceback.print_exc()
                raise SystemExit(told.exit_code) from error  # Hadoop's client shows the code
            raise

    def _finish(self, step: str) -> None:
        if self._rows.count:
            self.count("table", ROWS_UNREADABLE, self._rows.count)
            self._rows = RowCheck()
        failures: PluginFailures | None = self.__dict__.pop("failures", None)
        if failures is not None and failures.pages:
            self.count("table", f"{PAGES}_{step}", failures.pages)
        for (group, name), amount in self._counts.items():
            self.increment_counter(group, name, amount)
        self._counts.clear()
        self.channel.close()
        self.__dict__.pop("channel", None)

    @contextmanager
    def writing(self, before: Callable[[], object] | None = None) -> Iterator[WriteBatch]:
        """Give a batch of writes to the crawl's table; rows that the store refuses are counted at its end.

        ``before`` runs before it writes, whenever it writes: see :attr:`nutch2py.table.WriteBatch.before`. A job
        that has lost its lock writes nothing more: see :meth:`check_held`.
        """
        with self.store.batch(lambda: self._before(before)) as batch:
            yield batch
        if batch.refused:
            self.count("table", "rows_refused", len(batch.refused))

    def _before(self, before: Callable[[], object] | None) -> None:
        self.check_held()
        if before is not None:
            before()

    def check_held(self) -> None:
        """Raise :class:`nutch2py.errors.LockLostError` when another job has taken the place of this one."""
        check_held(self.file.lock, lambda: self.batches, elsewhere=not self.file.driver)

    def count(self, group: str, name: str, amount: int = 1) -> None:
        """Add to a counter; sent once, at the end of the task."""
        self._counts[group, name] += amount

    def pages(self, split: Split) -> Pages:
        """Yield the rows of a split that carry the mark, counting them as progress."""
        if isinstance(split, ListSplit):
            source = self._listed_pages(split)
        else:
            assert isinstance(split, RangeSplit)
            source = self.store.scan(Query(self.fields, split.range, self.mark))
        return self.readable_pages(source)

    def readable_pages(self, source: Iterable[tuple[str, WebPage]]) -> Pages:
        """Yield the rows that the job can work on, counting all as progress."""
        advance = self.channel.advance
        for key, page in source:
            if self.readable(key, page):
                yield key, page
            advance()

    def readable(self, key: str, page: WebPage) -> bool:
        """Tell whether a job can work on a row: one with a cell of another type is named, counted, left as it is."""
        return self._rows.readable(key, page)

    def _listed_pages(self, split: ListSplit) -> Pages:
        fields = self.fields | {WebPage.markers}
        for keys in self.listed_keys(split):
            for key, page in zip(keys, self.store.get_many(keys, fields), strict=True):
                if page is None:
                    continue
                if self.mark is not None:
                    value = page.markers.get(self.mark.name)
                    if value is None or self.mark.value not in (None, value):
                        continue
                yield key, page

    def listed_keys(self, split: ListSplit) -> Iterator[list[str]]:
        """Yield the row keys of a part of a batch list, some hundred at a time."""
        keys: list[str] = []
        for _, entry in self.batches.scan(Query(frozenset({BatchEntry.key}), split.range)):
            if entry.key is not None:
                keys.append(entry.key)
            if len(keys) >= _CHUNK:
                yield keys
                keys = []
        if keys:
            yield keys

    # what makes mrjob run it everywhere

    def mr_job_script(self) -> str:
        """Return a stub that imports the job from its package: mrjob would copy the module alone and run it as main.

        It stands beside the job's file, and goes with it.
        """
        name = type(self).__name__
        path = Path(self.options.configuration).with_name(f"run_{name}.py")
        if not path.exists():
            text = _STUB.format(
                module=type(self).__module__,
                name=name,
                folder=PACKAGE_FOLDER,
                python=tuple(sys.version_info[:2]),
                marker=TASK_ERROR,
            )
            path.write_text(text, encoding="utf-8")
        return str(path)

    def make_runner(self) -> Any:
        """Return what runs the job; mrjob's own refuses words like ``--spark`` among those of the whole program.

        Input comes from files: the program's standard input, which may be closed, is left alone.
        """
        runner = runner_class(self.options.runner)(**{**self._runner_kwargs(), "stdin": BytesIO()})
        runner.job_class = type(self)
        return runner
