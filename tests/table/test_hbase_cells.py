"""Cells in HBase after our writes, and reads of other writers' tables, checked through raw happybase."""

import itertools
import os
import struct

import happybase
import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.batches.update_journal import delete_journal
from nutch2py.records.record import Mutation
from nutch2py.records.webpage import DerivedRow, Host, ParseStatus, ProtocolStatus, WebPage
from nutch2py.table import KeyRange, MarkCondition, TableQuery, open_store
from nutch2py.table.hbase.thrift_client.hbase_scan import RowBudget

_numbers = itertools.count()
FAMILIES = ["f", "h", "il", "mk", "mtdt", "ol", "p", "s", "stm"]


@pytest.fixture
def raw(hbase):
    connection = happybase.Connection("127.0.0.1", hbase.port("gateway"), timeout=60_000)
    yield connection
    connection.close()


@pytest.fixture
def name():
    return f"cells{next(_numbers)}_webpage"


@pytest.fixture
def opened(hbase, name):
    def make(record=WebPage, table=name, folders=(), location=None, **properties):
        conf = Configuration({key.replace("__", "."): value for key, value in properties.items()}, folders)
        return open_store(conf, record, location or hbase.location, table)

    return make


def full_page():
    page = WebPage()
    page.base_url = page.repr_url = "http://foo.com/é"
    page.status, page.fetch_interval, page.retries_since_fetch = 34, 2592000, -1
    page.fetch_time, page.prev_fetch_time, page.modified_time, page.prev_modified_time = 1 << 40, 2, 3, 4
    page.protocol_status = ProtocolStatus(12, ("http://x/é", ""), 1600000000000)
    page.parse_status = ParseStatus(1, 100, ("http://foo.com/", "0"))
    page.content, page.content_type = b"\0\xff<html>", "text/html"
    page.prev_signature, page.signature = bytes(16), bytes(range(16))
    page.title, page.text, page.score, page.stm_priority = "", "中", 0.5, 0.25
    page.batch_id = "1-1"
    page.headers = {"Content-Type": "text/html", "": "no name"}
    page.outlinks, page.inlinks = {"http://b/?a=b:c": "", "http://ü/": "anchor 中"}, {"http://c/": "x"}
    page.markers, page.sitemaps = {"_gnmrk_": "1-1", "dist": "0"}, {"http://foo.com/s.xml": ""}
    page.metadata["_csh_"] = b"\x3f\x80\0\0"
    return page


CELLS = {
    b"f:bas": "http://foo.com/é".encode(), b"f:rpr": "http://foo.com/é".encode(), b"f:st": b"\0\0\0\x22",
    b"f:fi": bytes.fromhex("00278d00"), b"f:rsf": b"\xff\xff\xff\xff", b"f:ts": bytes.fromhex("0000010000000000"),
    b"f:pts": bytes(7) + b"\2", b"f:mod": bytes(7) + b"\3", b"f:pmod": bytes(7) + b"\4",
    b"f:prot": bytes.fromhex("180416687474703a2f2f782fc3a900008080f4f6905d"),
    b"p:st": bytes.fromhex("02c801041e") + b"http://foo.com/" + bytes.fromhex("023000"),
    b"f:cnt": b"\0\xff<html>", b"f:typ": b"text/html", b"p:psig": bytes(16), b"p:sig": bytes(range(16)),
    b"p:t": b"", b"p:c": "中".encode(), b"s:s": bytes.fromhex("3f000000"), b"s:sp": bytes.fromhex("3e800000"),
    b"f:bid": b"1-1", b"h:Content-Type": b"text/html", b"h:": b"no name", b"ol:http://b/?a=b:c": b"",
    "ol:http://ü/".encode(): "anchor 中".encode(), b"il:http://c/": b"x", b"mk:_gnmrk_": b"1-1", b"mk:dist": b"0",
    b"stm:http://foo.com/s.xml": b"", b"mtdt:_csh_": b"\x3f\x80\0\0",
}  # fmt: skip


def write(store, key, page, timestamp=None):
    with store.batch() as batch:
        batch.put(key, page, timestamp)


