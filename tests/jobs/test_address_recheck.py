"""``crawl`` rechecks a table for pages that the address filter allows now."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.fetch.address_recheck import record_address_filter, reschedule_allowed_pages
from nutch2py.jobs.job_context import CrawlTables
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.table import open_store
from tests.jobs import rows


@pytest.mark.parametrize("open_batch", [False, True])
def test_address_recheck_runs_when_setting_changed_since_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_batch: bool
) -> None:
    conf = Configuration.load(overrides={"storage.data.store": f"embedded:{tmp_path / 'crawldata'}"})
    rows.put(conf, {"http://a.test/": {"status": CrawlStatus.FETCHED}})
    store, looked = open_store(conf, WebPage), []
    monkeypatch.setattr(
        "nutch2py.jobs.fetch.address_recheck.reschedule", lambda *_: (looked.append(1), (0, int(open_batch)))[1]
    )
    other = conf.copy()
    other.set("http.filter.ipaddress.exclude", "127.0.0.2")

    def looks(conf: Configuration) -> int:
        looked.clear()
        assert reschedule_allowed_pages(conf) == 0
        return len(looked)

    assert looks(conf) == 1  # of a table that says nothing of it
    assert [looks(conf), looks(conf)] == ([1, 1] if open_batch else [0, 0])
    with record_address_filter(other, CrawlTables(store, BatchListStore(conf))):
        assert looks(conf) == 1  # URLs rejected from here on are not seen
    assert looks(conf) == 1
    assert looks(conf) == int(open_batch)
