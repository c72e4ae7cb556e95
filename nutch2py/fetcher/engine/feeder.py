"""The feeder: keeps the queues of a run filled within a bound, so that no host blocks the others.

Nutch's QueueFeeder reads rows while all queues together have capacity. Once a few large hosts fill that capacity, the
page of another host is read only when a page of a large host finishes, which happens every few seconds. Here, once
threads are free and no waiting page is ready, each queue gives back the later half of its pages. Their keys, and all
that follow, are spilled to disk and return in order as the queue runs low.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import ParamSpec, TypeVar

from nutch2py.fetcher.fetch_state import FetchState
from nutch2py.fetcher.queues.fetch_queues import FetchItem, HostFetchSettings
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.fetcher.queues.spill import Spill

KEYS_PER_READ = 500
"""Keys read in one call."""
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class RowSource:
    """Rows of a run, read in two steps.

    Attributes:
        row_keys: Key and URL of each row.
        read_rows: Reads the rows of keys, without those fetched meanwhile.
        can_read_ahead: Whether keys are so cheap that they may be read long before their rows.
    """

    row_keys: Iterator[tuple[str, str]]
    read_rows: Callable[[Sequence[str]], Iterable[FetchItem]]
    can_read_ahead: bool = True

    @classmethod
    def from_items(cls, items: Iterator[FetchItem]) -> RowSource:
        """Return a source of rows that are already read."""
        buffer: list[FetchItem] = []

        def iter_keys() -> Iterator[tuple[str, str]]:
            for item in items:
                buffer.append(item)
                yield item.key, item.url

        def read(keys: Sequence[str]) -> list[FetchItem]:
            taken = buffer[: len(keys)]
            del buffer[: len(keys)]
            return taken

        return cls(iter_keys(), read, can_read_ahead=False)


@dataclass(frozen=True, slots=True)
class _PendingRow:
    """A row of which only the key is read; ``url_error``: problem of its URL, or ""."""

    key: str
    queue_id: str
    url_error: str


class QueueFeeder:
    """Fills the queues of a run.

    Args:
        state: Progress of the fetch.
        source: Rows to fetch.
        capacity: Maximum number of items in the queues.
        queue_ids: Assigns queues to URLs.
        get_host_settings: Returns the settings of a queue in the host table.
        executor: Thread in which the table is read.
        on_reject: Receives an item with a malformed URL, and the problem.
        on_added: Called when items were added.
    """

    def __init__(
        self,
        state: FetchState,
        source: RowSource,
        capacity: int,
        queue_ids: QueueIdResolver,
        get_host_settings: Callable[[str], HostFetchSettings | None] | None,
        executor: Executor,
        on_reject: Callable[[FetchItem, str], None],
        on_added: Callable[[], None],
    ) -> None:
        self._state, self._source, self._capacity = state, source, capacity
        self._queue_ids, self._get_host_settings, self._executor = queue_ids, get_host_settings, executor
        self._on_reject, self._on_added = on_reject, on_added
        self._pending: deque[_PendingRow] = deque()  # not yet in a queue
        self._has_more = True  # whether the source has more keys
        self._spill = Spill()
        self._refill_candidates: dict[str, None] = {}  # queues that may have capacity for spilled keys
        self._spilled_queue_items = 0  # items in queues with spilled keys, as of the last feeding
        self._skipped = 0  # items that arrived after a limit
        self._wake_event = asyncio.Event()

    async def feed(self) -> None:
        """Feed until all rows are in queues or skipped; after the time limit, only count the rest."""
        fed = 0
        while self._has_more or self._pending or self._spill.total_keys:
            if self.limit_counter:
                self._skipped += (
                    self._spill.total_keys + len(self._pending) + await self._run_in_table_thread(self._count_remaining)
                )
                break
            if refill := self._plan_refill():
                await self._refill(refill)
            elif (self._has_more or self._pending) and (self._should_read() or self._is_starving()):
                if self._free_capacity <= 0 and not await self._spill_waiting():
                    await self._wait()
                    continue
                if not self._pending:
                    fed += await self._read_keys()
                await self._read_or_spill()
            else:
                await self._wait()
        if self._skipped:
            self._state.report.counters[self.limit_counter or "hitByThrougputThreshold"] += self._skipped
        self._state.is_feeding = False
        self._state.log(f"QueueFeeder finished: total {fed} records. Hit by time limit :{self._skipped}")
        self._on_added()

    def on_request_done(self, item: FetchItem) -> None:
        """Check the capacity after a request of an item's queue has finished."""
        if item.queue_id in self._spill:
            self._refill_candidates[item.queue_id] = None
        if self._refill_candidates or self._should_read():
            self._wake_event.set()

    def wake(self) -> None:
        """Check for work: threads are free, or the queues were emptied."""
        self._wake_event.set()

    @property
    def has_read_all(self) -> bool:
        """Whether all keys are read: those that are not in queues yet are spilled ones of their hosts."""
        return not (self._has_more or self._pending)

    def drop_spilled(self, queue_id: str) -> int:
        """Drop the spilled keys of a queue; return their number."""
        return self._spill.drop(queue_id) if queue_id in self._spill else 0

    def close(self) -> None:
        """Delete the spill file."""
        self._spill.close()

    def assign_queue(self, item: FetchItem) -> str:
        """Set the queue and the host settings of an item; return the problem of its URL, or ""."""
        item.queue_id, problem = self._get_queue_id(item.url)
        if not problem:
            self._set_queue(item, item.queue_id)
        return problem

    @property
    def limit_counter(self) -> str:
        """Counter of the items skipped because the fetch reached a limit, "" before that."""
        if self._state.is_past_deadline:
            return "HitByTimeLimit-QueueFeeder"
        return "hitByThrougputThreshold" if self._state.is_stopped else ""

    @property
    def _free_capacity(self) -> int:
        return self._capacity - self._state.queues.total_size

    def _should_read(self) -> bool:
        """Return whether capacity exceeds the waiting rows of small queues, which avoids a read per page."""
        return self._free_capacity >= max(1, self._state.queues.total_size - self._spilled_queue_items)

    def _is_starving(self) -> bool:
        """Return whether threads are free and no waiting page is ready."""
        return self._state.busy_threads < self._state.options.threads and not self._state.queues.is_ready

    async def _wait(self) -> None:
        self._wake_event.clear()
        await self._wake_event.wait()

    async def _spill_waiting(self) -> bool:
        """Spill the keys of the later half of each queue; return whether there were any."""
        spilled = self._state.queues.take_later_half() if self._source.can_read_ahead else {}
        if spilled:
            await self._run_in_table_thread(self._spill_items, spilled)
            self._on_fed()
        return bool(spilled)

    def _spill_items(self, spilled: dict[str, list[FetchItem]]) -> None:
        for queue_id, items in spilled.items():
            self._spill.prepend(queue_id, [item.key for item in items])

    def _is_low(self, queue_id: str, room: int) -> bool:
        """Return whether a queue is at most half full; the last capacity is for hosts without active requests."""
        queues = self._state.queues
        return 3 * queues.queue_size(queue_id) <= room and room > queues.has_request_in_progress(queue_id)

    # -- keys on disk

    def _plan_refill(self) -> dict[str, int]:
        """Return the number of items to read again by queue."""
        queues, room = self._state.queues, self._free_capacity
        refill: dict[str, int] = {}
        for queue_id in list(self._refill_candidates):
            if queue_id not in self._spill:
                del self._refill_candidates[queue_id]
            elif skip_counter := queues.skip_counter(queue_id):
                self._state.report.counters[skip_counter] += self._spill.drop(queue_id)
                del self._refill_candidates[queue_id]
            elif (
                queues.has_request_in_progress(queue_id) or queues.queue_size(queue_id) or room > 0
            ):  # else it waits for capacity
                share = (room - queues.queue_size(queue_id)) // (1 + len(self._refill_candidates))
                del self._refill_candidates[queue_id]
                if self._is_low(queue_id, room):
                    refill[queue_id] = max(1, share)
                    room -= refill[queue_id]
        return refill

    async def _refill(self, refill: dict[str, int]) -> None:
        for item in await self._run_in_table_thread(self._read_spilled, refill):
            self._enqueue(item)
        for queue_id in refill:
            if not self._state.queues.queue_size(
                queue_id
            ):  # its rows are gone: no finished request triggers another refill
                self._refill_candidates[queue_id] = None
        self._on_fed()

    def _read_spilled(self, refill: dict[str, int]) -> list[FetchItem]:
        queues = {key: queue_id for queue_id, most in refill.items() for key in self._spill.take(queue_id, most)}
        return [self._set_queue(item, queues[item.key]) for item in self._source.read_rows([*queues])]

    # -- new rows

    async def _read_keys(self) -> int:
        """Read keys and their queues; return their number."""
        max_keys = KEYS_PER_READ if self._source.can_read_ahead else min(self._free_capacity, KEYS_PER_READ)
        rows = await self._run_in_table_thread(self._next_keys, max_keys)
        await self._queue_ids.resolve_hosts(url for _, url in rows)
        self._pending.extend(_PendingRow(key, *self._get_queue_id(url)) for key, url in rows)
        self._has_more = len(self._pending) >= max_keys
        return len(self._pending)

    def _next_keys(self, max_keys: int) -> list[tuple[str, str]]:
        return list(islice(self._source.row_keys, max_keys))

    async def _read_or_spill(self) -> None:
        """Read the rows for which there is capacity, and spill the keys of large queues."""
        to_read, to_spill = self._split_pending()
        pending_by_key = {row.key: row for row in to_read}
        for item in await self._run_in_table_thread(self._spill_and_read, to_read, to_spill):
            if problem := pending_by_key[item.key].url_error:
                self._on_reject(item, problem)
            else:
                self._enqueue(item)
        self._refill_candidates.update(
            (row.queue_id, None) for row in to_spill if not self._state.queues.queue_size(row.queue_id)
        )
        self._on_fed()

    def _split_pending(self) -> tuple[list[_PendingRow], list[_PendingRow]]:
        """Take pending rows up to the capacity; return the rows to read and the rows to spill."""
        queues, room = self._state.queues, self._free_capacity
        to_read: list[_PendingRow] = []
        to_spill: list[_PendingRow] = []
        while self._pending and room > 0:
            row = self._pending.popleft()
            if not row.url_error and row.queue_id in self._spill:
                to_spill.append(row)  # after the spilled keys of its queue
            elif not row.url_error and (skip_counter := queues.skip_counter(row.queue_id)):
                self._state.report.counters[skip_counter] += 1
            else:
                to_read.append(row)
                room -= 1
        return to_read, to_spill

    def _spill_and_read(self, to_read: list[_PendingRow], to_spill: list[_PendingRow]) -> list[FetchItem]:
        for row in to_spill:
            self._spill.append(row.queue_id, row.key)
        queue_by_key = {row.key: row.queue_id for row in to_read}
        return [
            self._set_queue(item, queue_by_key[item.key])
            for item in self._source.read_rows([row.key for row in to_read])
        ]

    # -- both

    def _get_queue_id(self, url: str) -> tuple[str, str]:
        try:
            return self._queue_ids.get_queue_id(url), ""
        except (ValueError, LookupError) as error:
            return "", str(error) or type(error).__name__

    def _set_queue(self, item: FetchItem, queue_id: str) -> FetchItem:
        item.queue_id = queue_id
        if self._get_host_settings is not None and queue_id:
            item.host_settings = self._get_host_settings(queue_id)
        return item

    def _on_fed(self) -> None:
        self._spilled_queue_items = sum(map(self._state.queues.queue_size, self._spill.queue_ids))
        self._on_added()

    def _enqueue(self, item: FetchItem) -> None:
        if self.limit_counter:  # the queues were emptied during the read
            self._skipped += 1
        elif skip_counter := self._state.queues.add(item):
            self._state.report.counters[skip_counter] += 1

    def _count_remaining(self) -> int:
        return sum(1 for _ in self._source.row_keys)

    async def _run_in_table_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(function, *args, **kwargs))