def test_every_field_has_nutch_bytes(opened, raw, name):
    store = opened()
    store.create()
    write(store, "com.foo:http/中?é=ü", full_page(), 1_600_000_000_000)
    found = dict(raw.table(name).scan(include_timestamp=True))
    assert found == {"com.foo:http/中?é=ü".encode(): {c: (v, 1_599_999_999_999) for c, v in CELLS.items()}}
    back = store.get("com.foo:http/中?é=ü")
    assert {f + b":" + q: v for f, columns in back.cells.items() for q, v in columns.items()} == CELLS
    assert back.mutation() is None
    assert (back.outlinks["http://ü/"], back.headers[""], back.protocol_status.args) == (
        "anchor 中",
        "no name",
        ("http://x/é", ""),
    )


def test_created_table_matches_nutch(opened, raw, name):
    store = opened()
    store.create()
    families = raw.table(name).families()
    assert sorted(families) == [family.encode() for family in FAMILIES]
    assert {(f["max_versions"], f["bloom_filter_type"], f["compression"]) for f in families.values()} == {
        (1, b"ROW", b"NONE")
    }
    opened(Host, "cells_host").create()
    assert sorted(raw.table("cells_host").families()) == [b"il", b"mtdt", b"ol"]
    batch = opened(DerivedRow, "cells_batch", hbase__compression="GZ")
    batch.create()
    batch.create()
    families = raw.table("cells_batch").families()
    assert {name: f["compression"] for name, f in families.items()} == {b"b": b"GZ"}
    batch.drop()
    assert not batch.exists()


def test_unsupported_codec_raises_error(opened):
    with pytest.raises(StoreError, match=r"cannot create table.*hbase\.compression"):
        opened(hbase__compression="ZSTD").create()


def test_map_clear_deletes_below_entry_timestamp(opened, raw, name):
    store = opened()
    store.create()
    table = raw.table(name)
    table.put(b"a", {b"ol:old": b"1", b"ol:kept": b"1", b"p:t": b"t", b"ol:late": b"1"}, timestamp=1_000)
    table.put(b"a", {b"ol:late": b"2"}, timestamp=4_999)
    page = WebPage(fields=frozenset())
    page.outlinks = {"new": "n", "kept": "k"}
    page.title = None
    write(store, "a", page, 5_000)
    assert table.row(b"a", include_timestamp=True) == {
        b"ol:new": (b"n", 4_999), b"ol:kept": (b"k", 4_999), b"ol:late": (b"2", 4_999),
    }  # fmt: skip


def test_repeated_write_keeps_one_version(opened, raw, name):
    raw.create_table(name, {family: {"max_versions": 5} for family in FAMILIES})
    store = opened()
    for _ in range(3):
        write(store, "a", full_page(), 10_000)
    table = raw.table(name)
    assert {len(table.cells(b"a", column, versions=5)) for column in CELLS} == {1}


def test_two_writes_in_one_millisecond_apply_in_order(opened, raw, name):
    store = opened()
    store.create()
    for turn in range(20):
        page = WebPage(fields=frozenset())
        page.outlinks = {f"http://{turn}/": ""}
        write(store, "a", page)
        page = WebPage(fields=frozenset())
        page.outlinks = {f"http://{turn}/b": ""}
        write(store, "a", page)
        assert list(raw.table(name).row(b"a")) == [f"ol:http://{turn}/b".encode()]


@pytest.fixture
def old_table(raw, name):
    """Make a table as Nutch 2.2 left it: no family ``stm``, no ``s:sp``, cells with the server's times."""
    raw.create_table(name, {family: {"max_versions": 1} for family in [*FAMILIES[:-1], "x"]})
    table = raw.table(name)
    for number in range(300):
        key = f"com.foo:http/{number:03d}".encode()
        mark = {b"mk:_gnmrk_": b"1-1"} if number % 3 == 0 else {}
        table.put(key, {b"f:st": struct.pack(">i", 1), b"s:s": b"\x3f\x80\0\0", b"x:own": b"kept", **mark})
    return table


