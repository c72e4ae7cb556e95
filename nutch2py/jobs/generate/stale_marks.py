"""Finds stale generate marks, which generate replaces."""

from __future__ import annotations

from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState


class StaleMarkChecker:
    """Finds generate marks older than ``crawl.gen.delay``: their batch was abandoned before updatedb.

    ``now`` is the clock's time in ms since 1970, never the time by which ``-adddays`` selects rows.
    """

    def __init__(self, batch_lists: BatchListStore, max_age_ms: int, now: int) -> None:
        self._batch_lists, self._max_age_ms, self._now = batch_lists, max_age_ms, now
        self._is_stale_by_batch: dict[str, bool] = {}

    def __call__(self, batch_id: str) -> bool:
        """Return whether the marks of a batch are too old to count."""
        if batch_id not in self._is_stale_by_batch:
            created = self._batch_lists.get_creation_time(batch_id)
            if created is None:  # generated elsewhere, with an id of unknown age: its age counts from now
                self._batch_lists.set_state(batch_id, BatchState.SEEN)
            self._is_stale_by_batch[batch_id] = created is not None and self._now - created > self._max_age_ms
        return self._is_stale_by_batch[batch_id]
