"""Events of a job's MapReduce steps, for the listener that records the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Protocol


class StepListener(Protocol):
    """Receives the start and end of each MapReduce step of a job."""

    def step_started(
        self,
        count_rows: Callable[[], int],
        expected: int | None,
        get_notes: Callable[[], list[str]] = list,
        get_counters: Callable[[], Mapping[str, Mapping[str, int]]] = dict,
        get_queues: Callable[[], Sequence[Mapping[str, object]]] = list,
    ) -> None:
        """Receive the start of a step.

        ``count_rows`` returns the number of rows done, of about ``expected``; ``get_notes`` the status texts of its
        tasks; ``get_counters`` the counters that its tasks have saved so far; ``get_queues`` the fetch
        queues of its running tasks.
        """

    def step_finished(self, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Receive the counters of a step that has succeeded."""

    def step_closed(self) -> None:
        """Receive the end of a step, successful or not; the functions of its start must not be called any more."""


STEP_LISTENER: ContextVar[StepListener | None] = ContextVar("step_listener", default=None)
"""The listener that records the job of this context."""
