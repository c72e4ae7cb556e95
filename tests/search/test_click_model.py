"""Click factors: position bias is taken out, and the factor reaches documents and their order."""

from __future__ import annotations

import random

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_clicks import ClickIndexingFilter, read_click_factors
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.search.search_backends import open_search_backend
from nutch2py.search.search_log.click_model import learn_click_model, store_click_factors
from nutch2py.search.search_log.logged_search import LoggedClick, LoggedSearch, SearchSource, new_search_id
from nutch2py.search.search_log.search_log_store import LogRow, SearchWithClicks, open_log_store, write_rows
from nutch2py.table import open_store
from tests.indexer.pages import doc

_EXAMINED = (0.9, 0.5, 0.3, 0.2, 0.1)
"""Probability that a simulated user looks at a position."""


def searched(ids: list[str], *positions: int, source: SearchSource = "page") -> SearchWithClicks:
    search = LoggedSearch(query="q", total=len(ids), start=0, shown=len(ids), ids=ids, source=source)
    return SearchWithClicks(search, 0, [LoggedClick(position=each) for each in positions])


def test_equally_attractive_pages_have_same_factor_at_every_position() -> None:
    chance = random.Random(5)
    attraction = {f"page{number}": 0.5 for number in range(5)} | {"good": 0.9, "bad": 0.1}
    log = []
    for _ in range(20_000):
        ids = chance.sample([*attraction], 5)
        ids.sort(key=lambda each: (each != "page0", each == "page1"))  # always first, last when shown
        clicks = [
            position
            for position, (document_id, examined) in enumerate(zip(ids, _EXAMINED, strict=True), 1)
            if chance.random() < examined * attraction[document_id]
        ]
        log.append(searched(ids, *clicks))
    model = learn_click_model(log)
    rates = model.click_rates
    assert all(rates[position] > rates[position + 1] for position in range(1, 5))
    factors = {name: model.factors.get(name, 1.0) for name in attraction}
    assert factors["good"] > 1.4
    assert factors["bad"] < 0.6
    assert all(0.85 < factors[f"page{number}"] < 1.15 for number in range(5)), factors


def test_rarely_shown_pages_keep_factor_close_to_one() -> None:
    log = [searched(["lucky", "other"], 1), *(searched([f"a{number}", f"b{number}"]) for number in range(1000))]
    factors = learn_click_model(log).factors
    assert 1 < factors["lucky"] < 1.11
    assert factors.keys() == {"lucky"}
    assert learn_click_model([]).factors == {}


def test_factors_are_limited_and_replaced(conf: Configuration) -> None:
    log = [*[searched(["a", "b"], 1)] * 100, *[searched(["b", "a"], 2)] * 100, searched(["c"], 9)]
    factors = learn_click_model(log).factors
    assert factors["a"] > 1.5
    assert factors["b"] == 0.5
    store = open_store(conf, DerivedRow)
    assert read_click_factors(store) == {}
    store.create()
    many = {f"page{number}": 1.5 for number in range(2500)}
    store_click_factors(store, many)
    assert read_click_factors(store) == many
    store_click_factors(store, factors)
    assert read_click_factors(store) == factors
    given = ClickIndexingFilter(conf).filter(NutchDocument({"id": ["b"]}), "", WebPage())
    assert given is not None
    assert given.get("clicks") == "0.5"
    without = ClickIndexingFilter(conf).filter(NutchDocument({"id": ["unknown"]}), "", WebPage())
    assert without is not None
    assert without.get("clicks") is None


def test_learned_factor_changes_order_of_hits(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-D", f"storage.data.store={conf.get('storage.data.store')}"]
    assert main(["searchlog", "-learn", *where]) == 1
    store, ids = open_log_store(conf), ["org.a:http/1", "org.a:http/2"]
    store.create()
    rows = []
    for _ in range(100):
        search_id = new_search_id()
        rows += [
            LogRow(search_id, 0, searched(ids).search),
            LogRow(search_id, 2, LoggedClick(position=2)),
            LogRow(new_search_id(), 0, searched(ids[::-1]).search),
        ]
    write_rows(store, rows)
    assert main(["searchlog", "-learn", "-source", "api", *where]) == 1
    capsys.readouterr()
    assert main(["searchlog", "-learn", *where]) == 0
    assert {"searches:\t200", "clicks:\t100", "pages with a click factor:\t2"} <= {
        *capsys.readouterr().out.splitlines()
    }
    conf.set("index.weight.fields", "clicks^0.5")
    plugin, writers = ClickIndexingFilter(conf), IndexWriters(conf)
    writers.prepare()
    with writers:
        for document_id in ids:
            made = doc(document_id, url=document_id, title="needle", content="needle", host="a.org")
            document = plugin.filter(made, "", WebPage())
            assert document is not None
            writers.write(document)
        writers.commit()
    hits = open_search_backend(conf).search("needle").hits
    assert [hit.id for hit in hits] == ids[::-1]
