"""The due index beside another writer on a real HBase, in the short form: every kind of write, then a mix."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.jobs.table_admin.table_maintenance import manage_due_index
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from tests.foreign_writer.real_writer import REAL_SCENARIOS, ClientProgram, HBaseWriter
from tests.foreign_writer.scenarios import choose, make_table, run_mix
from tests.table.hbase_server import Server


@pytest.fixture
def writer(hbase: Server, tmp_path: Path) -> Iterator[HBaseWriter]:
    with ClientProgram(hbase, tmp_path) as program:
        found = HBaseWriter(program, make_table(address=hbase.address()))
        yield found
        found.drop()


def test_generate_chooses_what_full_scan_chooses_after_each_write(writer: HBaseWriter) -> None:
    used = 0
    for number, (name, scenario) in enumerate(REAL_SCENARIOS.items()):
        scenario(writer, random.Random(name))
        chosen, expected = choose(writer.conf, number)
        assert chosen == expected, name
        index = open_store(writer.conf, WebPage).due_index()
        used += not index.unavailable_reason
        if index.unavailable_reason:
            manage_due_index(writer.conf)
            open_store(writer.conf, WebPage).due_index().record_full_scan(1_000_000)
    assert 0 < used < len(REAL_SCENARIOS)


def test_random_mix_on_hbase_chooses_what_full_scan_chooses(writer: HBaseWriter) -> None:
    assert run_mix(writer, random.Random(3), 4, REAL_SCENARIOS, concurrent_share=0.5, rebuild_share=0.9) == []
