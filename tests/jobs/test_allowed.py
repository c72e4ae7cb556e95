"""When ``crawl`` looks through a table for pages that are allowed now."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.conf import Configuration
from nutch2py.jobs.allowed import allow_again, noting_gate
from nutch2py.jobs.batchlist import BatchLists
from nutch2py.jobs.beginning import CrawlTables
from nutch2py.table import open_store
from nutch2py.webpage import CrawlStatus, WebPage
from tests.jobs import rows


@pytest.mark.parametrize("open_batch", [False, True])
def test_rows_are_looked_through_for_addresses_where_another_setting_was_fetched_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_batch: bool
) -> None:
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path / 'crawldata'}"})
    rows.put(conf, {"http://a.test/": {"status": CrawlStatus.FETCHED}})
    store, looked = open_store(conf, WebPage), []
    monkeypatch.setattr("nutch2py.jobs.allowed._allow", lambda *_: (looked.append(1), (0, int(open_batch)))[1])
    other = conf.copy()
    other.set("http.filter.ipaddress.exclude", "127.0.0.2")

    def looks(conf: Configuration) -> int:
        looked.clear()
        assert allow_again(conf) == 0
        return len(looked)

    assert looks(conf) == 1  # of a table that says nothing of it
    assert [looks(conf), looks(conf)] == ([1, 1] if open_batch else [0, 0])
    with noting_gate(other, CrawlTables(store, BatchLists(conf))):
        assert looks(conf) == 1  # and what is refused from here on is not seen
    assert looks(conf) == 1
    assert looks(conf) == int(open_batch)
