"""Snapshot of the fetch queues: the longest first, with the reason and the time of the next request."""

from __future__ import annotations

import time
from dataclasses import replace

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.queues.fetch_queues import FetchItem, FetchItemQueues
from nutch2py.fetcher.queues.queue_snapshot import snapshot_queues
from tests.fetcher.conftest import item


def queued(queues: FetchItemQueues, host: str, count: int) -> FetchItem:
    items = [replace(item(f"http://{host}/{number}"), queue_id=host) for number in range(count)]
    for each in items:
        assert not queues.add(each)
    return items[0]


def test_queues_name_what_they_wait_for() -> None:
    conf = Configuration()
    conf.set("fetcher.server.delay", "2")
    now = 100.0
    queues = FetchItemQueues(conf, lambda: now)
    active, polite, held, ready = (queued(queues, host, 3) for host in ("active", "polite", "held", "ready"))
    for each in (active, polite, held):
        taken = queues.get()
        assert taken is each
    queues.finish(polite)
    queues.finish(held)
    queues.delay_queue(held, 60.0)
    queues.get_queue("held").last_status = "503"
    found = {each.queue: each for each in snapshot_queues(queues)}
    assert next(iter(found)) == "held"
    assert {name: each.reason for name, each in found.items()} == {
        "active": "request in progress",
        "polite": "crawl delay",
        "held": "Retry-After of the server",
        "ready": "next free thread",
    }
    assert (found["held"].waiting, found["held"].active, found["held"].delay_ms) == (2, 0, 2000)
    assert (found["active"].waiting, found["active"].active) == (2, 1)
    assert found["held"].last_status == "503"
    seconds = {name: each.next_request / 1000 - time.time() for name, each in found.items()}
    assert seconds["held"] - seconds["polite"] > 50
    assert ready.queue_id in found


def test_queues_of_snapshot_are_bounded_and_empty_ones_left_out() -> None:
    queues = FetchItemQueues(Configuration(), lambda: 0.0)
    for number in range(50):
        queued(queues, f"h{number}", 1 + number)
    queues.get_queue("idle")
    assert [each.queue for each in snapshot_queues(queues, 3)] == ["h49", "h48", "h47"]
    assert len(snapshot_queues(queues)) == 20
