"""Crawl clock: new cells are newer than existing ones, even if the machine's clock is wrong."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.mapreduce.lock_check import LOCKS_KEY, encode_holders, publish_clock
from nutch2py.records.webpage import DerivedRow, Host, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import open_store
from nutch2py.table.crawl_clock import CrawlClock, crawl_clock
from tests.jobs.clocks import HOUR, Machine, clock_goes_back, foreign_cells_are_ahead, told_clock


def test_timestamps_are_unique() -> None:
    clock, given = CrawlClock(), []
    threads = [threading.Thread(target=lambda: given.extend(clock.next() for _ in range(200))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(given)) == 800
    assert clock.now() >= max(given)
    clock.observe(now_ms() + HOUR)
    seen = clock.newest
    assert [clock.now(), clock.next(), clock.next()] == [seen, seen + 1, seen + 2]


def test_tables_of_crawl_share_clock(conf: Configuration) -> None:
    other = conf.copy()
    other.set("storage.crawl.id", "other")
    assert open_store(conf, WebPage).clock is open_store(conf, Host).clock
    assert open_store(conf, WebPage).clock is not open_store(other, WebPage).clock
    assert crawl_clock("a", "b") is crawl_clock("a", "b")


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_clock_set_back_keeps_write_order(
    conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    clock_goes_back(conf, Machine(monkeypatch), tmp_path, runner)


def test_foreign_cells_with_future_timestamps_are_overwritten(
    conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign_cells_are_ahead(conf, Machine(monkeypatch), tmp_path)


def test_clock_far_ahead_is_reported(
    conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine, seeds = Machine(monkeypatch), tmp_path / "seeds"
    seeds.write_text("http://a.example/\n")
    machine.set_ahead(3 * HOUR)
    inject(conf, str(seeds))
    assert "ahead" not in capsys.readouterr().err
    machine.set_ahead(0)
    inject(conf, str(seeds))
    assert "the newest cells of this crawl are 2:59:5" in capsys.readouterr().err


def test_tasks_report_timestamps_to_driver(conf: Configuration) -> None:
    """Those of another machine always, a second ahead; those of the driver's own when they have seen later ones."""
    lists = BatchListStore(conf)
    lists.store.create()
    now = now_ms()
    assert lists.store.compare_and_set(LOCKS_KEY, DerivedRow.data, None, encode_holders([], now + HOUR))
    publish_clock(lists.store, now - HOUR, is_remote=False)
    assert told_clock(conf) == now + HOUR
    lists.store.clock.observe(now + 2 * HOUR)
    publish_clock(lists.store, now - HOUR, is_remote=False)
    assert told_clock(conf) == now + 2 * HOUR
    publish_clock(lists.store, now - HOUR, is_remote=True)
    assert told_clock(conf) == now + 2 * HOUR + 1000
    publish_clock(lists.store, told_clock(conf), is_remote=True)
    assert told_clock(conf) == now + 2 * HOUR + 1000
