"""TableJob: a job over a table, as an mrjob job.

A subclass declares the ``fields`` that it reads, and defines :meth:`TableJob.map_pages` (rows in, pairs out) and,
unless it is map-only, :meth:`TableJob.reduce_groups` (groups in, pairs out). Both may write rows. It then runs
unchanged in this process, in child processes, on Hadoop and on Spark. Only this module and
:mod:`nutch2py.mapreduce.runners.local_runners` use internals of mrjob.
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

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError
from nutch2py.mapreduce import NLINE_INPUT_FORMAT, PACKAGE_DIR
from nutch2py.mapreduce.input_splits import (
    BatchListSplit,
    DerivedTableSplit,
    FileSplit,
    RangeSplit,
    Split,
    decode_split,
)
from nutch2py.mapreduce.job_file import JobFile, read_job_file
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.lock_check import check_lock
from nutch2py.mapreduce.mrjob_protocols import (
    KeyValueProtocol,
    SortedBytesProtocol,
    StreamedTextProtocol,
    decode_sorted_text,
)
from nutch2py.mapreduce.runners.mrjob_compat import mrjob_importable
from nutch2py.mapreduce.task_progress import TASK_ERROR_PREFIX, TaskChannel, exit_on_signals, watch_driver
from nutch2py.plugins.plugin_failures import PLUGIN_PAGES_COUNTER, PluginFailureTracker
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.support import log_file
from nutch2py.support.disk_errors import temp_disk_error
from nutch2py.table import DataStore, MarkCondition, TableQuery, WriteBatch, open_store
from nutch2py.table.row_validation import RowValidator


def get_runner_class(name: str | None) -> type[Any]:
    """Return the class of a runner by its name. Imported lazily: each imports half of mrjob, and tasks need none."""
    match name:
        case None | "inline":
            from nutch2py.mapreduce.runners.local_runners import InlineRunner

            return InlineRunner
        case "local":
            from nutch2py.mapreduce.runners.local_runners import LocalRunner

            return LocalRunner
        case "hadoop":
            from nutch2py.mapreduce.runners.hadoop.hadoop_runner import HadoopRunner

            return HadoopRunner
        case _:
            from nutch2py.mapreduce.runners.spark_runner import SparkRunner

            return SparkRunner


with mrjob_importable():
    from mrjob.job import MRJob
    from mrjob.protocol import BytesValueProtocol
    from mrjob.step import MRStep

ParametersT = TypeVar("ParametersT", bound=JobParameters)
KeyValuePair = tuple[str, Any]
GroupedValues = Iterator[tuple[str, Iterator[Any]]]
Pages = Iterator[tuple[str, WebPage]]
_KEY, _VALUE = itemgetter(0), itemgetter(-1)
_CHANNEL_NUMBERS = (
    itertools.count()
)  # not id(): it is reused, and a task would overwrite the row count of an earlier one
_KEYS_PER_READ = 500  # rows of a batch list that are read at once
ROWS_UNREADABLE_COUNTER = "rows_unreadable"
_JOB_SCRIPT = """\
import os, sys
if os.path.isdir("{folder}"):
    if sys.version_info[:2] != {python}:
        text = "a node runs Python %d.%d" % sys.version_info[:2] + ", and the client Python %d.%d" % {python}
        text += ": install the client's Python on the nodes, and name it with mapreduce.python"
        sys.stderr.write('{marker}{{"kind":"ConfigurationError","text":"%s","trace":""}}\\n' % text)
        sys.exit(2)
    sys.path.insert(0, os.path.abspath("{folder}/lib"))
from {module} import {name}
from nutch2py.support.process_memory import reduce_gc_frequency

if __name__ == "__main__":
    reduce_gc_frequency()
    {name}.run()
