"""A crawl moves between the embedded store and HBase, there and back, and every cell stays what it was."""

import gzip
import itertools
import json

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import ProtocolStatus, WebPage
from nutch2py.table import open_store
from nutch2py.table.table_copy import copy_table
from nutch2py.table.table_export import export_table
from nutch2py.table.table_import import import_table

_numbers = itertools.count()


@pytest.fixture
def stores(hbase, tmp_path):
    """Give an embedded table and one in HBase, both empty."""
    conf, name = Configuration(), f"dump{next(_numbers)}_webpage"
    found = [open_store(conf, WebPage, place, name) for place in (f"embedded:{tmp_path / 'crawl'}", hbase.location)]
    for store in found:
        store.create()
    yield found
    for store in found:
        store.close()


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return {row["row"]: row["cells"] for row in map(json.loads, file)}


@pytest.mark.parametrize("dump", ["round1-inject", "round2-fetch", "round4-updatedb"])
def test_recorded_hbase_table_round_trips(stores, recording, tmp_path, dump):
    embedded, hbase = stores
    recorded = recording / "dumps" / f"{dump}.jsonl.gz"
    rows = import_table(hbase, recorded)
    assert export_table(hbase, tmp_path / "hbase.jsonl.gz") == rows
    assert lines(tmp_path / "hbase.jsonl.gz") == lines(recorded)
    assert import_table(embedded, tmp_path / "hbase.jsonl.gz") == rows
    assert list(embedded.scan_cells()) == list(hbase.scan_cells())
    print(f"{rows}/{rows} rows of {dump} equal")


def test_copy_embedded_to_hbase_and_back_is_identical(stores, tmp_path):
    embedded, hbase = stores
    multi_block = bytes.fromhex("18020261020462630000")  # an array of two Avro blocks: ["a"], ["bc"]
    rows = {
        "com.foo:http/中?é=ü": {
            b"f": {b"cnt": (bytes(range(256)) * 40, 5), b"st": (b"\0\0\0\2", 6)},
            b"mk": {b"": (b"", 7)},
        },
        "com.foo:http/bytes": {
            b"h": {b"\xff\xfe": (b"\xff", 8), "ü:x".encode(): (b"", 9)},
            b"f": {b"prot": (multi_block, 1)},
        },
        "p" * 3_000: {b"mtdt": {b"k" * 2_000: (b"v" * 200_000, 1_600_000_000_000)}},
    }
    with embedded.batch() as batch:
        for key, cells in rows.items():
            batch.put_cells(key, cells)
    assert copy_table(embedded, hbase) == 3
    assert list(hbase.scan_cells()) == sorted(rows.items(), key=lambda row: row[0].encode())
    page = hbase.get("com.foo:http/bytes")
    assert page.protocol_status == ProtocolStatus(12, ("a", "bc"), 0)
    back = open_store(Configuration(), WebPage, f"embedded:{tmp_path / 'back'}", "webpage")
    back.create()
    assert copy_table(hbase, back) == 3
    assert list(back.scan_cells()) == list(embedded.scan_cells())