def test_existing_nutch_table_is_used_unchanged(opened, old_table, capsys):
    store = opened()
    store.create()
    assert b"stm" not in old_table.families()
    pages = dict(store.scan(TableQuery.for_fields([WebPage.status, WebPage.sitemaps, WebPage.stm_priority])))
    assert len(pages) == 300
    assert {(page.status, len(page.sitemaps), page.stm_priority) for page in pages.values()} == {(1, 0, 0.0)}
    everything = TableQuery(mark=MarkCondition("_gnmrk_", "1-1"))
    assert [page.cells[b"x"] for _, page in store.scan(everything)] == [{b"own": b"kept"}] * 100
    assert store.get("com.foo:http/000", [WebPage.sitemaps]) is None
    page = store.get("com.foo:http/000", [WebPage.status, WebPage.sitemaps])
    page.status = 2
    page.sitemaps["http://foo.com/s.xml"] = ""
    write(store, "com.foo:http/000", page)
    assert old_table.row(b"com.foo:http/000") == {
        b"f:st": b"\0\0\0\2", b"s:s": b"\x3f\x80\0\0", b"mk:_gnmrk_": b"1-1", b"x:own": b"kept",
    }  # fmt: skip
    assert "has no column family stm" in capsys.readouterr().err


def test_foreign_columns_survive_copy(opened, old_table, name):
    source, target = opened(), opened(table=f"copy_of_{name}")
    target.create()
    with target.batch() as batch:
        for key, cells in source.scan_cells(KeyRange("com.foo:http/010", "com.foo:http/020")):
            batch.put_cells(key, {family: columns for family, columns in cells.items() if family != b"x"})
    with pytest.raises(StoreError, match="no column family x"), target.batch() as batch:
        batch.put_cells("b", {b"x": {b"own": (b"1", 1)}})
    rows = dict(target.scan_cells())
    assert list(rows) == [f"com.foo:http/0{number}" for number in range(10, 20)]
    assert {row[b"s"][b"s"][0] for row in rows.values()} == {b"\x3f\x80\0\0"}


def test_custom_columns_are_read_and_written(opened, raw, name, tmp_path):
    (tmp_path / "gora-hbase-mapping.xml").write_text(
        f"""<gora-orm><table name="{name}"><family name="c" compression="GZ"/></table>
        <class table="{name}" name="org.apache.nutch.storage.WebPage">
          <field name="content" family="c" qualifier="body"/>
          <field name="status" family="c" qualifier="state"/>
          <field name="markers" family="marks"/> <field name="outlinks" family="links"/>
        </class></gora-orm>"""
    )
    store = opened(folders=[tmp_path])
    store.create()
    assert raw.table(name).families()[b"c"]["compression"] == b"GZ"
    write(store, "a", full_page(), 1_000)
    raw.table(name).put(b"a", {b"c:foreign": b"1"}, timestamp=7)
    row = raw.table(name).row(b"a")
    assert row[b"c:body"] == CELLS[b"f:cnt"]
    assert row[b"c:state"] == CELLS[b"f:st"]
    assert (row[b"marks:dist"], row[b"links:http://b/?a=b:c"]) == (b"0", b"")
    assert not [column for column in row if column.startswith((b"mk:", b"ol:")) or column in (b"f:cnt", b"f:st")]
    query = TableQuery.for_fields([WebPage.status, WebPage.content], MarkCondition("_gnmrk_", "1-1"))
    ((_, page),) = store.scan(query)
    assert page.cells == {b"f": {b"st": CELLS[b"f:st"], b"cnt": CELLS[b"f:cnt"]}}
    ((_, cells),) = store.scan_cells()
    flat = {f + b":" + q: v for f, columns in cells.items() for q, (v, _) in columns.items()}
    assert flat == {**CELLS, b"c:foreign": b"1"}
    assert store.get("a").cells[b"f"][b"cnt"] == CELLS[b"f:cnt"]
    page = WebPage(fields=frozenset())
    page.outlinks, page.content = {}, None
    write(store, "a", page)
    row = raw.table(name).row(b"a")
    assert b"c:body" not in row
    assert not [column for column in row if column.startswith(b"links:")]
    with store.batch() as batch:
        batch.put_cells("b", {b"mk": {b"x": (b"y", 5)}, b"f": {b"st": (b"\0\0\0\1", 6)}})
    assert raw.table(name).row(b"b", include_timestamp=True) == {b"marks:x": (b"y", 5), b"c:state": (b"\0\0\0\1", 6)}


