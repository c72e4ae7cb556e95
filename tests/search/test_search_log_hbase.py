"""The search log and the click factors in a real HBase."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_clicks import read_click_factors
from nutch2py.records.webpage import DerivedRow
from nutch2py.search.search_log.click_model import store_click_factors
from nutch2py.search.search_log.search_log_store import delete_old_rows, read_searches
from nutch2py.search.search_log.search_logger import SearchLogger
from nutch2py.table import open_store


def test_hbase_keeps_search_log_and_click_factors(hbase: Any, conf: Configuration) -> None:
    conf.set("storage.data.store", hbase.location)
    conf.set("storage.crawl.id", "searchlog")
    logger = SearchLogger(conf)
    with closing(logger):
        tokens = [logger.log_search(f"query {number}", 20, 0, ["a", "b"], "page", "s") for number in range(30)]
        assert logger.log_click(tokens[3], 2)
        assert logger.log_click(tokens[3], 2, 700)
    store = open_store(conf, DerivedRow)
    found = {each.search.query: each.clicks for each in read_searches(store)}
    assert len(found) == 30
    assert [(click.position, click.dwell_ms) for click in found["query 3"]] == [(2, 700)]
    assert delete_old_rows(store, 1, 10) == 21
    assert len([*read_searches(store, 0, 100)]) in (9, 10)  # one of the ten rows may be the click
    for factors in ({f"page{number}": 1.5 for number in range(1500)}, {"a": 0.5}):
        store_click_factors(store, factors)
        assert read_click_factors(store) == factors
