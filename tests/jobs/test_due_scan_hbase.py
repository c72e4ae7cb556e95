"""generate by the due index in HBase: equal to a full scan despite killed jobs and other writers."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError, UsageError
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.readdb.readdb_commands import collect_stats
from nutch2py.jobs.table_admin.table_maintenance import manage_due_index
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.table import DataStore, open_store
from nutch2py.table.due_index import slot_of
from nutch2py.table.hbase import hbase_due_index, hbase_store
from nutch2py.table.hbase.due_table import ENTRY_COLUMN, STATE_ROW
from nutch2py.url.keys import reverse_url
from tests.jobs.rows import fetchlist, put
from tests.jobs.test_due_scan import DAY, NOW, OPTIONS, PROPERTIES, ROWS, Rows, batches_of
from tests.table.hbase_standin import Server, gateways_of

_numbers = itertools.count()
TIMES = st.sampled_from([0, NOW - 3 * DAY, NOW - 1, NOW + 1, NOW + 9 * DAY])
MOVES = st.lists(st.tuples(st.integers(0, 20), TIMES, st.booleans()), max_size=12)
"""Rows that change: which, to what due time, and whether the writer dies between two of its calls."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Replace every store of HBase by the stand-in."""
    made = Server()
    monkeypatch.setattr(hbase_store, "ThriftGatewayPool", gateways_of(made))
    yield made
    os.close(made.ready)


class Killed(BaseException):
    """Represents the end of a process."""


def opened(location: str, properties: Mapping[str, str], share: str) -> Configuration:
    conf = Configuration()
    conf.set("storage.data.store", location)
    conf.set("storage.crawl.id", f"due{next(_numbers)}")
    conf.set("generate.due.share", share)
    conf.set("hbase.due.exact.share", "1")
    conf.set("hbase.due.index", "true")
    for name, value in properties.items():
        conf.set(name, value)
    return conf


def whole(conf: Configuration) -> DataStore[WebPage]:
    """Let the index be used however many rows are due."""
    store = open_store(conf, WebPage)
    store.due_index().record_full_scan(1_000_000)
    return store


def troubles(store: DataStore[WebPage]) -> list[str]:
    found: list[str] = []
    store.due_index().check(found.append)
    return found


def move(conf: Configuration, url: str, time: int) -> None:
    page = WebPage({}, frozenset())
    page.fetch_time = time
    with open_store(conf, WebPage).batch() as batch:
        batch.put(reverse_url(url), page)


@pytest.fixture
def table(server: Server) -> Configuration:
    """A table with 100 rows of which 60 are due."""
    conf = opened("hbase://stand.in:1", {}, "1")
    rows: Rows = {f"http://h{n % 7}.example/{n:03d}": {"score": float(n % 3), "fetch_time": NOW - n} for n in range(60)}
    rows |= {f"http://later.example/{n}": {"fetch_time": NOW + DAY} for n in range(40)}
    put(conf, rows)
    whole(conf)
    return conf


@pytest.mark.parametrize("examples", [6, 50])
def test_due_index_chooses_same_rows_as_full_scan(examples: int, server: Server) -> None:
    """Of random tables of which rows move between the batches, by writers some of which are killed."""

    def change(conf: Configuration, urls: list[str], moves: list[tuple[int, int, bool]]) -> None:
        for number, time, dies in moves:
            url = urls[number % len(urls)]

            left = [2 if dies else 9]

            def kill(_: bytes, left: list[int] = left) -> None:
                left[0] -= 1
                if not left[0]:  # between entry and row
                    raise Killed

            server.before = kill
            try:
                move(conf, url, time)
            except Killed:
                pass
            finally:
                server.before = lambda _: None

    @settings(max_examples=examples, deadline=None)
    @given(ROWS, PROPERTIES, st.lists(OPTIONS, min_size=1, max_size=3), MOVES)
    def check(rows: Rows, properties: dict[str, str], batches: list[dict[str, Any]], moves: Any) -> None:
        found = []
        for share in ("1", "0"):
            conf = opened("hbase://stand.in:1", properties, share)
            put(conf, rows)
            change(conf, sorted(rows), moves)
            whole(conf)
            first = batches_of(conf, {}, batches)
            change(conf, sorted(rows), moves[::-1])  # also to where an entry was deleted
            generate(conf, batch_id="last", now=NOW + 2 * DAY, top_n=7)
            found.append((first, fetchlist(conf, "last")))
            assert troubles(open_store(conf, WebPage)) == []
            assert open_store(conf, WebPage).due_index().unavailable_reason == ""
        assert found[0] == found[1]

    check()