"""


class TableJob(MRJob, Generic[ParametersT]):  # type: ignore[misc]
    """A job over the crawl's table, ``TableJob[its parameters]``.

    Tasks read the parameters of the run as ``self.parameters``, the properties as ``self.conf``, the table as
    ``self.store``.
    """

    parameters_class: ClassVar[type[JobParameters]] = JobParameters
    """The class of the parameters: the type argument of the subclass."""
    fields: frozenset[RecordField] = frozenset()
    """The columns of a page that the job reads; :meth:`prepare` may set it by the configuration."""
    mark: MarkCondition | None = None  # only rows with this mark; set by prepare() from the parameters
    reduce_steps: int = 1
    """Number of reduce steps after the map step; 0: the output of the map step is the result."""
    plugin_points: ClassVar[tuple[str, ...]] = ()
    """Extension points whose plug-ins every task needs."""
    writes_text: ClassVar[bool] = False
    """A job without reduce step may yield ``(None, bytes)``: lines for people, unchanged."""

    INPUT_PROTOCOL = BytesValueProtocol
    INTERNAL_PROTOCOL: ClassVar[type[KeyValueProtocol | SortedBytesProtocol]] = KeyValueProtocol
    OUTPUT_PROTOCOL = KeyValueProtocol
    HADOOP_INPUT_FORMAT = NLINE_INPUT_FORMAT
    JOBCONF: ClassVar[dict[str, str]] = {
        "stream.map.input.ignoreKey": "true",
        "mapreduce.input.lineinputformat.linespermap": "1",
        "mapreduce.map.speculative": "false",
        "mapreduce.reduce.speculative": "false",
    }

    def __init_subclass__(cls, **options: object) -> None:
        """Set the parameters class from ``class NameJob(TableJob[NameParameters])``."""
        super().__init_subclass__(**options)
        for base in cls.__dict__.get("__orig_bases__", ()):
            (taken,) = get_args(base) or (None,)
            if isinstance(taken, type) and isinstance(origin := get_origin(base), type) and issubclass(origin, MRJob):
                cls.parameters_class = taken

    def __init__(self, args: list[str] | None = None) -> None:
        super().__init__(args)
        self._pending_counts: Counter[tuple[str, str]] = Counter()
        self._row_validator = RowValidator()
        if self.is_task() and self.job_file.driver_pid not in (0, os.getpid()):
            watch_driver(self.job_file.driver_pid, self.job_file.channel_dir)
            exit_on_signals()
            if (
                self.job_file.runner == "local"
            ):  # relative paths in properties are relative to the driver's working directory
                self.options.configuration = os.path.abspath(self.options.configuration)  # noqa: PTH100
                os.chdir(self.job_file.base_dir)

    @classmethod
    def describe_local_outputs(cls, conf: Configuration, parameters: ParametersT) -> str:
        """Describe the output that the job writes to local disks of tasks; empty if none."""
        return ""

    def jobconf(self) -> dict[str, str]:
        """Return the job's properties for Hadoop streaming."""
        jobconf: dict[str, str] = dict(super().jobconf())
        if self.writes_text:
            # lines are text without a key: streaming would append a tab
            jobconf["stream.map.output"] = "keyonlytext"
        return jobconf

    def output_protocol(self) -> object:
        """Return the protocol for the output of the last step."""
        if not self.writes_text:
            return super().output_protocol()
        streamed = self.is_task() and self.job_file.runner == "hadoop"
        return StreamedTextProtocol() if streamed else BytesValueProtocol()

    def configure_args(self) -> None:
        """Declare the one option of all tasks: the file with the whole configuration."""
        super().configure_args()
        self.add_file_arg("--configuration", help="JSON file with the job's properties, folders and parameters")

    def steps(self) -> list[MRStep]:
        """Return the map step with the first reduce step, and the other reduce steps."""
        if not self.reduce_steps:
            return [MRStep(mapper=self.mapper)]
        others = [MRStep(reducer=self.reducer) for _ in range(1, self.reduce_steps)]
        return [MRStep(mapper=self.mapper, reducer=self.reducer), *others]

    @property
    def job_file(self) -> JobFile:
        """The job file that the driver wrote."""
        return read_job_file(os.path.abspath(self.options.configuration))[0]  # noqa: PTH100

    @cached_property
    def conf(self) -> Configuration:
        """The properties of the job."""
        return read_job_file(os.path.abspath(self.options.configuration))[1]  # noqa: PTH100

    @cached_property
    def parameters(self) -> ParametersT:
        """The parameters of this run."""
        found: Any = msgspec.json.decode(self.job_file.parameters, type=self.parameters_class)
        asked: ParametersT = found
        return asked

    @cached_property
    def store(self) -> DataStore[WebPage]:
        """The crawl's table."""
        return open_store(self.conf, WebPage)

    @cached_property
    def derived_store(self) -> DataStore[DerivedRow]:
        """The derived table of batch lists and journals."""
        return open_store(self.conf, DerivedRow)

    @cached_property
    def channel(self) -> TaskChannel:
        """Channel for row counts and log lines."""
        return TaskChannel(self.job_file.channel_dir, str(next(_CHANNEL_NUMBERS)), self.set_status)

    @cached_property
    def plugin_failures(self) -> PluginFailureTracker:
        """Counts pages on which a plug-in failed."""
        channel = self.channel
        return PluginFailureTracker(self.conf, self.count, channel.log_line, channel.report_plugin_failure)

    # methods for subclasses

    def prepare(self) -> None:
        """Prepare a task: called once before the first row."""

    def map_pages(self, pages: Pages) -> Iterator[KeyValuePair]:
        """Map the rows of one split."""
        raise TypeError(f"{type(self).__name__} has no map_pages")

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        """Map a part of a text file."""
        raise TypeError(f"{type(self).__name__} does not read files")

    def map_derived_rows(self, split: DerivedTableSplit) -> Iterator[KeyValuePair]:
        """Map rows of the derived table."""
        raise TypeError(f"{type(self).__name__} does not read the derived table")

    def reduce_groups(self, groups: GroupedValues) -> Iterator[KeyValuePair]:
        """Reduce the groups of one task, in key order; each group must be consumed before the next is taken."""
        raise TypeError(f"{type(self).__name__} has no reduce_groups")

    # methods that mrjob calls

    def mapper(self, _: None, line: bytes) -> Iterator[KeyValuePair]:
        """Map one split; defined so that mrjob detects a mapper."""
        yield from self.map_split(decode_split(line))

    def reducer(self, key: str, values: Iterator[Any]) -> Iterator[KeyValuePair]:
        """Reduce one group; defined so that mrjob detects a reducer."""
        yield from self.reduce_groups(iter([(key, values)]))

    def map_split(self, split: Split) -> Iterator[KeyValuePair]:
        """Map the rows, or the lines, of a split."""
        if isinstance(split, FileSplit):
            return self.map_file(split)
        if isinstance(split, DerivedTableSplit):
            return self.map_derived_rows(split)
        return self.map_pages(self.read_pages(split))

    def map_pairs(self, pairs: Iterable[tuple[Any, Any]], step_num: int = 0) -> Iterator[KeyValuePair]:
        """Run one map task."""
        if step_num:
            yield from super().map_pairs(pairs, step_num)
            return
        with self._report_errors():
            self.prepare()
            for _, line in pairs:
                yield from self.map_split(decode_split(line))
            self._finish_task("map")

    def reduce_pairs(self, pairs: Iterable[KeyValuePair], step_num: int = 0) -> Iterator[KeyValuePair]:
        """Run one reduce task."""
        with self._report_errors():
            self.prepare()
            groups = ((decode_sorted_text(key), map(_VALUE, group)) for key, group in groupby(pairs, key=_KEY))
            yield from self.reduce_step(groups, step_num)
            self._finish_task("reduce")

    def _wrap_protocols(
        self, step_num: int, step_type: str
    ) -> tuple[Callable[[], Iterator[object]], Callable[..., None]]:
        """Return functions that read and write the lines of a step; faster per line than mrjob's own."""
        read, write = self.pick_protocols(step_num, step_type)
        put = self.stdout.write

        def write_line(key: object, value: object) -> None:
            put(write(key, value) + b"\n")

        ends = read is not SortedBytesProtocol.read  # which leaves trailing blanks to the reader of a value
        lines = (line.rstrip(b"\r\n") for line in self._read_input()) if ends else self._read_input()
        return lambda: map(read, lines), write_line

    def reduce_step(self, groups: GroupedValues, step_num: int) -> Iterator[KeyValuePair]:
        """Reduce in one of several steps; jobs with more than one override it."""
        return self.reduce_groups(groups)

    @contextmanager
    def _report_errors(self) -> Iterator[None]:
        """Report the error of the task to the driver, which cannot see an exception of another process."""
        self.store.clock.observe(self.job_file.crawl_clock)
        if self.job_file.runner == "local":  # a process of its own
            log_file.attach_log_handler(self.conf.secret_values())
        try:
            yield
        except Exception as error:
            runner = self.job_file.runner
            known = isinstance(error, NutchError)
            if runner == "inline" and not known:
                raise
            found = error if isinstance(error, NutchError) else temp_disk_error(error)
            reported = found or NutchError(f"{type(error).__name__}: {error}")
            self.channel.report_error(reported, "" if known else traceback.format_exc())
            if runner == "hadoop":
                traceback.print_exc()
                raise SystemExit(reported.exit_code) from error  # Hadoop's client shows the code
            raise

    def _finish_task(self, step: str) -> None:
        if self._row_validator.invalid_count:
            self.count("table", ROWS_UNREADABLE_COUNTER, self._row_validator.invalid_count)
            self._row_validator = RowValidator()
        failures: PluginFailureTracker | None = self.__dict__.pop("plugin_failures", None)
        if failures is not None and failures.pages:
            self.count("table", f"{PLUGIN_PAGES_COUNTER}_{step}", failures.pages)
        for (group, name), amount in self._pending_counts.items():
            self.increment_counter(group, name, amount)
        self._pending_counts.clear()
        self.channel.close()
        self.__dict__.pop("channel", None)

    @contextmanager
    def write_batch(self, before_write: Callable[[], object] | None = None) -> Iterator[WriteBatch]:
        """Yield a batch of writes to the crawl's table; rows that the store rejects are counted at its end.

        ``before_write`` runs before each flush: see :attr:`nutch2py.table.WriteBatch.before_flush`. A job that has lost
        its lock stops writing: see :meth:`check_lock`.
        """
        with self.store.batch(lambda: self._before_write(before_write)) as batch:
            yield batch
        if batch.rejected:
            self.count("table", "rows_refused", len(batch.rejected))

    def _before_write(self, before: Callable[[], object] | None) -> None:
        self.check_lock()
        if before is not None:
            before()

    def check_lock(self) -> None:
        """Raise :class:`nutch2py.errors.LockLostError` when another job has taken over."""
        check_lock(self.job_file.lock_token, lambda: self.derived_store, is_remote=not self.job_file.driver_pid)

    def count(self, group: str, name: str, amount: int = 1) -> None:
        """Add to a counter; sent once, at the end of the task."""
        self._pending_counts[group, name] += amount

    def read_pages(self, split: Split) -> Pages:
        """Yield the rows of a split that carry the mark, counting them as progress."""
        if isinstance(split, BatchListSplit):
            source = self._read_batch_list_pages(split)
        elif not isinstance(split, RangeSplit):
            raise TypeError(f"a job over pages cannot read a {type(split).__name__}")
        else:
            source = self.store.scan(TableQuery(self.fields, split.key_range, self.mark))
        return self.iter_readable_pages(source)

    def iter_readable_pages(self, source: Iterable[tuple[str, WebPage]]) -> Pages:
        """Yield the rows that the job can process, counting all as progress."""
        advance = self.channel.advance
        for key, page in source:
            if self.is_readable(key, page):
                yield key, page
            advance()

    def is_readable(self, key: str, page: WebPage) -> bool:
        """Return whether the job can process a row; one with a cell of a wrong type is logged, counted and skipped."""
        return self._row_validator.is_valid(key, page)

    def _read_batch_list_pages(self, split: BatchListSplit) -> Pages:
        fields = self.fields | {WebPage.markers}
        for keys in self.read_batch_list_keys(split):
            for key, page in zip(keys, self.store.get_many(keys, fields), strict=True):
                if page is None:
                    continue
                if self.mark is not None:
                    value = page.markers.get(self.mark.name)
                    if value is None or self.mark.value not in (None, value):
                        continue
                yield key, page

    def read_batch_list_keys(self, split: BatchListSplit) -> Iterator[list[str]]:
        """Yield the row keys of a part of a batch list, some hundred at a time."""
        keys: list[str] = []
        for _, entry in self.derived_store.scan(TableQuery(frozenset({DerivedRow.key}), split.key_range)):
            if entry.key is not None:
                keys.append(entry.key)
            if len(keys) >= _KEYS_PER_READ:
                yield keys
                keys = []
        if keys:
            yield keys

    # mrjob needs these to run the job everywhere

    def mr_job_script(self) -> str:
        """Return a script that imports the job from its package: mrjob would copy the module and run it as main.

        The script is next to the job file, and is deleted with it.
        """
        name = type(self).__name__
        path = Path(self.options.configuration).with_name(f"run_{name}.py")
        if not path.exists():
            text = _JOB_SCRIPT.format(
                module=type(self).__module__,
                name=name,
                folder=PACKAGE_DIR,
                python=tuple(sys.version_info[:2]),
                marker=TASK_ERROR_PREFIX,
            )
            path.write_text(text, encoding="utf-8")
        return str(path)

    def make_runner(self) -> Any:
        """Create the runner; mrjob's own rejects options like ``--spark`` among those of the whole program.

        Input comes from files: the program's standard input, which may be closed, is not used.
        """
        runner = get_runner_class(self.options.runner)(**{**self._runner_kwargs(), "stdin": BytesIO()})
        runner.job_class = type(self)
        return runner
