"""What a run is asked for: the parameters of a job, typed, which go to its tasks beside the properties.

Properties are what users set; parameters are what one run was asked for. Each job module has one frozen dataclass of
them, checked where it is made; :func:`nutch2py.mapreduce.driver.run_job` carries it, and a task reads it as
``self.parameters``. No ``-D`` reaches a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nutch2py.conf.property_ranges import COUNT, LONG_MAX, NumberRange
from nutch2py.errors import UsageError

ALL = "-all"
"""Stands for a batch id: the rows of every batch."""
REINDEX = "-reindex"
"""Stands for a batch id: every parsed row, whatever its batch."""
SCORES = "-scores"
"""Stands for a batch id of index: the scores of all documents, without the documents."""
TIME_RANGE, NON_NEGATIVE, POSITIVE = NumberRange(0, LONG_MAX), NumberRange(0, LONG_MAX), NumberRange(1, COUNT.high)
"""Ranges: ms since 1970; how many, or a seed; how many, at least one."""


@dataclass(frozen=True, kw_only=True)
class JobParameters:
    """What a job takes that works on the whole table, or on files. The base of all parameters."""

    ranges: ClassVar[Mapping[str, NumberRange]] = {}
    """What the parameters that are numbers may be, by their names."""

    def __post_init__(self) -> None:
        """Refuse a number out of its range."""
        for name, allowed in self.ranges.items():
            number = getattr(self, name)
            fits = isinstance(number, int if allowed.integer else int | float) and not isinstance(number, bool)
            if not fits or not allowed.contains(number):
                raise UsageError(f"{name} is {number!r}: give {allowed}")

    @property
    def batch_label(self) -> str:
        """The batch that the job works on, "" when it works on none: for labels and progress."""
        return ""


@dataclass(frozen=True, kw_only=True)
class BatchParameters(JobParameters):
    """What a job takes that works on a batch. ``batch_id``: its id, or one of ``all_batches_ids``."""

    all_batches_ids: ClassVar[tuple[str, ...]] = (ALL,)
    """What may stand for the id, for every batch."""
    batch_id: str

    def __post_init__(self) -> None:
        """Refuse an id that names no batch, and a number out of its range."""
        super().__post_init__()
        if not self.batch_id:
            raise UsageError("BatchId not set (or -all not specified)!")
        if self.batch_id.startswith("-") and self.batch_id not in self.all_batches_ids:
            others = " or ".join(("name a batch", *self.all_batches_ids))
            raise UsageError(f"{self.batch_id!a} is no batch id, which begins with no '-': {others}")
        try:
            self.batch_id.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"the batch id {self.batch_id!a} is not UTF-8: give another") from error

    @property
    def batch_label(self) -> str:
        """The batch that the job works on."""
        return self.batch_id

    @property
    def is_all_batches(self) -> bool:
        """Whether the rows of every batch are meant."""
        return self.batch_id in (ALL, REINDEX)
