"""Writes of another program to a table in HBase, and trials that compare generate with the rows of the table."""

from __future__ import annotations

import itertools
import os
import random
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.table_admin.table_maintenance import manage_due_index
from nutch2py.records.cells import CellError
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import TableQuery, open_store
from nutch2py.table.hbase import hbase_store
from nutch2py.url.keys import reverse_url, unreverse_url
from tests.jobs.rows import fetchlist, put
from tests.table.hbase_standin import Server, gateways_of

NOW, DAY = 1_700_000_000_000, 86_400_000
ROWS = 60
TS, SCORE = b"f:ts", b"s:s"
_numbers = itertools.count()


class Writer(ABC):
    """The other program. ``clock`` is its time for cells; rows are 0 to 29 (due) and 30 to 59 (due tomorrow)."""

    def __init__(self, conf: Configuration) -> None:
        store = open_store(conf, WebPage)
        self.conf, self.table, self.clock = conf, store.name.encode(), store.clock
        self.touched: set[str] = set()

    def key(self, number: int) -> bytes:
        """Return the key of a row, which is about to change."""
        self.touched.add(url_of(number))
        return reverse_url(url_of(number)).encode()

    def write(self, number: int, time: int, stamp: int = 0) -> None:
        """Write a due time; by default with the current time."""
        self.put(number, TS, struct.pack(">q", time), stamp)

    @abstractmethod
    def cell_time(self, number: int) -> int:
        """Return the timestamp of a row's due time, 0 if it has none."""

    @abstractmethod
    def put(self, number: int, column: bytes, value: bytes, stamp: int = 0) -> None:
        """Write a cell; by default with the current time."""

    @abstractmethod
    def load(self, rows: Mapping[int, int], stamp: int) -> None:
        """Load rows (number -> due time) in bulk."""

    @abstractmethod
    def delete(self, number: int, column: bytes = TS) -> None:
        """Delete a column or a family."""

    @abstractmethod
    def remove(self, number: int) -> None:
        """Delete every version of a row, as after a compaction."""

    @abstractmethod
    def expire(self, number: int, column: bytes = TS) -> None:
        """Remove a cell without a trace, as a time to live does."""


class StandinWriter(Writer):
    """The other program beside the stand-in for HBase."""

    def __init__(self, server: Server, conf: Configuration) -> None:
        super().__init__(conf)
        self.server = server

    def cell_time(self, number: int) -> int:
        """Return the timestamp of a row's due time, 0 if it has none."""
        cell = self.server.tables[self.table].row(self.key(number)).get(TS)
        return cell.timestamp if cell is not None else 0

    def put(self, number: int, column: bytes, value: bytes, stamp: int = 0) -> None:
        """Write a cell; by default with the current time."""
        self.server.put(self.table, self.key(number), column, value, stamp or self.clock.next())

    def load(self, rows: Mapping[int, int], stamp: int) -> None:
        """Load rows (number -> due time) in bulk."""
        for number, time in rows.items():
            self.write(number, time, stamp)

    def delete(self, number: int, column: bytes = TS) -> None:
        """Delete a column or a family."""
        gone = self.server.tables[self.table].gone.setdefault(self.key(number), {})
        gone[column] = max(gone.get(column, -1), self.clock.next())

    def remove(self, number: int) -> None:
        """Delete every version of a row, as after a compaction."""
        self.server.tables[self.table].puts.pop(self.key(number), None)
        self.server.tables[self.table].gone.pop(self.key(number), None)

    def expire(self, number: int, column: bytes = TS) -> None:
        """Remove a cell without a trace, as a time to live does."""
        self.server.tables[self.table].puts.get(self.key(number), {}).pop(column, None)


def url_of(number: int) -> str:
    """Return the URL of a row; rows from :data:`ROWS` on are new."""
    return f"http://h{number % 7}.example/{number:05d}"


Scenario = Callable[[Writer, random.Random], None]


def _due(drawn: random.Random) -> int:
    return drawn.randrange(30)


def _later(drawn: random.Random) -> int:
    return drawn.randrange(30, 60)


def _new(drawn: random.Random) -> int:
    return drawn.randrange(60, 90_000)


def _replace(writer: Writer, number: int, time: int, stamp: int = 0) -> None:
    writer.remove(number)
    writer.write(number, time, stamp)


def _overwrite(writer: Writer, number: int) -> None:
    writer.write(number, NOW - 8 * DAY, writer.cell_time(number) or writer.clock.next())


def _load(writer: Writer, drawn: random.Random) -> None:
    writer.load({_new(drawn): NOW - drawn.randrange(DAY) for _ in range(40)}, 3)