def test_oversized_cell_skips_only_its_row(opened, capsys):
    store = opened()
    store.create()
    link = WebPage()
    link.outlinks = {"http://kept/": ""}
    write(store, "row07", link)
    for limit, hint in ((str(10 << 20), "http.content.limit"), (str((1 << 31) - 1), "rejected by HBase")):
        batch = opened(hbase__client__keyvalue__maxsize=limit).batch()
        for number in range(20):
            page = WebPage(fields=frozenset())
            page.status = number
            page.content = b"x" * ((10 << 20) + 1 if number == 7 else 2_000)
            page.outlinks = {f"http://{number}/": ""}  # a deletion, too
            batch.put(f"row{number:02d}", page)
        batch.flush()
        assert [rejected.key for rejected in batch.rejected] == ["row07"]
        assert "row07" in capsys.readouterr().err
        assert hint in batch.rejected[0].reason
        assert [key for key, _ in store.scan(TableQuery.for_fields([WebPage.status]))] == [
            f"row{n:02d}" for n in range(20) if n != 7
        ]
        assert dict(store.get("row07").outlinks) == {"http://kept/": ""}
    largest = WebPage(fields=frozenset())
    largest.content = b"x" * ((10 << 20) - 100)
    write(store, "large", largest)
    assert store.get("large").content == largest.content


def test_overlong_key_skips_only_its_row(opened, capsys):
    store = opened()
    store.create()
    page = WebPage()
    page.status = 1
    batch = store.batch()
    for key in ("a" * 32_000, "b" * 32_001, "c"):
        batch.put(key, page)
    batch.flush()
    assert [rejected.key[0] for rejected in batch.rejected] == ["b"]
    assert [found and found.status for found in store.get_many(["a" * 32_000, "b" * 32_001, "c"])] == [1, None, 1]
    assert "32,001 bytes" in capsys.readouterr().err


def test_family_dropped_meanwhile_is_skipped(opened, raw, name, capsys):
    store = opened()
    store.create()
    batch = store.batch()
    write(store, "z", full_page())
    batch.put("a", full_page())
    store.drop()
    raw.create_table(name, {family: {"max_versions": 1} for family in FAMILIES if family != "il"})
    batch.flush()
    assert set(raw.table(name).row(b"a")) == {column for column in CELLS if not column.startswith(b"il:")}


def test_dropped_or_disabled_table_raises_error(opened, raw, name):
    store = opened()
    store.create()
    batch = store.batch()
    batch.put("a", full_page())
    raw.disable_table(name)
    with pytest.raises(StoreError, match="disabled"):
        store.get("a")
    raw.delete_table(name)
    with pytest.raises(StoreError, match="there is no table"):
        batch.flush()
    with pytest.raises(StoreError, match="there is no table"):
        list(store.scan(TableQuery()))


