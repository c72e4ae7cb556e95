"""The due index in HBase beside another writer, in the short form: each write alone, and some mixes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from nutch2py.errors import ConfigurationError
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from nutch2py.table.hbase.hbase_due_index import HBaseDueIndex
from tests.foreign_writer.scenarios import SCENARIOS, StandinWriter, choose, make_table, run_mix, standin
from tests.table.hbase_standin import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with standin() as made:
        yield made


@pytest.mark.parametrize("name", SCENARIOS)
def test_generate_chooses_what_full_scan_chooses(name: str, server: Server) -> None:
    conf = make_table()
    SCENARIOS[name](StandinWriter(server, conf), random.Random(name))
    chosen, expected = choose(conf)
    assert chosen == expected
    chosen, expected = choose(conf, 1)
    assert chosen == expected == set()


@pytest.mark.parametrize("seed", range(6))
def test_random_mixes_choose_what_full_scan_chooses(seed: int, server: Server) -> None:
    assert run_mix(StandinWriter(server, make_table()), random.Random(seed)) == []


@pytest.mark.parametrize(
    "name",
    [
        "a due row is postponed",
        "a due row is moved within due times by a clock behind",
        "the due time of a due row is deleted",
        "a due row is moved earlier",
    ],
)
def test_entry_is_decided_by_row_alone(name: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any check beforehand: whatever the times of the cells are, a missing entry is noticed."""
    monkeypatch.setattr(HBaseDueIndex, "full_scan_reason", lambda *_: "")
    conf = make_table("sample")
    SCENARIOS[name](StandinWriter(server, conf), random.Random(name))
    chosen, expected = choose(conf)
    assert chosen == expected
    assert "does not maintain it" in open_store(conf, WebPage).due_index().unavailable_reason


def test_sample_is_of_whole_unsplit_table(server: Server) -> None:
    """All rows of the second half lack their entries: a sample of the first rows would not find them."""
    conf = make_table("sample")
    writer = StandinWriter(server, conf)
    for number in range(2_000):
        server.put(writer.table, f"zz.example.h{number}:http/".encode(), b"s:s", b"\0\0\0\0", 5)
    assert "sampled rows are missing" in open_store(conf, WebPage).due_index().full_scan_reason(0, [])


def test_unknown_check_is_rejected(server: Server) -> None:
    with pytest.raises(ConfigurationError, match=r"hbase\.due\.check is 'often': choose one of exact, sample"):
        make_table("often")
