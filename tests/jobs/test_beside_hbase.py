"""Jobs started at the same time as processes, on a real HBase."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from nutch2py.conf import Configuration
from tests.jobs.beside import beside_a_fetch, generates_at_once, slow_site, updates_at_once

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
