"""Jobs started at the same time as processes, on a real HBase."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from tests.jobs.clocks import Machine, clock_goes_back, foreign_cells_are_ahead
from tests.jobs.concurrent_commands import beside_a_fetch, generates_at_once, slow_site, updates_at_once

_number = itertools.count()


@pytest.fixture
def on_hbase(conf: Configuration, hbase: Any) -> Configuration:
    conf.set("storage.data.store", hbase.address())
    conf.set("storage.crawl.id", f"concurrent{next(_number)}")
    return conf


def test_hbase_concurrent_jobs_with_killed_fetch_keep_table_consistent(on_hbase: Configuration) -> None:
    with slow_site() as site:
        beside_a_fetch(on_hbase, site)


def test_hbase_concurrent_generates_choose_disjoint_rows(on_hbase: Configuration) -> None:
    generates_at_once(on_hbase)


def test_hbase_concurrent_updates_keep_all_changes(on_hbase: Configuration) -> None:
    updates_at_once(on_hbase)


def test_hbase_clock_set_back_keeps_write_order(
    on_hbase: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_goes_back(on_hbase, Machine(monkeypatch), tmp_path)


def test_hbase_foreign_cells_with_future_timestamps_are_overwritten(
    on_hbase: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign_cells_are_ahead(on_hbase, Machine(monkeypatch), tmp_path)
