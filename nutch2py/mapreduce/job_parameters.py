"""Parameters of a job run, typed, which are sent to its tasks along with the properties.

Properties are set by users; parameters belong to one run. Each job module has a frozen dataclass of them, which
validates itself. :func:`nutch2py.mapreduce.driver.run_job` passes it to tasks, which read it as ``self.parameters``.
``-D`` does not affect parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nutch2py.conf.property_ranges import COUNT, LONG_MAX, NumberRange, check_number
from nutch2py.errors import UsageError

ALL = "-all"
"""As batch id: the rows of every batch."""
REINDEX = "-reindex"
"""As batch id: every parsed row, whatever its batch."""
SCORES = "-scores"
"""As batch id of index: the scores of all documents, without the documents."""
TIME_RANGE, NON_NEGATIVE, POSITIVE = NumberRange(0, LONG_MAX), NumberRange(0, LONG_MAX), NumberRange(1, COUNT.high)
"""Ranges: ms since 1970; a count or a seed; a count of at least one."""


@dataclass(frozen=True, kw_only=True)
class JobParameters:
    """Parameters of a job on the whole table, or on files. Base class of all parameters."""

    ranges: ClassVar[Mapping[str, NumberRange]] = {}
    """Ranges of the numeric parameters, by name."""

    def __post_init__(self) -> None:
        """Raise ValueError for a number out of its range."""
        for name, allowed in self.ranges.items():
            check_number(name, getattr(self, name), allowed)

    @property
    def batch_label(self) -> str:
        """The batch that the job works on, "" for none: for labels and progress."""
        return ""


@dataclass(frozen=True, kw_only=True)
class BatchParameters(JobParameters):
    """Parameters of a job on a batch. ``batch_id``: its id, or one of ``all_batches_ids``."""

    all_batches_ids: ClassVar[tuple[str, ...]] = (ALL,)
    """Values that select every batch."""
    batch_id: str

    def __post_init__(self) -> None:
        """Raise for an invalid batch id, and for a number out of its range."""
        super().__post_init__()
        if not self.batch_id:
            raise UsageError("no batch given: name a batch id, or -all; readdb -batches lists the open ones")
        if self.batch_id.startswith("-") and self.batch_id not in self.all_batches_ids:
            others = " or ".join(("name a batch", *self.all_batches_ids))
            raise UsageError(f"{self.batch_id!a} is not a batch id, which does not begin with '-': {others}")
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
        """Whether all batches are selected."""
        return self.batch_id in (ALL, REINDEX)
