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
from nutch2py.fetcher.queue_keys import QueueKeys
from nutch2py.fetcher.queues import FetchItem, HostSettings
from nutch2py.fetcher.spill import Spill

_PULL = 500  # rows named at a time
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Rows:
    """What a run is to fetch.

    ``names``: key and URL of each row. ``read``: reads rows by their keys, those that are still to be fetched.
    ``ahead``: names cost next to nothing, so they may be read long before their rows.
    """

    names: Iterator[tuple[str, str]]
    read: Callable[[Sequence[str]], Iterable[FetchItem]]
    ahead: bool = True

    @classmethod
    def of(cls, items: Iterator[FetchItem]) -> Rows:
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

        return cls(names(), read, ahead=False)


@dataclass(frozen=True, slots=True)
class _Name:
    """A row that is named and not read: ``problem`` says what is wrong with its URL, "" for nothing."""

    key: str
    queue_id: str
    problem: str


class Feeder:
    """Fills the queues of a run with at most ``capacity`` items.

    ``table``: the thread in which rows are named and read. ``own_settings``: what the host table says of a queue.
    ``refuse`` takes an item whose URL is wrong, and what is wrong with it; ``added`` is called when items have come.
    """

    def __init__(
        self,
        state: FetchState,
        rows: Rows,
        capacity: int,
        keys: QueueKeys,
        own_settings: Callable[[str], HostSettings | None] | None,
        table: Executor,
        refuse: Callable[[FetchItem, str], None],
        added: Callable[[], None],
    ) -> None:
        self._state, self._rows, self._capacity = state, rows, capacity
        self._keys, self._own_settings, self._table = keys, own_settings, table
        self._refuse, self._added = refuse, added
        self._named: deque[_Name] = deque()  # not in a queue yet
        self._more = True  # whether there are more to name
        self._spill = Spill()
        self._thirsty: dict[str, None] = {}  # queues that may have room for keys that are on disk
        self._held = 0  # items of queues that have keys on disk, at the last look
        self._left = 0  # items that came too late
        self._hungry = asyncio.Event()

    async def feed(self) -> None:
        """Feed until all rows are in their queues or left out; after the time limit only count what is left."""
        fed = 0
        while self._more or self._named or self._spill.total:
            if self.over:
                self._left += self._spill.total + len(self._named) + await self._in_table(self._drain)
                break
            if asked := self._asked():
                await self._again(asked)
            elif (self._more or self._named) and (self._is_due() or self._is_starving()):
                if self._room <= 0 and not await self._give_back():
                    await self._rest()
                    continue
                if not self._named:
                    fed += await self._name()
                await self._part()
            else:
                await self._rest()
        if self._left:
            self._state.report.counters[self.over or "hitByThrougputThreshold"] += self._left
        self._state.feeding = False
        self._state.log(f"QueueFeeder finished: total {fed} records. Hit by time limit :{self._left}")
        self._added()

    def look(self, item: FetchItem) -> None:
        """Look whether there is room, after a request of an item's queue has ended."""
        if item.queue_id in self._spill:
            self._thirsty[item.queue_id] = None
        if self._thirsty or self._is_due():
            self._hungry.set()

    def wake(self) -> None:
        """Look again whether there is anything to do: threads are free, or the queues were emptied."""
        self._hungry.set()

    def close(self) -> None:
        """Give the disk back."""
        self._spill.close()

    def assign(self, item: FetchItem) -> str:
        """Name the queue of an item, and what the host table says of it; return what is wrong with its URL, or ""."""
        item.queue_id, problem = self._queue_of(item.url)
        if not problem:
            self._set(item, item.queue_id)
        return problem

    @property
    def over(self) -> str:
        """The name of the counter of what is left as the fetch has come to a limit, "" while it has not."""
        if self._state.late:
            return "HitByTimeLimit-QueueFeeder"
        return "hitByThrougputThreshold" if self._state.stopped else ""

    @property
    def _room(self) -> int:
        return self._capacity - self._state.queues.total_size

    def _is_due(self) -> bool:
        """Whether there is room for more rows than wait, those of the large queues aside: not a read for each page."""
        return self._room >= max(1, self._state.queues.total_size - self._held)

    def _is_starving(self) -> bool:
        """Whether threads are free and no page that waits may be asked for now."""
        return self._state.busy < self._state.options.threads and not self._state.queues.ready

    async def _rest(self) -> None:
        self._hungry.clear()
        await self._hungry.wait()

    async def _give_back(self) -> bool:
        """Put the keys of the later half of each queue on disk; tell whether there were any."""
        given = self._state.queues.halve() if self._rows.ahead else {}
        if given:
            await self._in_table(self._keep, given)
            self._fed()
        return bool(given)

    def _keep(self, given: dict[str, list[FetchItem]]) -> None:
        for queue_id, items in given.items():
            self._spill.put_back(queue_id, [item.key for item in items])

    def _is_low(self, queue_id: str, room: int) -> bool:
        """Whether a queue holds half of what it may hold, or less; the last room is for hosts that nobody asks."""
        queues = self._state.queues
        return 3 * queues.size(queue_id) <= room and room > queues.asks(queue_id)

    # -- keys on disk

    def _asked(self) -> dict[str, int]:
        """Return how many items to read again for which queues."""
        queues, room = self._state.queues, self._room
        asked: dict[str, int] = {}
        for queue_id in list(self._thirsty):
            if queue_id not in self._spill:
                del self._thirsty[queue_id]
            elif left_out := queues.refusal(queue_id):
                self._state.report.counters[left_out] += self._spill.drop(queue_id)
                del self._thirsty[queue_id]
            elif queues.asks(queue_id) or queues.size(queue_id) or room > 0:  # else it waits for the room
                share = (room - queues.size(queue_id)) // (1 + len(self._thirsty))
                del self._thirsty[queue_id]
                if self._is_low(queue_id, room):
                    asked[queue_id] = max(1, share)
                    room -= asked[queue_id]
        return asked

    async def _again(self, asked: dict[str, int]) -> None:
        for item in await self._in_table(self._read_again, asked):
            self._add(item)
        for queue_id in asked:
            if not self._state.queues.size(queue_id):  # its rows are gone: no request will end that asks for more
                self._thirsty[queue_id] = None
        self._fed()

    def _read_again(self, asked: dict[str, int]) -> list[FetchItem]:
        queues = {key: queue_id for queue_id, most in asked.items() for key in self._spill.take(queue_id, most)}
        return [self._set(item, queues[item.key]) for item in self._rows.read([*queues])]

    # -- new rows

    async def _name(self) -> int:
        """Name rows and their queues; return how many those are."""
        most = _PULL if self._rows.ahead else min(self._room, _PULL)
        named = await self._in_table(self._names, most)
        await self._keys.prepare(url for _, url in named)
        self._named.extend(_Name(key, *self._queue_of(url)) for key, url in named)
        self._more = len(self._named) >= most
        return len(self._named)

    def _names(self, most: int) -> list[tuple[str, str]]:
        return list(islice(self._rows.names, most))

    async def _part(self) -> None:
        """Read the rows for which there is room, and put the keys of large queues on disk."""
        near, far = self._shares()
        of_key = {name.key: name for name in near}
        for item in await self._in_table(self._read, near, far):
            if problem := of_key[item.key].problem:
                self._refuse(item, problem)
            else:
                self._add(item)
        self._thirsty.update((name.queue_id, None) for name in far if not self._state.queues.size(name.queue_id))
        self._fed()

    def _shares(self) -> tuple[list[_Name], list[_Name]]:
        """Take what is named, up to the last for which there is room; return what to read, and what goes to disk."""
        queues, room = self._state.queues, self._room
        near: list[_Name] = []
        far: list[_Name] = []
        while self._named and room > 0:
            name = self._named.popleft()
            if not name.problem and name.queue_id in self._spill:
                far.append(name)  # it stands behind these
            elif not name.problem and (left_out := queues.refusal(name.queue_id)):
                self._state.report.counters[left_out] += 1
            else:
                near.append(name)
                room -= 1
        return near, far

    def _read(self, near: list[_Name], far: list[_Name]) -> list[FetchItem]:
        for name in far:
            self._spill.put(name.queue_id, name.key)
        of_key = {name.key: name.queue_id for name in near}
        return [self._set(item, of_key[item.key]) for item in self._rows.read([name.key for name in near])]

    # -- both

    def _queue_of(self, url: str) -> tuple[str, str]:
        try:
            return self._keys.queue_id(url), ""
        except (ValueError, LookupError) as error:
            return "", str(error) or type(error).__name__

    def _set(self, item: FetchItem, queue_id: str) -> FetchItem:
        item.queue_id = queue_id
        if self._own_settings is not None and queue_id:
            item.settings = self._own_settings(queue_id)
        return item

    def _fed(self) -> None:
        self._held = sum(map(self._state.queues.size, self._spill.queues))
        self._added()

    def _add(self, item: FetchItem) -> None:
        if self.over:  # the queues were emptied while it was read
            self._left += 1
        elif left_out := self._state.queues.add(item):
            self._state.report.counters[left_out] += 1

    def _drain(self) -> int:
        return sum(1 for _ in self._rows.names)

    async def _in_table(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._table, partial(function, *args, **kwargs))
