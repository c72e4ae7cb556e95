"""The feeder: keeps the queues of a run filled, within a bound, and lets no host keep the others out of them.

Nutch's QueueFeeder reads on while there is room in all queues together. Once the pages of some large hosts have taken
that room, a page of any other is read only when one of the large hosts, which are asked every few seconds, has one page
less. Here, when threads are free and no page that waits may be asked for yet, each queue gives the later half of its
pages back: their keys are put on disk, as are all that follow, and come back, in their order, as the queue runs low.
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

_KEYS_PER_READ = 500  # rows named at a time
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class RowSource:
    """What a run is to fetch.

    ``row_keys``: key and URL of each row. ``read_rows``: reads rows by their keys, those that are still to be fetched.
    ``can_read_ahead``: names cost next to nothing, so they may be read long before their rows.
    """

    row_keys: Iterator[tuple[str, str]]
    read_rows: Callable[[Sequence[str]], Iterable[FetchItem]]
    can_read_ahead: bool = True

    @classmethod
    def from_items(cls, items: Iterator[FetchItem]) -> RowSource:
        """Return rows that are read already."""
        at_hand: list[FetchItem] = []

        def names() -> Iterator[tuple[str, str]]:
            for item in items:
                at_hand.append(item)
                yield item.key, item.url

        def read(keys: Sequence[str]) -> list[FetchItem]:
            found = at_hand[: len(keys)]
            del at_hand[: len(keys)]
            return found

        return cls(names(), read, can_read_ahead=False)


@dataclass(frozen=True, slots=True)
class _PendingRow:
    """A row that is named and not read: ``url_error`` says what is wrong with its URL, "" for nothing."""

    key: str
    queue_id: str
    url_error: str


class QueueFeeder:
    """Fills the queues of a run with at most ``capacity`` items.

    ``table``: the thread in which rows are named and read. ``own_settings``: what the host table says of a queue.
    ``refuse`` takes an item whose URL is wrong, and what is wrong with it; ``added`` is called when items have come.
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
        self._pending: deque[_PendingRow] = deque()  # not in a queue yet
        self._has_more = True  # whether there are more to name
        self._spill = Spill()
        self._refill_candidates: dict[str, None] = {}  # queues that may have room for keys that are on disk
        self._spilled_queue_items = 0  # items of queues that have keys on disk, at the last look
        self._skipped = 0  # items that came too late
        self._wake_event = asyncio.Event()

    async def feed(self) -> None:
        """Feed until all rows are in their queues or left out; after the time limit only count what is left."""
        fed = 0
        while self._has_more or self._pending or self._spill.total_keys:
            if self.limit_counter:
                self._skipped += (
                    self._spill.total_keys + len(self._pending) + await self._run_in_table_thread(self._count_remaining)
                )
                break
            if asked := self._plan_refill():
                await self._refill(asked)
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
        """Look whether there is room, after a request of an item's queue has ended."""
        if item.queue_id in self._spill:
            self._refill_candidates[item.queue_id] = None
        if self._refill_candidates or self._should_read():
            self._wake_event.set()

    def wake(self) -> None:
        """Look again whether there is anything to do: threads are free, or the queues were emptied."""
        self._wake_event.set()

    def close(self) -> None:
        """Give the disk back."""
        self._spill.close()

    def assign_queue(self, item: FetchItem) -> str:
        """Name the queue of an item, and what the host table says of it; return what is wrong with its URL, or ""."""
        item.queue_id, problem = self._get_queue_id(item.url)
        if not problem:
            self._set_queue(item, item.queue_id)
        return problem

    @property
    def limit_counter(self) -> str:
        """The name of the counter of what is left as the fetch has come to a limit, "" while it has not."""
        if self._state.is_past_deadline:
            return "HitByTimeLimit-QueueFeeder"
        return "hitByThrougputThreshold" if self._state.is_stopped else ""

    @property
    def _free_capacity(self) -> int:
        return self._capacity - self._state.queues.total_size

    def _should_read(self) -> bool:
        """Whether there is room for more rows than wait, those of the large queues aside: not a read for each page."""
        return self._free_capacity >= max(1, self._state.queues.total_size - self._spilled_queue_items)

    def _is_starving(self) -> bool:
        """Whether threads are free and no page that waits may be asked for now."""
        return self._state.busy_threads < self._state.options.threads and not self._state.queues.is_ready

    async def _wait(self) -> None:
        self._wake_event.clear()
        await self._wake_event.wait()

    async def _spill_waiting(self) -> bool:
        """Put the keys of the later half of each queue on disk; tell whether there were any."""
        given = self._state.queues.take_later_half() if self._source.can_read_ahead else {}
        if given:
            await self._run_in_table_thread(self._spill_items, given)
            self._on_fed()
        return bool(given)

    def _spill_items(self, given: dict[str, list[FetchItem]]) -> None:
        for queue_id, items in given.items():
            self._spill.prepend(queue_id, [item.key for item in items])

    def _is_low(self, queue_id: str, room: int) -> bool:
        """Whether a queue holds half of what it may hold, or less; the last room is for hosts that nobody asks."""
        queues = self._state.queues
        return 3 * queues.queue_size(queue_id) <= room and room > queues.has_request_in_progress(queue_id)

    # -- keys on disk

    def _plan_refill(self) -> dict[str, int]:
        """Return how many items to read again for which queues."""
        queues, room = self._state.queues, self._free_capacity
        asked: dict[str, int] = {}
        for queue_id in list(self._refill_candidates):
            if queue_id not in self._spill:
                del self._refill_candidates[queue_id]
            elif left_out := queues.skip_counter(queue_id):
                self._state.report.counters[left_out] += self._spill.drop(queue_id)
                del self._refill_candidates[queue_id]
            elif (
                queues.has_request_in_progress(queue_id) or queues.queue_size(queue_id) or room > 0
            ):  # else it waits for the room
                share = (room - queues.queue_size(queue_id)) // (1 + len(self._refill_candidates))
                del self._refill_candidates[queue_id]
                if self._is_low(queue_id, room):
                    asked[queue_id] = max(1, share)
                    room -= asked[queue_id]
        return asked

    async def _refill(self, asked: dict[str, int]) -> None:
        for item in await self._run_in_table_thread(self._read_spilled, asked):
            self._enqueue(item)
        for queue_id in asked:
            if not self._state.queues.queue_size(queue_id):  # its rows are gone: no request will end that asks for more
                self._refill_candidates[queue_id] = None
        self._on_fed()

    def _read_spilled(self, asked: dict[str, int]) -> list[FetchItem]:
        queues = {key: queue_id for queue_id, most in asked.items() for key in self._spill.take(queue_id, most)}
        return [self._set_queue(item, queues[item.key]) for item in self._source.read_rows([*queues])]

    # -- new rows

    async def _read_keys(self) -> int:
        """Name rows and their queues; return how many those are."""
        most = _KEYS_PER_READ if self._source.can_read_ahead else min(self._free_capacity, _KEYS_PER_READ)
        named = await self._run_in_table_thread(self._next_keys, most)
        await self._queue_ids.resolve_hosts(url for _, url in named)
        self._pending.extend(_PendingRow(key, *self._get_queue_id(url)) for key, url in named)
        self._has_more = len(self._pending) >= most
        return len(self._pending)

    def _next_keys(self, most: int) -> list[tuple[str, str]]:
        return list(islice(self._source.row_keys, most))

    async def _read_or_spill(self) -> None:
        """Read the rows for which there is room, and put the keys of large queues on disk."""
        near, far = self._split_pending()
        of_key = {name.key: name for name in near}
        for item in await self._run_in_table_thread(self._spill_and_read, near, far):
            if problem := of_key[item.key].url_error:
                self._on_reject(item, problem)
            else:
                self._enqueue(item)
        self._refill_candidates.update(
            (name.queue_id, None) for name in far if not self._state.queues.queue_size(name.queue_id)
        )
        self._on_fed()

    def _split_pending(self) -> tuple[list[_PendingRow], list[_PendingRow]]:
        """Take what is named, up to the last for which there is room; return what to read, and what goes to disk."""
        queues, room = self._state.queues, self._free_capacity
        near: list[_PendingRow] = []
        far: list[_PendingRow] = []
        while self._pending and room > 0:
            name = self._pending.popleft()
            if not name.url_error and name.queue_id in self._spill:
                far.append(name)  # it stands behind these
            elif not name.url_error and (left_out := queues.skip_counter(name.queue_id)):
                self._state.report.counters[left_out] += 1
            else:
                near.append(name)
                room -= 1
        return near, far

    def _spill_and_read(self, near: list[_PendingRow], far: list[_PendingRow]) -> list[FetchItem]:
        for name in far:
            self._spill.append(name.queue_id, name.key)
        of_key = {name.key: name.queue_id for name in near}
        return [self._set_queue(item, of_key[item.key]) for item in self._source.read_rows([name.key for name in near])]

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
        if self.limit_counter:  # the queues were emptied while it was read
            self._skipped += 1
        elif left_out := self._state.queues.add(item):
            self._state.report.counters[left_out] += 1

    def _count_remaining(self) -> int:
        return sum(1 for _ in self._source.row_keys)

    async def _run_in_table_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(function, *args, **kwargs))
