"""Tuning of the garbage collector during a fetch."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.fetcher.runtime.gc_tuning import add_stored_bytes, relaxed_gc
from tests.fetcher.conftest import Crawl, item
from tests.site.server import Reply, ScriptedSite


@pytest.mark.usefixtures("_unfrozen")
def test_gc_settings_are_restored() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with relaxed_gc():
        with relaxed_gc():
            assert gc.get_threshold()[0] >= 10_000
        assert gc.get_threshold()[0] >= 10_000
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == frozen


def _looked_for(pages: int) -> list[str]:
    found: list[str] = []

    def record(phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 1:
            found.append(phase)

    with relaxed_gc():  # outside of it, the low threshold of other tests can start a collection at any allocation
        gc.callbacks.append(record)
        try:
            for _ in range(pages):
                add_stored_bytes(1 << 20)
        finally:
            gc.callbacks.remove(record)
    return found


def test_gc_runs_after_many_bytes() -> None:
    """A few cycles that hold large pages do not wait for a hundred thousand objects."""
    assert _looked_for(64) == ["start", "stop"]  # once, however many bytes earlier fetches had counted


def test_disabled_gc_stays_disabled() -> None:
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(0)
        assert _looked_for(130) == []
    finally:
        gc.set_threshold(*thresholds)
    gc.disable()
    try:
        assert _looked_for(130) == []
    finally:
        gc.enable()


def test_page_leaves_no_cyclic_garbage(site: ScriptedSite, crawl: Crawl) -> None:
    """Requests and responses are freed when their page is stored, without the collector."""
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
    for name in ("Request", "HtmlResponse", "ScrapyCall", "Deferred"):
        assert alive[-1][name] - before[name] < 10, name
