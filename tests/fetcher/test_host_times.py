"""Response times by host: bounded, merged over tasks, and reported for the slowest hosts."""

from __future__ import annotations

import orjson

from nutch2py.fetcher.stats.host_times import HOST_TIMES_GROUP, HostTimes


def test_slowest_hosts_are_reported_with_their_totals() -> None:
    times = HostTimes()
    for number in range(30):
        times.add(f"http://h{number}.example/", 10 * number)
        times.add(f"http://h{number}.example/again", 30 * number)
    times.add("no url", 9999)
    counters = times.to_counters()[HOST_TIMES_GROUP]
    assert len(counters) == 20
    assert (counters["responses h29.example"], counters["ms h29.example"]) == (2, 1160)
    assert "ms h19.example" not in counters
    assert HostTimes().to_counters() == {}


def test_host_times_of_tasks_are_merged() -> None:
    merged = HostTimes()
    for milliseconds in (100, 300):
        part = HostTimes()
        part.add("http://slow.example/", milliseconds)
        for _, record in orjson.loads(orjson.dumps(part.to_records())):
            merged.merge_record(record)
    assert merged.to_counters() == {HOST_TIMES_GROUP: {"responses slow.example": 2, "ms slow.example": 400}}


def test_memory_is_bounded_and_slowest_host_stays() -> None:
    times = HostTimes()
    times.add("http://slowest.example/", 60_000)
    for number in range(3000):
        times.add(f"http://h{number}.example/", number % 100)
    assert len(times.hosts) <= 1000
    assert times.to_counters()[HOST_TIMES_GROUP]["ms slowest.example"] == 60_000
