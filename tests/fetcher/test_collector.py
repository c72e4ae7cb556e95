"""What a fetch does to the garbage collector, and leaves to it."""

from __future__ import annotations

import gc
from collections import Counter

from nutch2py.fetcher.collector import calm_collector
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from tests.fetcher.conftest import Crawl, item
from tests.site.server import Reply, ScriptedSite


def test_the_collector_is_left_as_it_was() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with calm_collector():
        with calm_collector():
            assert gc.get_threshold()[0] >= 10_000
        assert gc.get_threshold()[0] >= 10_000
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == frozen


def test_a_page_leaves_nothing_to_the_collector(site: ScriptedSite, crawl: Crawl) -> None:
    """Requests, responses and answers go when their page is stored: else their content waits for the collector."""
    for number in range(40):
        site.on(f"/{number}", Reply(body=b"<p>words", keep=True))
    alive: list[Counter[str]] = []

    def sink(done: FetchItem) -> None:
        alive.append(Counter(type(each).__name__ for each in gc.get_objects()))

    fetcher = Fetcher(crawl.conf, 1, log=lambda _: None)
    gc.collect()
    before = Counter(type(each).__name__ for each in gc.get_objects())
    gc.disable()
    try:
        fetcher.run((item(site.url(f"/{number}")) for number in range(40)), sink)
    finally:
        gc.enable()
    assert len(alive) == 40
    for name in ("Request", "HtmlResponse", "AnswerResponse", "Asked", "Deferred"):
        assert alive[-1][name] - before[name] < 10, name
