"""What a driver tells of the steps of a job, while they run and when they are done, to who keeps its account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Protocol


class StepListener(Protocol):
    """Takes word of the MapReduce jobs that a job consists of, one after the other."""

    def step_started(
        self, count_rows: Callable[[], int], expected: int | None, get_notes: Callable[[], list[str]] = list
    ) -> None:
        """Take word that a step begins.

        ``count_rows`` tells how many it has done, of about ``expected``; ``get_notes`` what its tasks say of how they go.
        """

    def step_finished(self, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Take word that a step is done, and what it counted; not of one that failed."""

    def step_closed(self) -> None:
        """Take word that the rows of a step can no more be asked for, however it ended."""


STEP_LISTENER: ContextVar[StepListener | None] = ContextVar("ACCOUNT", default=None)
"""Who keeps the account of the job in this thread."""
