"""Jobs started at the same time as processes, on a real HBase."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf import Configuration
from tests.jobs.beside import beside_a_fetch, generates_at_once, slow_site, updates_at_once
from tests.jobs.clocks import Machine, clock_goes_back, foreign_cells_are_ahead

_number = itertools.count()


@pytest.fixture
def on_hbase(conf: Configuration, hbase: Any) -> Configuration:
    conf.set("storage.data.store", hbase.address())
    conf.set("storage.crawl.id", f"beside{next(_number)}")
    return conf


def test_processes_beside_a_fetch_that_is_killed_at_last(on_hbase: Configuration) -> None:
    with slow_site() as site:
        beside_a_fetch(on_hbase, site)


def test_generates_at_once(on_hbase: Configuration) -> None:
    generates_at_once(on_hbase)


def test_updates_at_once(on_hbase: Configuration) -> None:
    updates_at_once(on_hbase)


def test_a_clock_that_goes_back(on_hbase: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock_goes_back(on_hbase, Machine(monkeypatch), tmp_path)


def test_foreign_cells_that_are_ahead(on_hbase: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign_cells_are_ahead(on_hbase, Machine(monkeypatch), tmp_path)