def test_real_hbase_due_index_chooses_same_rows(hbase: Any) -> None:
    @settings(max_examples=3, deadline=None)
    @given(ROWS, st.lists(OPTIONS, min_size=1, max_size=2))
    def check(rows: Rows, batches: list[dict[str, Any]]) -> None:
        found = []
        for share in ("1", "0"):
            conf = opened(hbase.location, {"mapreduce.job.maps": "3"}, share)
            put(conf, rows)
            whole(conf)
            found.append(batches_of(conf, {}, batches))
        assert found[0] == found[1]

    check()
    rows: Rows = {f"http://h{n % 7}.example/{n}": {"fetch_time": NOW - n} for n in range(50)}
    conf = opened(hbase.location, {"generate.due.share": "1"}, "1")
    put(conf, rows)
    store = whole(conf)
    for url in list(rows)[:20]:
        move(conf, url, NOW + DAY)
    index = store.due_index()
    spans = [hbase_due_index.TimeSpan(0, NOW)]
    before = index.count(spans, 1000)
    assert generate(conf, now=NOW).urls == 30
    assert (before, index.count(spans, 1000)) == (50, 30)  # what had moved is gone from the index
    manage_due_index(conf)
    assert manage_due_index(conf, check=True) == 0
    manage_due_index(conf, drop=True)
    assert "the table has none" in store.due_index().unavailable_reason


class TestHowManyRowsAreLookedAt:
    def test_only_due_rows_are_read(self, table: Configuration) -> None:
        result = generate(table, now=NOW, top_n=5)
        assert (result.urls, result.count("generator", "rows")) == (5, 60)

    @pytest.mark.parametrize("tasks", [1, 3, 100])
    def test_due_rows_are_read_in_several_tasks(self, table: Configuration, tasks: int) -> None:
        table.set("mapreduce.job.maps", str(tasks))
        result = generate(table, now=NOW)
        assert (result.urls, result.count("generator", "rows")) == (60, 60)

    def test_all_rows_are_read_when_too_many_are_due(
        self, table: Configuration, capsys: pytest.CaptureFixture[str]
    ) -> None:
        table.set("generate.due.share", "0.25")
        open_store(table, WebPage).due_index().record_full_scan(239)
        assert generate(table, now=NOW, top_n=1).count("generator", "rows") == 100
        assert "more than generate.due.share of the rows are due" in capsys.readouterr().out
        assert generate(table, now=NOW, top_n=1).count("generator", "rows") == 100  # it knows now how many there are
        open_store(table, WebPage).due_index().record_full_scan(240)
        assert generate(table, now=NOW, top_n=1).count("generator", "rows") == 60

    @pytest.mark.parametrize("check", ["exact", "sample"])
    @pytest.mark.parametrize(("rows", "by_index"), [(1_199, False), (1_200, True)])
    def test_exact_check_is_skipped_where_full_scan_costs_less(
        self, table: Configuration, capsys: pytest.CaptureFixture[str], check: str, rows: int, by_index: bool
    ) -> None:
        """Sixty of the rows are due: five per cent of 1,200."""
        table.set("hbase.due.exact.share", "0.05")
        table.set("hbase.due.check", check)
        open_store(table, WebPage).due_index().record_full_scan(rows)
        result = generate(table, now=NOW, top_n=1)
        assert result.count("generator", "rows") == (60 if by_index or check == "sample" else 100)
        told = "more than hbase.due.exact.share of the rows are due" in capsys.readouterr().out
        assert told == (check == "exact" and not by_index)
        table.set("generate.due.share", "0.01")  # the smaller share decides
        open_store(table, WebPage).due_index().record_full_scan(rows)
        assert generate(table, now=NOW, top_n=1).count("generator", "rows") == 100
        assert "more than generate.due.share" in capsys.readouterr().out

    def test_large_count_is_sampled(self, table: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hbase_due_index, "EXACT_COUNT_LIMIT", 10)
        index = open_store(table, WebPage).due_index()
        assert 10 <= index.count([hbase_due_index.TimeSpan(0, NOW)], 1_000) <= 400
        assert index.count([hbase_due_index.TimeSpan(0, NOW)], 20) <= 20