SCENARIOS: dict[str, Scenario] = {
    "a row is added": lambda w, d: w.write(_new(d), NOW - 1),
    "a row is added with an old cell time": lambda w, d: w.write(_new(d), NOW - 1, 5),
    "a row is added at the end of the table": lambda w, d: w.write(69_999, NOW - 1),
    "a due row is postponed": lambda w, d: w.write(_due(d), NOW + DAY),
    "a later row is moved earlier": lambda w, d: w.write(_later(d), NOW - DAY),
    "a later row is moved earlier by a clock behind": lambda w, d: _replace(w, _later(d), NOW - DAY, 7),
    "a due row is moved earlier": lambda w, d: w.write(_due(d), NOW - 9 * DAY),
    "a due row is moved within due times by a clock behind": lambda w, d: _replace(w, _due(d), NOW - 9 * DAY, 7),
    "a cell has the time of its predecessor": lambda w, d: _overwrite(w, _later(d)),
    "a clock is ahead": lambda w, d: w.write(_later(d), NOW - 3 * DAY, w.clock.next() + 60_000),
    "the due time of a due row is deleted": lambda w, d: w.delete(_due(d)),
    "the due time of a later row is deleted": lambda w, d: w.delete(_later(d)),
    "the due time of a later row expires": lambda w, d: w.expire(_later(d)),
    "a row is deleted": lambda w, d: w.delete(_due(d), b"f"),
    "a row is deleted and put again": lambda w, d: _replace(w, _later(d), NOW - 2 * DAY),
    "an old due time is replayed": lambda w, d: _replace(w, _later(d), NOW - 30 * DAY, 9),
    "many rows are loaded in bulk": _load,
    "a row has no due time": lambda w, d: w.put(_new(d), SCORE, struct.pack(">f", 1), 11),
    "a due time is negative": lambda w, d: w.write(_later(d), -5),
    "a due time is too far in the future": lambda w, d: w.write(_later(d), 1 << 61),
    "a due time is text": lambda w, d: w.put(_later(d), TS, b"2026-11-28"),
    "a due time is empty": lambda w, d: w.put(_later(d), TS, b""),
}
"""Name -> write."""


@contextmanager
def standin() -> Iterator[Server]:
    """Replace every store of HBase in this process by the stand-in."""
    server, original = Server(), hbase_store.ThriftGatewayPool
    hbase_store.ThriftGatewayPool = gateways_of(server)  # type: ignore[misc,assignment]
    try:
        yield server
    finally:
        hbase_store.ThriftGatewayPool = original  # type: ignore[misc]
        os.close(server.ready)


def make_table(check: str = "exact", address: str = "hbase://stand.in:1") -> Configuration:
    """Return the configuration of a new table with :data:`ROWS` rows and a due index that generate uses."""
    conf = Configuration()
    for name, value in {
        "storage.data.store": address,
        "storage.crawl.id": f"foreign{next(_numbers)}",
        "generate.due.share": "1",
        "hbase.due.index": "true",
        "hbase.due.check": check,
    }.items():
        conf.set(name, value)
    put(conf, {url_of(n): {"fetch_time": NOW - n if n < 30 else NOW + DAY, "score": 1.0} for n in range(ROWS)})
    open_store(conf, WebPage).due_index().record_full_scan(1_000_000)
    return conf


def due_urls(conf: Configuration) -> set[str]:
    """Return the URLs that a full scan chooses, by the rows alone."""
    found = set()
    fields = {WebPage.fetch_time, WebPage.markers, WebPage.score, WebPage.fetch_interval}
    for key, page in open_store(conf, WebPage).scan(TableQuery.for_fields(fields)):
        try:
            time = page.fetch_time
        except CellError:
            continue  # generate skips the row with a warning
        if (time <= NOW or time > 1 << 60) and page.markers.get(Mark.GENERATE) is None:
            found.add(unreverse_url(key))
    return found


def choose(conf: Configuration, number: int = 0) -> tuple[set[str], set[str]]:
    """Return the URLs that generate chooses, and those that a full scan would have chosen."""
    expected = due_urls(conf)
    batch = f"batch-{number}"
    if not generate(conf, now=NOW, batch_id=batch).urls:
        return set(), expected
    return {url for urls in fetchlist(conf, batch).values() for url in urls}, expected


def run_mix(
    writer: Writer,
    drawn: random.Random,
    rounds: int = 3,
    scenarios: Mapping[str, Scenario] = SCENARIOS,
    concurrent_share: float = 0,
    rebuild_share: float = 0.4,
) -> list[str]:
    """Run random writes between batches; return a line for each batch that is not that of a full scan.

    In a share of the rounds other writes happen while generate runs; then the rows that they change may differ. An
    index that is not used any more is rebuilt before a share of the rounds.
    """
    conf, wrong = writer.conf, []
    for number in range(rounds):
        names = [drawn.choice([*scenarios]) for _ in range(drawn.randrange(4))]
        for name in names:
            scenarios[name](writer, drawn)
        writer.touched.clear()
        concurrent = [drawn.choice([*SCENARIOS]) for _ in range(8)] if drawn.random() < concurrent_share else []
        thread = threading.Thread(target=_write_all, args=(writer, concurrent, drawn.random()))
        thread.start()
        chosen, expected = choose(conf, number)
        thread.join()
        if (chosen ^ expected) - writer.touched:
            wrong.append(f"after {names}, during {concurrent}: {sorted((chosen ^ expected) - writer.touched)[:5]}")
        if drawn.random() < rebuild_share and open_store(conf, WebPage).due_index().unavailable_reason:
            manage_due_index(conf)
            open_store(conf, WebPage).due_index().record_full_scan(1_000_000)
    return wrong


def _write_all(writer: Writer, names: list[str], seed: float) -> None:
    drawn = random.Random(seed)
    for name in names:
        SCENARIOS[name](writer, drawn)