def test_regions_are_presplit_at_creation(opened, hbase, raw, name):
    splits = ["com.b", "com.中", "org"]
    with pytest.raises(StoreError, match=rf"hbase\.thrift2\.gateways.*create '{name}'.*SPLITS"):
        opened().create_with_splits([key.encode() for key in splits])
    hbase.start("thrift2")
    gateway = f"127.0.0.1:{hbase.port('thrift2')}"
    store = opened(hbase__thrift2__gateways=gateway)
    try:
        store.create_with_splits([key.encode() for key in splits])
        other = opened(
            table=f"b_{name}", hbase__thrift2__gateways=gateway, hbase__create__splits="m", hbase__compression="GZ"
        )
        other.create()
        elsewhere = opened(location=f"{hbase.location}/crawl_space", hbase__thrift2__gateways=gateway)
        elsewhere.create()
    finally:
        hbase.stop("thrift2")
    starts = [region["start_key"] for region in raw.table(name).regions()]
    assert starts == [b"", *(split.encode() for split in splits)]
    family = raw.table(name).families()[b"f"]
    assert (family["max_versions"], family["bloom_filter_type"], family["compression"]) == (1, b"ROW", b"NONE")
    assert len(raw.table(f"b_{name}").regions()) == 2
    assert raw.table(f"b_{name}").families()[b"f"]["compression"] == b"GZ"
    assert f"crawl_space:{name}".encode() in raw.tables()
    write(elsewhere, "a", full_page())
    assert elsewhere.get("a").status == 34
    with pytest.raises(StoreError, match=" exists: "):
        store.create_with_splits([key.encode() for key in splits])

    keys = [f"{top}.{host:03d}:http/" for top in ("com", "com.c", "com.中", "org") for host in range(50)]
    with store.batch() as batch:
        for key in keys:
            page = WebPage(fields=frozenset())
            page.score = 1.0
            page.markers["_gnmrk_"] = key[:3]
            batch.put(key, page)
    ordered = sorted(keys)
    assert [key for key, _ in store.scan(TableQuery())] == ordered
    marked = TableQuery.for_fields([WebPage.score], MarkCondition("_gnmrk_", "org"))
    assert [key for key, _ in store.scan(marked)] == ordered[-50:]
    assert store.key_ranges(TableQuery(), 4) == [
        KeyRange("", "com.b"),
        KeyRange("com.b", "com.中"),
        KeyRange("com.中", "org"),
        KeyRange("org", ""),
    ]
    assert store.key_ranges(TableQuery(), 2) == [KeyRange("", "com.中"), KeyRange("com.中", "")]
    many = store.key_ranges(TableQuery(), 10)
    assert len(many) == 10
    sizes = [sum(1 for _ in store.scan(TableQuery(range=part))) for part in many]
    assert sum(sizes) == 200
    assert max(sizes) <= 40


def test_missing_namespace_raises_error(opened, hbase):
    with pytest.raises(StoreError, match="create_namespace 'nowhere'"):
        opened(location=f"{hbase.location}/nowhere").create()


def test_multi_field_mutation_is_one_row_change(opened, raw, name):
    store = opened()
    store.create()
    raw.table(name).put(b"a", {b"h:x": b"1", b"mk:a": b"1", b"mk:b": b"1", b"f:st": b"\0\0\0\1"}, timestamp=10)
    with store.batch() as batch:
        batch.mutate("a", Mutation({b"f": {b"st": b"\0\0\0\2"}}, {b"mk": [b"a"], b"stm": [b"none"]}, [b"h"]), 100)
        batch.mutate("a", Mutation({b"mk": {b"a": b"2", b"c": b"3"}}, {}, []), 100)
        batch.mutate("a", Mutation({}, {b"mk": [b"c"]}, []), 100)
    assert raw.table(name).row(b"a", include_timestamp=True) == {
        b"f:st": (b"\0\0\0\2", 99), b"mk:a": (b"2", 99), b"mk:b": (b"1", 10),
    }  # fmt: skip


def test_rows_are_deleted_by_key(hbase, name, monkeypatch):
    """Measured before: 309,531 bytes came over the wire to delete a journal of 300,000."""
    lists = BatchListStore(Configuration({"storage.data.store": hbase.location, "storage.crawl.id": name}))
    lists.store.create()
    with lists.store.batch() as batch:
        for number in range(30):
            entry = DerivedRow()
            entry.data = os.urandom(10_000)
            batch.put(f"j/b/{number}", entry)
    received = []
    learn = RowBudget.adjust
    monkeypatch.setattr(RowBudget, "adjust", lambda self, rows, size: received.append(size) or learn(self, rows, size))
    delete_journal(lists, "b")
    assert 0 < sum(received) < 6_000
    assert list(lists.store.keys(KeyRange())) == []
