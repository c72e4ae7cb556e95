"""The due index and the table statistics equal the rows after every write, and are not trusted otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError, UsageError
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.records.cells import CellError, ParseStatus, ProtocolStatus, encode_float
from nutch2py.records.webpage import Host, WebPage
from nutch2py.table import DataStore, TableQuery, open_store
from nutch2py.table.due_index import TimeSpan, iter_candidates
from nutch2py.table.embedded import embedded_due_update
from nutch2py.table.embedded.due_keys import (
    LONGEST_URL,
    build_entries,
    entry_prefix,
    is_after_url,
    row_key_of,
    score_of,
)
from nutch2py.table.embedded.embedded_store import EmbeddedStore
from nutch2py.url.keys import unreverse_url
from tests.conftest import MAP_SIZE

NOW = 1_700_000_000_000
ALL = TimeSpan(-(1 << 63), (1 << 63) - 1)


def opened(folder: Path, keeps: bool = True) -> EmbeddedStore[WebPage]:
    conf = Configuration()
    conf.set("storage.data.store", f"embedded:{folder}")
    conf.set("storage.embedded.map.size", str(MAP_SIZE))
    conf.set("storage.embedded.due.index", str(keeps).lower())
    store = open_store(conf, WebPage)
    assert isinstance(store, EmbeddedStore)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore[WebPage]]:
    made = opened(tmp_path / "crawl")
    made.create()
    yield made
    made.close()


def troubles(store: DataStore[WebPage]) -> list[str]:
    found: list[str] = []
    store.due_index().check(found.append)
    return found


def put(store: DataStore[WebPage], key: str, **values: Any) -> None:
    page = WebPage({}, frozenset())
    for name, value in values.items():
        setattr(page, name, value)
    with store.batch() as batch:
        batch.put(key, page)


def counted(store: DataStore[WebPage]) -> StatsCollector:
    stats = StatsCollector()
    for key, page in store.scan(TableQuery(StatsCollector.FIELDS)):
        stats.add(key, page)
    return stats


def due_time(page: WebPage) -> int:
    """Return the due time as the index has it: 0 for a cell of another type, so that generate meets the row."""
    try:
        return page.fetch_time
    except CellError:
        return 0


def dump(store: EmbeddedStore[WebPage]) -> list[list[tuple[bytes, bytes]]]:
    files = store.get_files()
    with files.read_transaction() as txn:
        return [
            list(txn.cursor(files.database_handle(name)))
            for name in (embedded_due_update.DUE_DATABASE, embedded_due_update.STATISTICS_DATABASE)
        ]


KEYS = st.sampled_from(
    [
        *(f"com.example.{host}:http/{page}" for host in "ab" for page in ("", "x", "x/y", "z?q=1", "ö", "x" * 490)),
        *(f"com.example.a:http/{'long' * 130}{end}" for end in "12"),  # in one bucket
        "com.example.a:http",
        "com..example.a:http/x",  # reads as the URL of another row
        "com.example.a:https:8443/x",
        "[::1]:http/x",
        "no key at all",
        "http://com.example.a/x",  # unchanged, the URL of another row
    ]
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "fetch_time": st.sampled_from([-1, 0, 1, NOW, NOW + 1, NOW + (1 << 22), 1 << 61, (1 << 63) - 1]),
        "score": st.sampled_from([-1.0, -0.0, 0.0, 1e-30, 0.5, 1.0, 1.0004, 7.0, float("inf"), float("nan"), None]),
        "status": st.sampled_from([1, 2, 34, None]),
        "retries_since_fetch": st.sampled_from([0, 3]),
        "fetch_interval": st.sampled_from([10, None]),
        "protocol_status": st.sampled_from([ProtocolStatus(1), ProtocolStatus(12, ("http://x/",)), None]),
        "parse_status": st.sampled_from([ParseStatus(1, 0), ParseStatus(2, 200, ("why",)), None]),
        "title": st.sampled_from(["t", None]),
        "batch_id": st.just("b"),
        "markers": st.sampled_from([{"dist": "1"}, {}]),
    },
)
CELLS = st.sampled_from(
    [
        {b"f": {b"ts": (b"\0\1", NOW)}},  # of another type
        {b"s": {b"s": (encode_float(3.0), NOW), b"sp": (b"1234", NOW)}},
        {b"f": {b"st": (b"\0\0\0\2", 1), b"own": (b"1", 1)}},  # older than the existing cells
        {b"p": {b"st": (b"", NOW)}},
        {b"mk": {b"_injmrk_": (b"y", NOW)}},
    ]
)
WRITES = st.lists(
    st.tuples(KEYS, st.one_of(VALUES, CELLS.map(lambda cells: ("cells", cells)), st.just("delete"))), max_size=30
)


@settings(max_examples=50, deadline=None)
@given(st.lists(WRITES, max_size=3))
def test_due_index_and_figures_match_rows_after_any_write(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[tuple[str, Any]]]
) -> None:
    store = opened(tmp_path_factory.mktemp("due"))
    store.create()
    for group in groups:
        with store.batch() as batch:
            for key, what in group:
                if what == "delete":
                    batch.delete(key)
                elif isinstance(what, tuple):
                    batch.put_cells(key, what[1])
                else:
                    page = WebPage({}, frozenset())
                    for name, value in what.items():
                        setattr(page, name, value)
                    batch.put(key, page)
        assert troubles(store) == []
    index, table_stats = store.due_index(), store.due_index().statistics()
    if not table_stats.unreadable:
        found = counted(store)
        assert StatsCollector.from_row_statistics(table_stats).format_text() == found.format_text()
        read = {WebPage.fetch_time, WebPage.score, WebPage.markers}
        spans = [TimeSpan(-(1 << 63), NOW), TimeSpan(1 << 62, (1 << 63) - 1)]
        due = {
            key
            for key, page in store.scan(TableQuery.for_fields(read))
            if any(due_time(page) in span for span in spans)
        }
        listed = [each.key for each in iter_candidates(index, spans, 3)]
        assert due <= set(listed)
        assert len(listed) == len(set(listed))
        known = dict(store.scan(TableQuery.for_fields(read)))
        for key in set(listed) & known.keys():
            assert any(due_time(known[key]) in span for span in spans)
        places = [each.sort_key for each in iter_candidates(index, [ALL], 1000)]
        assert places == sorted(places)
        assert index.count([ALL], 1000) == len(places)
    before = dump(store)
    index.rebuild()
    assert dump(store) == before
    store.close()


def test_due_rows_are_ordered_by_score_then_url(store: EmbeddedStore[WebPage]) -> None:
    put(store, "com.b:http/1", fetch_time=NOW - (5 << 22), score=1.0)
    put(store, "com.c:http/", fetch_time=5, score=2.0)
    put(store, "com.a.x:http/", fetch_time=NOW, score=1.0)
    put(store, "com.a:https/", fetch_time=NOW - 1, score=1.0)
    put(store, "com.z:http/", fetch_time=NOW - 1, score=float("nan"))
    put(store, "com.later:http/", fetch_time=NOW + 1, score=9.0)
    found = list(iter_candidates(store.due_index(), [TimeSpan(0, NOW)], 2))
    assert [unreverse_url(each.key) for each in found] == [
        "http://z.com/",
        "http://c.com/",
        "http://b.com/1",
        "http://x.a.com/",
        "https://a.com/",
    ]
    index = store.due_index()
    assert [index.score_of(each.sort_key) for each in found] == [None, 2.0, 1.0, 1.0, 1.0]
    assert index.is_after_url(found[3].sort_key, "http://b.com/1")
    assert not index.is_after_url(found[3].sort_key, "http://x.a.com/")
    following = index.read_candidates([TimeSpan(0, NOW)], index.after_score(found[1].sort_key), 9)
    assert [each.key for each in following] == [each.key for each in found[2:]]


@given(st.lists(st.text(st.characters(min_codepoint=33, exclude_categories=("Cs",)), max_size=600), min_size=2))
def test_due_keys_sort_like_urls_and_round_trip(paths: list[str]) -> None:
    keys = sorted({f"com.example:http/{path}" for path in paths})
    one = entry_prefix(b"\0" * 8, encode_float(1.0))
    made = dict(zip(keys, build_entries((key.encode(), one) for key in keys), strict=True))
    for key, (place, value) in made.items():
        assert row_key_of(place[5:], value).decode() == key
        assert score_of(place[5:]) == 1.0
        for other in keys:
            if is_after_url(made[other][0][5:], unreverse_url(key)):
                assert unreverse_url(other) > unreverse_url(key)
            elif len(other.encode()) < LONGEST_URL:
                assert unreverse_url(other) <= unreverse_url(key)


class TestNotTrusted:
    def test_written_by_unaware_program_is_not_trusted(self, store: EmbeddedStore[WebPage], tmp_path: Path) -> None:
        put(store, "com.a:http/", fetch_time=NOW)
        put(opened(tmp_path / "crawl", keeps=False), "com.b:http/", fetch_time=NOW)
        assert "does not update it has written the table since (run dueindex" in store.due_index().unavailable_reason
        put(store, "com.c:http/", fetch_time=NOW)  # updates of a wrong index do not repair it
        assert "has written the table since" in store.due_index().unavailable_reason
        for read in (lambda index: index.statistics(), lambda index: index.read_candidates([ALL], b"", 1)):
            with pytest.raises(StoreError, match="has written the table since"):
                read(store.due_index())
        assert len(troubles(store)) == 1
        assert store.due_index().rebuild() == 3
        assert store.due_index().unavailable_reason == ""
        assert troubles(store) == []

    def test_missing_in_table_is_not_trusted(self, tmp_path: Path) -> None:
        old = opened(tmp_path / "crawl", keeps=False)
        old.create()
        put(old, "com.a:http/", fetch_time=NOW, status=2)
        assert old.due_index().unavailable_reason == "storage.embedded.due.index is false"
        with pytest.raises(UsageError, match=r"due\.index is false"):
            old.due_index().rebuild()
        now = opened(tmp_path / "crawl")
        put(now, "com.b:http/", fetch_time=NOW)
        assert now.due_index().unavailable_reason == "the table has none (run dueindex to rebuild it)"
        assert now.due_index().rebuild() == 2
        assert now.due_index().statistics().status == {2: 1}
        now.due_index().drop()
        assert now.due_index().unavailable_reason == "the table has none (run dueindex to rebuild it)"

    def test_read_by_unaware_program_stays_trusted(self, store: EmbeddedStore[WebPage], tmp_path: Path) -> None:
        put(store, "com.a:http/", fetch_time=NOW)
        list(store.check(pytest.fail))
        store.close()
        again = opened(tmp_path / "crawl", keeps=False)
        assert again.get("com.a:http/") is not None
        list(again.check(pytest.fail))
        again.close()
        assert store.due_index().unavailable_reason == ""

    def test_unsupported_store_reports_none(self, tmp_path: Path) -> None:
        conf = Configuration()
        conf.set("storage.data.store", "hbase://127.0.0.1:1")
        index = open_store(conf, Host).due_index()
        assert index.unavailable_reason == "hbase has none"
        with pytest.raises(UsageError, match="hbase has none"):
            index.rebuild()
        with pytest.raises(StoreError, match="hbase has none"):
            index.statistics()


@pytest.mark.parametrize("database", [embedded_due_update.DUE_DATABASE, embedded_due_update.STATISTICS_DATABASE])
def test_inconsistent_due_index_is_detected(store: EmbeddedStore[WebPage], database: bytes) -> None:
    for number in range(3):
        put(store, f"com.a:http/{number}", fetch_time=NOW, status=2)
    with store.get_files().write_transaction() as (txn, handles):
        cursor = txn.cursor(handles[database])
        assert cursor.last()
        key, value = cursor.item()
        txn.delete(key, db=handles[database])
        txn.put(b"\0" * 20 + key, value, db=handles[database])
        embedded_due_update.record_commit(txn, handles)
    found = troubles(store)
    if database == embedded_due_update.DUE_DATABASE:
        assert found == [
            "row com.a:http/2 has no matching entry in the index",
            "1 entries of the index have no row",
        ]
    else:
        assert len(found) == 2
        assert all(text.startswith("the statistic") for text in found)
