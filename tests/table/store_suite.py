"""Contract tests of DataStore: a subclass provides a fixture ``make_store`` and runs the suite on its store.

``make_store(record, name)`` opens a table of that name in a place of the test's own; it does not create it.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from nutch2py.errors import StoreError
from nutch2py.records.cells import encode_int, encode_text
from nutch2py.records.record import FieldNotReadError, Mutation
from nutch2py.records.webpage import DerivedRow, Host, WebPage
from nutch2py.table import KeyRange, MarkCondition, TableQuery

KEYS = ["com.a:http/", "com.a:http/x", "com.b:http:8080/", "com.foo:http/中?é=ü", "org.z:https/~u"]
LONG = [
    "com.long:http/" + "p" * 486,  # 500 bytes: the longest of the short ones
    "com.long:http/" + "p" * 486 + "\x01",
    "com.long:http/" + "p" * 487,
    "com.long:http/" + "p" * 4_985 + "b",
    "com.long:http/" + "p" * 4_985 + "c",  # 5,000 bytes
    "com.long:http/" + "p" * 485 + "中/long",  # cut within a character
    "com.long:http/" + "p" * 485 + "q",
    "com.long:http/" + "q" + "r" * 600,
]


def page_at(depth=0, **marks):
    page = WebPage()
    page.status, page.fetch_interval, page.score = 2, 2592000, 0.5
    page.markers["dist"] = str(depth)
    for name, value in marks.items():
        page.markers[name] = value
    return page


def put(store, **pages):
    write(store, pages)


def write(store, pages, timestamp=None):
    with store.batch() as batch:
        for key, page in pages.items():
            batch.put(key, page, timestamp)


class StoreSuite:
    @pytest.fixture
    def store(self, make_store):
        store = make_store(WebPage, "webpage")
        store.create()
        yield store
        store.close()

    # the table

    def test_create_by_several_processes_succeeds(self, make_store):
        for number in range(2):
            stores = [make_store(DerivedRow, f"at-once-{number}") for _ in range(6)]
            ready = threading.Barrier(len(stores))

            def use(store, key, ready=ready):
                ready.wait()
                store.create()
                entry = DerivedRow()
                entry.key = key
                with store.batch() as batch:
                    batch.put(key, entry)
                return store.get(key).key

            with ThreadPoolExecutor(len(stores)) as pool:
                keys = [f"row{number}" for number in range(len(stores))]
                assert list(pool.map(use, stores, keys)) == keys
            assert [key for key, _ in stores[0].scan(TableQuery(None))] == keys

    def test_create_exists_drop(self, make_store):
        store = make_store(WebPage, "webpage")
        assert not store.exists()
        store.create()
        store.create()
        assert store.exists()
        write(store, {"a": page_at()})
        store.drop()
        assert not store.exists()
        store.drop()
        store.create()
        assert list(store.scan_cells()) == []

    def test_missing_table_raises_error(self, make_store):
        store = make_store(WebPage, "webpage")
        with pytest.raises(StoreError, match="webpage"):
            list(store.scan(TableQuery()))
        with pytest.raises(StoreError, match="webpage"):
            store.get("a")

    def test_tables_are_independent(self, make_store):
        pages, hosts, other = make_store(WebPage, "webpage"), make_store(Host, "host"), make_store(WebPage, "b_webpage")
        for store in (pages, hosts, other):
            store.create()
        host = Host()
        host.metadata["q_mt"] = b"2"
        write(hosts, {"com.a": host})
        write(pages, {"com.a:http/": page_at()})
        assert [key for key, _ in hosts.scan(TableQuery())] == ["com.a"]
        assert hosts.get("com.a").metadata["q_mt"] == b"2"
        assert list(other.scan(TableQuery())) == []

    def test_closed_store_reopens(self, store):
        write(store, {"a": page_at()})
        store.close()
        store.close()
        assert store.get("a").status == 2

    # reading

    def test_rows_are_in_key_order(self, store):
        write(store, {key: page_at() for key in [*reversed(KEYS), *LONG]})
        wanted = sorted([*KEYS, *LONG], key=str.encode)
        assert [key for key, _ in store.scan(TableQuery())] == wanted
        assert [key for key, _ in store.scan(TableQuery.for_fields([WebPage.status]))] == wanted
        assert [key for key, _ in store.scan(TableQuery.for_fields([WebPage.markers], MarkCondition("dist")))] == wanted
        assert [key for key, _ in store.scan_cells()] == wanted

    def test_range_includes_start_and_excludes_stop(self, store):
        write(store, {key: page_at() for key in [*KEYS, *LONG]})
        everything = sorted([*KEYS, *LONG], key=str.encode)
        ends = ["", *everything, everything[3] + "\0", "com.long", "z"]
        for start in ends:
            for stop in ends:
                wanted = [key for key in everything if key in KeyRange(start, stop)]
                query = TableQuery.for_fields([WebPage.status, WebPage.markers]).with_range(KeyRange(start, stop))
                assert [key for key, _ in store.scan(query)] == wanted
                marked = TableQuery.for_fields([WebPage.status], MarkCondition("dist", "0")).with_range(
                    KeyRange(start, stop)
                )
                assert [key for key, _ in store.scan(marked)] == wanted

    def test_long_keys_are_read_and_deleted_individually(self, store):
        write(store, {key: page_at(depth) for depth, key in enumerate(LONG)})
        assert [page.markers["dist"] for page in store.get_many(LONG)] == [str(depth) for depth in range(len(LONG))]
        assert store.get(LONG[4] + "x") is None
        with store.batch() as batch:
            batch.delete(LONG[3])
        assert store.get(LONG[3]) is None
        assert [page is None for page in store.get_many(LONG)] == [key == LONG[3] for key in LONG]

    def test_keys_equal_keys_of_rows(self, store):
        write(store, {key: page_at() for key in [*KEYS, *LONG]})
        only = WebPage(fields=frozenset())
        only.text = "in one family alone"
        write(store, {"org.a:http/": only, LONG[2] + "x": only})
        there = [key for key, _ in store.scan(TableQuery(None))]
        assert list(store.keys(KeyRange())) == there
        for start, stop in [(LONG[0], LONG[2]), (LONG[1], LONG[5]), ("com.b", "org.b"), ("", "com.b"), ("zz", "")]:
            expected = [key for key in there if key in KeyRange(start, stop)]
            assert list(store.keys(KeyRange(start, stop))) == expected
        with store.batch() as batch:
            for key in store.keys(KeyRange("com.long", "com.m")):
                batch.delete(key)
        assert list(store.keys(KeyRange())) == sorted({*KEYS, "org.a:http/"})

    def test_keys_of_many_rows_are_unique(self, store):
        many = [f"row{number:05d}" for number in range(11_000)]
        write(store, {key: page_at() for key in many})
        assert list(store.keys(KeyRange())) == many
        assert list(store.keys(KeyRange(many[3], many[10_500]))) == many[3:10_500]

    def test_record_contains_only_queried_fields(self, store):
        write(store, {"a": page_at(_gnmrk_="1-1")})
        ((_, page),) = store.scan(TableQuery.for_fields([WebPage.status, WebPage.score]))
        assert (page.status, page.score) == (2, 0.5)
        with pytest.raises(FieldNotReadError):
            _ = page.fetch_interval
        with pytest.raises(FieldNotReadError):
            page.markers.get("dist")
        assert page.cells == {b"f": {b"st": encode_int(2)}, b"s": {b"s": b"\x3f\0\0\0"}}
        assert store.get("a", [WebPage.markers]).cells == {b"mk": {b"dist": b"0", b"_gnmrk_": b"1-1"}}

    def test_scan_of_columns_returns_rows_with_any(self, store):
        only_type, only_mark, both = WebPage(), WebPage(), page_at()
        only_type.content_type = "text/html"
        only_mark.markers["x"] = "y"
        both.content_type = "text/plain"
        write(store, {"a": only_type, "b": only_mark, "c": both})
        assert [key for key, _ in store.scan(TableQuery.for_fields([WebPage.status]))] == ["c"]
        assert [key for key, _ in store.scan(TableQuery.for_fields([WebPage.status, WebPage.markers]))] == ["b", "c"]
        assert [key for key, _ in store.scan(TableQuery.for_fields([WebPage.content_type, WebPage.title]))] == [
            "a",
            "c",
        ]
        assert [key for key, _ in store.scan(TableQuery.for_fields([WebPage.content]))] == []
        assert [key for key, _ in store.scan(TableQuery())] == ["a", "b", "c"]
        assert store.get("a", [WebPage.status]) is None

    def test_mark_condition_requires_exact_value(self, store):
        write(store, {
            "a": page_at(_gnmrk_="1-1"), "b": page_at(_gnmrk_="1-10"), "c": page_at(_ftcmrk_="1-1"), "d": page_at(),
            "e": page_at(other="_gnmrk_", x="1-1"), "f": page_at(_gnmrk_=""),
        })  # fmt: skip
        query = TableQuery.for_fields([WebPage.status, WebPage.markers], MarkCondition("_gnmrk_", "1-1"))
        assert [(key, page.status, page.markers["dist"]) for key, page in store.scan(query)] == [("a", 2, "0")]
        present = TableQuery.for_fields([WebPage.status], MarkCondition("_gnmrk_"))
        assert [key for key, _ in store.scan(present)] == ["a", "b", "f"]
        assert [
            key for key, _ in store.scan(TableQuery.for_fields([WebPage.status], MarkCondition("_gnmrk_", "")))
        ] == ["f"]
        ((_, page),) = store.scan(TableQuery.for_fields([WebPage.status], MarkCondition("_gnmrk_", "1-1")))
        with pytest.raises(FieldNotReadError):
            page.markers.get("_gnmrk_")

    def test_marked_row_without_queried_cell_is_skipped(self, store):
        bare = WebPage()
        bare.markers["_gnmrk_"] = "1-1"
        write(store, {"a": bare, "b": page_at(_gnmrk_="1-1")})
        condition = MarkCondition("_gnmrk_", "1-1")
        assert [key for key, _ in store.scan(TableQuery.for_fields([WebPage.status], condition))] == ["b"]
        assert [key for key, _ in store.scan(TableQuery.for_fields([], condition))] == ["a", "b"]
        assert list(store.scan(TableQuery.for_fields([]))) == []
        assert [key for key, _ in store.scan(TableQuery(mark=condition))] == ["a", "b"]

    def test_get_many_keeps_key_order(self, store):
        write(store, {key: page_at(depth) for depth, key in enumerate(KEYS)})
        asked = [KEYS[3], "com.none:http/", KEYS[0], KEYS[3], ""]
        found = store.get_many(asked, [WebPage.markers])
        assert [page and page.markers["dist"] for page in found] == ["3", None, "0", "3", None]
        assert store.get_many([]) == []
        assert store.get("com.none:http/") is None

    def test_scan_of_many_rows_returns_each_once(self, store):
        keys = [f"com.host{i % 7}:http/{i:05d}" for i in range(7_000)]
        write(store, {key: page_at(i, **({"_gnmrk_": "1-1"} if i % 5 == 0 else {})) for i, key in enumerate(keys)})
        titled = WebPage()
        titled.title, titled.content = "t", b"c" * 300
        write(store, dict.fromkeys(keys[::50], titled))
        read = [
            (key, page.status, page.title)
            for key, page in store.scan(TableQuery.for_fields([WebPage.status, WebPage.title]))
        ]
        assert read == [(key, 2, "t" if key in set(keys[::50]) else None) for key in sorted(keys)]
        marked = store.scan(TableQuery.for_fields([WebPage.content, WebPage.status], MarkCondition("_gnmrk_", "1-1")))
        wanted = {key: i for i, key in enumerate(keys) if i % 5 == 0}
        got = {key: page.content for key, page in marked}
        assert list(got) == sorted(wanted)
        assert {key for key, content in got.items() if content} == set(keys[::50]) & wanted.keys()

    def test_nested_and_abandoned_scans_work(self, store):
        write(store, {key: page_at() for key in KEYS})
        outer = store.scan(TableQuery.for_fields([WebPage.status]))
        pairs = [
            (next(outer)[0], [key for key, _ in store.scan(TableQuery.for_fields([WebPage.score]))]) for _ in range(2)
        ]
        outer.close()
        assert pairs == [(KEYS[0], sorted(KEYS)), (KEYS[1], sorted(KEYS))]
        assert store.get(KEYS[0]).status == 2

    def test_writing_during_scan_works(self, store):
        write(store, {f"k{i:04d}": page_at(i) for i in range(1_500)})
        seen = 0
        with store.batch() as batch:
            for key, page in store.scan(TableQuery.for_fields([WebPage.markers])):
                page.markers["_gnmrk_"] = "1-1"
                batch.put(key, page)
                seen += 1
        assert seen == 1_500
        assert (
            sum(1 for _ in store.scan(TableQuery.for_fields([WebPage.markers], MarkCondition("_gnmrk_", "1-1"))))
            == 1_500
        )

    # writing

    def test_record_round_trips(self, store):
        page = WebPage()
        page.content, page.title, page.text = b"<html>" * 100, "", "t" * 5_000
        page.headers["Content-Type"] = "text/html"
        page.headers[""] = "no name"
        page.outlinks = {"http://b/?a=b:c": "", "http://c/": "anchor 中"}
        page.metadata["_csh_"] = b"\x3f\x80\0\0"
        page.prev_signature = bytes(range(16))
        write(store, {"a": page})
        back = store.get("a")
        assert back.content == b"<html>" * 100
        assert (back.title, back.text, back.prev_signature) == ("", "t" * 5_000, bytes(range(16)))
        assert dict(back.headers) == {"Content-Type": "text/html", "": "no name"}
        assert dict(back.outlinks) == {"http://b/?a=b:c": "", "http://c/": "anchor 中"}
        assert back.metadata["_csh_"] == b"\x3f\x80\0\0"

    def test_changes_touch_only_their_columns(self, store):
        write(store, {"a": page_at(_gnmrk_="1-1", keep="k")})
        page = store.get("a", [WebPage.status, WebPage.markers])
        page.status = 3
        page.title = "new"
        del page.markers["_gnmrk_"]
        page.markers["_ftcmrk_"] = "1-1"
        write(store, {"a": page})
        back = store.get("a")
        assert (back.status, back.fetch_interval, back.score, back.title) == (3, 2592000, 0.5, "new")
        assert dict(back.markers) == {"dist": "0", "keep": "k", "_ftcmrk_": "1-1"}

    def test_cleared_family_keeps_only_puts_of_same_write(self, store):
        page = WebPage()
        page.outlinks = {"http://a/": "a", "http://b/": "b"}
        page.headers["x"] = "y"
        write(store, {"a": page})
        blind = WebPage(fields=frozenset())
        blind.outlinks = {"http://b/": "b2"}
        write(store, {"a": blind})
        assert dict(store.get("a").outlinks) == {"http://b/": "b2"}
        blind = WebPage(fields=frozenset())
        blind.outlinks.clear()
        write(store, {"a": blind})
        back = store.get("a")
        assert (dict(back.outlinks), dict(back.headers)) == ({}, {"x": "y"})

    def test_content_can_be_replaced_emptied_and_deleted(self, store):
        for content in (b"one" * 100, b"two" * 200, b"", b"three"):
            page = WebPage(fields=frozenset())
            page.content = content
            write(store, {"a": page})
            assert store.get("a", [WebPage.content]).content == content
        page = WebPage(fields=frozenset())
        page.content = None
        page.status = 2
        write(store, {"a": page})
        assert store.get("a", [WebPage.content]) is None
        assert store.get("a").content is None

    def test_row_without_cells_does_not_exist(self, store):
        page = WebPage()
        page.markers["x"] = "y"
        write(store, {"a": page})
        page = store.get("a")
        del page.markers["x"]
        write(store, {"a": page})
        assert store.get("a") is None
        assert list(store.scan(TableQuery())) == []

    def test_delete_removes_whole_row(self, store):
        page = page_at()
        page.content = b"x" * 100
        write(store, {"a": page, "b": page_at()})
        with store.batch() as batch:
            batch.put_cells("a", {b"f": {b"foreign": (b"1", 1)}})
            batch.delete("a")
            batch.delete("never there")
        assert [key for key, _ in store.scan_cells()] == ["b"]

    def test_writes_of_one_row_apply_in_order(self, store):
        with store.batch() as batch:
            batch.put("a", page_at(1, gone="x"))
            batch.delete("a")
            batch.flush()
            batch.put("a", page_at(2))
            batch.put("b", page_at(3))
        assert dict(store.get("a").markers) == {"dist": "2"}

    def test_put_returns_whether_anything_was_written(self, store):
        write(store, {"a": page_at()})
        with store.batch() as batch:
            assert batch.put("a", store.get("a")) is False
            assert batch.put("b", page_at()) is True

    def test_flushed_writes_are_visible_to_other_store(self, store, make_store):
        other = make_store(WebPage, "webpage")
        batch = store.batch()
        batch.put("a", page_at())
        batch.flush()
        assert other.get("a").status == 2
        other.close()

    def test_batch_before_hook_is_durable_first(self, store, make_store):
        """A batch that is full writes by itself: what runs before sees the table as it was, and may stop it."""
        small = make_store(WebPage, "webpage", gora_buffer_write_limit=3, hbase_thrift_write_rows=3)
        written = lambda: sum(store.get(f"row{number}") is not None for number in range(9))  # noqa: E731
        seen = []
        with small.batch(before_flush=lambda: seen.append(written())) as batch:
            for number in range(8):
                batch.put(f"row{number}", page_at())
        assert seen == [0, 3, 6]
        assert written() == 8
        batch = small.batch(before_flush=lambda: 1 / 0)
        batch.put("row8", page_at())
        with pytest.raises(ZeroDivisionError):
            batch.flush()
        assert written() == 8
        batch.before_flush = None
        batch.flush()
        assert written() == 9
        with small.batch(before_flush=lambda: seen.append("nothing to write")):
            pass
        assert seen == [0, 3, 6]
        small.close()

    def test_exception_in_batch_discards_unsent_writes(self, store):
        def job():
            with store.batch() as batch:
                batch.put("a", page_at())
                raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            job()
        assert store.get("a") is None

    def test_empty_key_is_rejected(self, store):
        with pytest.raises(ValueError, match="empty"), store.batch() as batch:
            batch.put("", page_at())

    # timestamps

    def test_puts_are_stamped_one_millisecond_before_now(self, store):
        before = int(time.time() * 1000)
        write(store, {"a": page_at()})
        after = int(time.time() * 1000)
        ((_, cells),) = store.scan_cells()
        assert all(before - 1 <= stamp <= after - 1 for columns in cells.values() for _, stamp in columns.values())

    def test_explicit_timestamp_is_idempotent(self, store):
        write(store, {"a": page_at()}, timestamp=1_000_000)
        first = list(store.scan_cells())
        assert {stamp for columns in first[0][1].values() for _, stamp in columns.values()} == {999_999}
        write(store, {"a": page_at()}, timestamp=1_000_000)
        assert list(store.scan_cells()) == first

    def test_older_write_does_not_hide_newer(self, store):
        write(store, {"a": page_at(5)}, timestamp=2_000_000)
        write(store, {"a": page_at(1, late="x")}, timestamp=1_000_000)
        assert dict(store.get("a").markers) == {"dist": "5", "late": "x"}

    def test_older_deletion_does_not_remove_newer_cell(self, store):
        write(store, {"a": page_at(old="1")}, timestamp=1_000_000)
        write(store, {"a": page_at(new="2")}, timestamp=3_000_000)
        with store.batch() as batch:
            batch.mutate("a", Mutation({}, {b"mk": [b"new", b"old"]}, []), timestamp=2_000_000)
        assert dict(store.get("a").markers) == {"dist": "0", "new": "2"}

    def test_cells_keep_their_own_timestamps(self, store):
        cells = {
            b"f": {b"st": (encode_int(1), 1_000), b"fi": (encode_int(2), 2_000), b"cnt": (b"body" * 50, 3_000)},
            b"mk": {b"a": (b"1", 1_000), b"b": (b"2", 1_000), b"\xff": (b"", 5_000)},
            b"h": {encode_text("X-中"): (b"\xff\xfe", 9_000_000_000_000)},
        }
        with store.batch() as batch:
            batch.put_cells("a", cells)
        assert list(store.scan_cells()) == [("a", cells)]
        write(store, {"a": page_at()}, timestamp=4_001)
        ((_, now),) = store.scan_cells()
        assert now[b"f"] == {**cells[b"f"], b"st": (encode_int(2), 4_000), b"fi": (encode_int(2592000), 4_000)}
        assert now[b"mk"][b"a"] == (b"1", 1_000)

    # splitting

    def test_compare_and_set_succeeds_on_expected_value(self, store):
        score = WebPage.score
        one, two = (score.encode(number) for number in (1.0, 2.0))
        for key in ("com.a:http/", LONG[3]):
            assert not store.compare_and_set(key, score, two, one)
            assert store.get(key, {score}) is None
            assert store.compare_and_set(key, score, None, one)
            assert not store.compare_and_set(key, score, None, two)
            assert not store.compare_and_set(key, score, two, two)
            assert store.get(key, {score}).score == 1.0
            assert store.compare_and_set(key, score, one, two)
            assert store.get(key, {score}).score == 2.0
            assert store.compare_and_set(key, score, two, None)
            assert not store.compare_and_set(key, score, two, one)
            assert store.compare_and_set(key, score, None, one)
            assert store.get(key, {score}).score == 1.0

    def test_compare_and_set_keeps_other_cells(self, store):
        write(store, {"a": page_at(3)})
        before = store.get("a").status, store.get("a").fetch_interval
        assert store.compare_and_set("a", WebPage.score, WebPage.score.encode(0.5), WebPage.score.encode(4.0))
        row = store.get("a")
        assert (row.status, row.fetch_interval) == before
        assert (row.score, row.markers["dist"]) == (4.0, "3")

    def test_compare_and_set_by_many_succeeds_once(self, store, make_store):
        stores = [store, *(make_store(WebPage, "webpage") for _ in range(3))]

        def race(number):
            mine = f"{number}".encode()
            return sum(stores[number % 4].compare_and_set(f"row{turn}", WebPage.title, None, mine) for turn in range(9))

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(race, range(8))) == 9
        for each in stores[1:]:
            each.close()

    def test_compare_and_set_of_invalid_value_is_rejected(self, store):
        for field in (WebPage.content, WebPage.markers):
            with pytest.raises(ValueError, match="compared"):
                store.compare_and_set("a", field, None, b"x")
        for expected, new in ((b"", b"x"), (b"x", b"")):
            with pytest.raises(ValueError, match="empty"):
                store.compare_and_set("a", WebPage.title, expected, new)

    def test_key_ranges_cover_range_in_order(self, store):
        write(store, {f"com.h{i:04d}:http/": page_at() for i in range(1_000)})
        for wanted in (KeyRange(), KeyRange("com.h0100", "com.h0900"), KeyRange("x", "y")):
            for count in (1, 2, 7):
                ranges = store.key_ranges(TableQuery(range=wanted), count)
                assert ranges[0].start == wanted.start
                assert ranges[-1].stop == wanted.stop
                assert all(left.stop == right.start for left, right in pairwise(ranges))
                assert all(not part.stop or part.start < part.stop for part in ranges)

    def test_scanning_key_ranges_returns_every_row_once(self, store):
        keys = [*LONG, *(f"com.h{i:04d}:http/" for i in range(500))]
        write(store, {key: page_at() for key in keys})
        ranges = store.key_ranges(TableQuery(), 5)
        parts = [[key for key, _ in store.scan(TableQuery(range=part))] for part in ranges]
        assert [key for part in parts for key in part] == sorted(keys, key=str.encode)

    def test_empty_table_has_one_range(self, store):
        assert store.key_ranges(TableQuery(), 4) == [KeyRange()]

    def test_row_estimate_is_count_or_unknown(self, store):
        write(store, {key: page_at() for key in KEYS})
        assert store.row_estimate() in (None, len(KEYS))