class TestOtherPrograms:
    """They write rows without the index."""

    @pytest.fixture
    def foreign(self, server: Server, table: Configuration) -> Iterator[Callable[[str, int], None]]:
        name = open_store(table, WebPage).name.encode()

        def write(url: str, time: int) -> None:
            stamp = open_store(table, WebPage).clock.next()
            server.put(name, reverse_url(url).encode(), b"f:ts", struct.pack(">q", time), stamp)

        return write

    def test_row_moved_by_other_program_is_detected(
        self,
        table: Configuration,
        foreign: Callable[[str, int], None],
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Nutch 2 does so with fetched rows; it has added another row, which no entry names."""
        monkeypatch.setattr(hbase_due_index.HBaseDueIndex, "full_scan_reason", lambda *_: "")
        foreign("http://h1.example/001", NOW + DAY)
        foreign("http://new.example/", NOW - 1)
        result = generate(table, now=NOW, batch_id="b")
        assert (result.urls, result.count("generator", "rows")) == (60, 101)
        said = capsys.readouterr().out
        assert "1 rows were changed by a program that does not maintain the due index: full table scan" in said
        trouble = open_store(table, WebPage).due_index().unavailable_reason
        assert (
            trouble == "a program that does not maintain it has written to the table since (run dueindex to rebuild it)"
        )
        assert generate(table, now=NOW + DAY).count("generator", "rows") == 101
        manage_due_index(table)
        assert open_store(table, WebPage).due_index().unavailable_reason == ""

    def test_rows_added_by_other_program_are_detected(
        self, table: Configuration, foreign: Callable[[str, int], None], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Of due rows it is tried whether the index has them."""
        foreign("http://a.example/", NOW)
        assert generate(table, now=NOW).urls == 61
        assert "1 due rows are missing in the due index" in capsys.readouterr().out

    def test_all_rows_are_read_after_some_days(self, table: Configuration) -> None:
        """Also where only a sample of the rows is checked."""
        table.set("hbase.due.check", "sample")
        table.set("hbase.due.look.days", "1")
        index = open_store(table, WebPage).due_index()
        assert index.full_scan_reason(hbase_due_index.now_ms(), []) == ""
        assert "look.days have passed" in index.full_scan_reason(hbase_due_index.now_ms() + 2 * DAY, [])

    def test_unaware_program_invalidates_index(self, table: Configuration) -> None:
        other = table.copy()
        other.set("hbase.due.index", "false")
        assert open_store(other, WebPage).due_index().unavailable_reason == "hbase.due.index is false"
        assert generate(other, now=NOW, batch_id="b").count("generator", "rows") == 100
        assert open_store(table, WebPage).due_index().unavailable_reason == ""  # marks alone move no row
        move(other, "http://h1.example/001", NOW + DAY)
        assert "hbase.due.index = false has written" in open_store(table, WebPage).due_index().unavailable_reason
        with pytest.raises(UsageError):
            manage_due_index(other)


class TestEntries:
    def places(self, server: Server) -> set[bytes]:
        (name,) = (name for name in server.tables if name.endswith(b"_due"))
        table = server.tables[name]
        return {key[1:] for key in table.puts if ENTRY_COLUMN in table.row(key)}

    def test_stale_entry_is_removed_when_read(self, table: Configuration, server: Server) -> None:
        move(table, "http://h1.example/001", NOW + DAY)
        key = reverse_url("http://h1.example/001").encode()
        assert {slot_of(NOW) + key, slot_of(NOW + DAY) + key} <= self.places(server)
        generate(table, now=NOW, batch_id="b")
        assert slot_of(NOW) + key not in self.places(server)
        assert slot_of(NOW + DAY) + key in self.places(server)

    def test_entry_of_pending_row_is_kept(self, table: Configuration, server: Server) -> None:
        """Another job is writing: its entry exists, its row does not."""
        url, key = "http://later.example/7", reverse_url("http://later.example/7").encode()

        def meanwhile(table_name: bytes) -> None:
            if table_name.endswith(b"webpage"):
                server.before = lambda _: None
                assert generate(table, now=NOW, batch_id="b").urls == 60

        server.before = meanwhile
        move(table, url, NOW - 1)
        assert slot_of(NOW - 1) + key in self.places(server)
        assert generate(table, now=NOW, batch_id="c").urls == 1

    def test_entry_of_deleted_row_is_removed_after_a_day(
        self, table: Configuration, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = reverse_url("http://h1.example/001").encode()
        with open_store(table, WebPage).batch() as batch:
            batch.delete(key.decode())
        assert generate(table, now=NOW, batch_id="b").urls == 59
        assert slot_of(NOW) + key in self.places(server)
        later = hbase_due_index.now_ms() + 2 * DAY
        monkeypatch.setattr(hbase_due_index, "now_ms", lambda: later)
        assert generate(table, now=NOW, batch_id="c").urls == 0
        assert slot_of(NOW) + key not in self.places(server)

    def test_row_without_due_time_is_due(self, table: Configuration) -> None:
        page = WebPage({}, frozenset())
        page.fetch_time = None
        with open_store(table, WebPage).batch() as batch:
            batch.put(reverse_url("http://later.example/7"), page)
        assert generate(table, now=NOW).urls == 61

    def test_table_without_entries_works_unchanged(self, table: Configuration, server: Server) -> None:
        for name in [name for name in server.tables if name.endswith(b"_due")]:
            del server.tables[name]
        assert "the table has none" in open_store(table, WebPage).due_index().unavailable_reason
        move(table, "http://h1.example/001", NOW + DAY)
        assert generate(table, now=NOW).urls == 59
        assert collect_stats(table, by_host=False).total == 100


class TestMakingIt:
    def test_killed_build_is_not_used(
        self, table: Configuration, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("nutch2py.jobs.table_admin.due_index_job.ROWS_PER_READ", 10)
        left = [3]

        def kill(name: bytes) -> None:
            left[0] -= name.endswith(b"_due")
            if not left[0]:
                raise Killed

        server.before = kill
        with pytest.raises(Killed):
            manage_due_index(table)
        server.before = lambda _: None
        assert "did not finish" in open_store(table, WebPage).due_index().unavailable_reason
        move(table, "http://h1.example/001", NOW + DAY)  # jobs continue
        assert generate(table, now=NOW, batch_id="b").urls == 59
        manage_due_index(table)
        assert troubles(open_store(table, WebPage)) == []

    def test_job_started_during_build_keeps_index(self, table: Configuration, server: Server) -> None:
        def meanwhile(name: bytes) -> None:
            if name.endswith(b"_due") and STATE_ROW in server.tables[name].puts:
                server.before = lambda _: None
                move(table, "http://first.example/", NOW)  # after the range of the tasks

        server.before = meanwhile
        manage_due_index(table)
        assert open_store(table, WebPage).due_index().unavailable_reason == ""
        assert troubles(open_store(table, WebPage)) == []

    def test_table_dropped_during_build_is_handled(self, table: Configuration) -> None:
        index = open_store(table, WebPage).due_index()
        index.start_build()
        index.drop()
        with pytest.raises(NutchError, match="the due index was dropped or rebuilt meanwhile"):
            index.finish_build(1)

    def test_missing_entries_are_detected(
        self, table: Configuration, server: Server, capsys: pytest.CaptureFixture[str]
    ) -> None:
        name = open_store(table, WebPage).name.encode()
        server.put(name, b"com.foreign:http/", b"f:ts", struct.pack(">q", NOW), 1)
        assert manage_due_index(table, check=True) == 1
        assert "row com.foreign:http/ is not in the index" in capsys.readouterr().out


def test_mark_writes_cost_no_index_update(table: Configuration, server: Server) -> None:
    """Setting a mark costs no more than before."""
    written: list[bytes] = []
    server.before = written.append
    page = WebPage({}, frozenset())
    page.markers = {Mark.GENERATE: "b"}
    with open_store(table, WebPage).batch() as batch:
        batch.put(reverse_url("http://h1.example/001"), page)
    assert [name for name in written if name.endswith(b"_due")] == []
