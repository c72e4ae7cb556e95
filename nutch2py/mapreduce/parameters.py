"""What a run is asked for: the parameters of a job, typed, which go to its tasks beside the properties.

Properties are what users set; parameters are what one run was asked for. Each job module has one frozen dataclass of
them, checked where it is made; :func:`nutch2py.mapreduce.driver.run_job` carries it, and a task reads it as
``self.parameters``. No ``-D`` reaches a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nutch2py.errors import UsageError
from nutch2py.ranges import COUNT, LONG, Range

ALL = "-all"
"""Stands for a batch id: the rows of every batch."""
REINDEX = "-reindex"
"""Stands for a batch id: every parsed row, whatever its batch."""
SCORES = "-scores"
"""Stands for a batch id of index: the scores of all documents, without the documents."""
TIME, NUMBER, SEVERAL = Range(0, LONG), Range(0, LONG), Range(1, COUNT.high)
"""Ranges: ms since 1970; how many, or a seed; how many, at least one."""


@dataclass(frozen=True, kw_only=True)
class JobParameters:
    """What a job takes that works on the whole table, or on files. The base of all parameters."""

    ranges: ClassVar[Mapping[str, Range]] = {}
    """What the parameters that are numbers may be, by their names."""

    def __post_init__(self) -> None:
        """Refuse a number out of its range."""
        for name, allowed in self.ranges.items():
            number = getattr(self, name)
            fits = isinstance(number, int if allowed.whole else int | float) and not isinstance(number, bool)
            if not fits or not allowed.holds(number):
                raise UsageError(f"{name} is {number!r}: give {allowed}")

    @property
    def batch(self) -> str:
        """The batch that the job works on, "" when it works on none: for labels and progress."""
        return ""


@dataclass(frozen=True, kw_only=True)
class BatchParameters(JobParameters):
    """What a job takes that works on a batch. ``batch_id``: its id, or one of ``stand_for_all``."""

    stand_for_all: ClassVar[tuple[str, ...]] = (ALL,)
    """What may stand for the id, for every batch."""
    batch_id: str

    def __post_init__(self) -> None:
        """Refuse an id that names no batch, and a number out of its range."""
        super().__post_init__()
        if not self.batch_id:
            raise UsageError("BatchId not set (or -all not specified)!")
        if self.batch_id.startswith("-") and self.batch_id not in self.stand_for_all:
            others = " or ".join(("name a batch", *self.stand_for_all))
            raise UsageError(f"{self.batch_id!a} is no batch id, which begins with no '-': {others}")
        try:
            self.batch_id.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"the batch id {self.batch_id!a} is not UTF-8: give another") from error

    @property
    def batch(self) -> str:
        """The batch that the job works on."""
        return self.batch_id

    @property
    def every(self) -> bool:
        """Whether the rows of every batch are meant."""
        return self.batch_id in (ALL, REINDEX)
