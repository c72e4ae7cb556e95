"""Job log, statistics and overview of a simulated crawl of ten million rows; deterministic."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

from nutch2py.fetcher.queues.queue_state import QueueState
from nutch2py.fetcher.stats.response_histograms import (
    SIZE_BOUNDS_BYTES,
    TIME_BOUNDS_MS,
    response_histogram,
    to_job_counters,
)
from nutch2py.joblog.crawl_overview import HostEdge, HostSummary, Overview
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.table_stats import ScoreSummary, TableStats
from nutch2py.support.histogram import Histogram

BEGAN = 1_763_000_000_000
MINUTE = 60_000
ROUND = (("generate", 4), ("fetch", 45), ("parse", 12), ("updatedb", 9), ("index", 6))


def table_stats(rows: int, made: int, fetched: float = 0.62) -> TableStats:
    good = int(rows * fetched)
    status = {"status_fetched": good, "status_gone": rows // 50, "status_redir_temp": rows // 40,
              "status_redir_perm": rows // 60, "status_notmodified": rows // 90}  # fmt: skip
    status["status_unfetched"] = rows - sum(status.values())
    return TableStats(
        made, rows, status, {"0": rows}, {"SUCCESS": good}, {"success/ok": good}, ScoreSummary(0, 0.4, 93.1), 41_800
    )


def entry(job: str, batch: str, started: int, minutes: float, **more: Any) -> JobEntry:
    ended = started + int(minutes * MINUTE)
    given: dict[str, Any] = {
        "state": JobState.FINISHED,
        "finish_time": ended,
        "last_seen": ended,
        "exit_code": 0,
        "cpu_ms": 700,
    }
    given |= {"peak_bytes": 180_000_000} | more
    return JobEntry(
        f"{started:015d}-{job[:4]}", job, "", batch, start_time=started, host="crawler", pid=4711, user="nutch", **given
    )


def entries(count: int = 120, rows: int = 10_000_000, running: bool = True) -> list[JobEntry]:
    """Return jobs, the newest first; the last one is running."""
    return list(_made(count, rows, running))


@cache
def _made(count: int, rows: int, running: bool) -> tuple[JobEntry, ...]:
    chance = random.Random(7)
    made: list[JobEntry] = [
        entry("inject", "", BEGAN, 1, counters={"injector": {"urls_injected": 1200, "urls_new": 1200}})
    ]
    at = made[0].finish_time or 0
    rounds = max(1, (count - 1) // len(ROUND))
    for number in range(rounds):
        batch = f"{at // 1000}-{1000 + number}"
        grown = int(rows * ((number + 1) / rounds) ** 1.4)
        for job, minutes in ROUND:
            took = minutes * chance.uniform(0.6, 1.6)
            known = table_stats(grown, at + int(took * MINUTE))
            more: dict[str, Any] = {
                "counters": counters(job, chance),
                "rows": 50_000,
                "expected": 50_000,
                "table_stats": known,
            }
            if chance.random() < 0.03:
                more |= {"state": JobState.FAILED, "exit_code": 4, "message": "the disk is full: free some space"}
            made.append(entry(job, batch, at, took, **more))
            at += int(took * MINUTE)
        at += 2 * MINUTE
    if running:
        more = {"state": JobState.RUNNING, "finish_time": None, "exit_code": None, "rows": 31_240, "expected": 50_000}
        more["notes"] = ("24.1 pages/s, 812 kB/s, 1,204 queues, 50 active, errors: 31 HTTP status, 8 timeout",)
        more["queues"] = tuple(
            QueueState(
                f"www.slow{number}.example", 400 - 20 * number, number % 2, 5000, at + 22 * MINUTE, reason, "503", 4
            )
            for number, reason in enumerate(("crawl delay", "request in progress", "failures of the server") * 3)
        )
        made.append(entry("fetch", f"{at // 1000}-live", at, 21.5, **more))
    return tuple(made[::-1][:count])


def counters(job: str, chance: random.Random) -> dict[str, dict[str, int]]:
    def some(most: int) -> int:
        return chance.randint(most // 2, most)

    match job:
        case "generate":
            return {"generator": {"generated": 50_000}}
        case "fetch":
            failed = {"exception_timeout": some(1500), "exception_unknown_host": some(400), "exception_tls": some(60),
                      "exception_connection_refused": some(200)}  # fmt: skip
            return {"FetcherStatus": {"SUCCESS": some(42_000), "NOTMODIFIED": some(900), "MOVED": some(1800),
                                      "TEMP_MOVED": some(1200), "NOTFOUND": some(1400), "ROBOTS_DENIED": some(300),
                                      "EXCEPTION": sum(failed.values()) + some(80),
                                      "bytes_downloaded": some(2_400_000_000),
                                      **failed},
                    "fetch_hosts": {f"{reason} www.{word}.example": some(300)
                                    for word in ("copper", "lantern", "willow")
                                    for reason in ("http_503", "http_403", "timeout", "NOTFOUND", "HostHeld")},
                    "fetch_host_times": {f"{name} www.{word}.example": some(most) for word in ("copper", "lantern")
                                         for name, most in (("responses", 90), ("ms", 400_000))},
                    "fetch_time_ms": spread(TIME_BOUNDS_MS, 42_000, 4, chance),
                    "fetch_size_bytes": spread(SIZE_BOUNDS_BYTES, 42_000, 3, chance)}  # fmt: skip
        case "updatedb":
            return {"updatedb": {"links": some(900_000), "rows_new": some(300_000)}}
        case "parse":
            return {"ParserStatus": {"success": some(41_000), "failed": some(300)}}
        case _:
            return {"IndexerStatus": {"added": some(40_000)}}


def spread(bounds: tuple[int, ...], count: int, middle: int, chance: random.Random) -> dict[str, int]:
    """Return the counters of a fetch with this number of responses."""
    of = response_histogram(bounds)
    for _ in range(100):
        of.add(round(bounds[middle] * chance.lognormvariate(0, 1.5)))
    return {name: number * count // 100 for name, number in to_job_counters(of).items()}


def overview(hosts: int = 200, edges: int = 500) -> Overview:
    chance = random.Random(11)
    names = [f"{chance.choice(['www', 'docs', 'blog', 'shop', 'en'])}.{word}{n}.example" for n in range(hosts)
             for word in (chance.choice(["river", "lantern", "copper", "meadow", "harbour", "willow"]),)]  # fmt: skip
    figures_of = []
    for number, name in enumerate(names):
        rows = int(1_900_000 / (number + 1) ** 0.9)
        good = int(rows * chance.uniform(0.3, 0.9))
        status = {"status_fetched": good, "status_gone": rows // 40, "status_redir_temp": rows // 30}
        status["status_unfetched"] = rows - sum(status.values())
        figures_of.append(HostSummary(name, rows, good, rows // 40, status, rows * 2, rows * 3))
    made = {}
    while hosts > 1 and len(made) < edges:
        source, target = (int(hosts * chance.random() ** 2.2) for _ in range(2))
        if source != target:
            made[source, target] = int(90_000 / (1 + source + target) * chance.uniform(0.3, 1))
    heavy = sorted(made.items(), key=lambda each: -each[1])
    spreads = {
        "score": _bell(tuple(0.0001 * 4**n for n in range(12)), 3_000_000, 6, 5),
        "pagerank": _bell(tuple(0.1 * 2**n for n in range(14)), 2_500_000, 2, 6),
        "next_fetch": _bell((-2592000.0, -86400.0, 0.0, 86400.0, 604800.0, 2592000.0), 2_000_000, 4, 2),
        "depth": _bell(tuple(range(11)), 3_400_000, 4, 5),
        "interval": _bell(tuple(86400.0 * 2**n for n in range(8)), 6_000_000, 5, 1),
    }
    return Overview(
        BEGAN, tuple(figures_of), 184_311, tuple(HostEdge(names[a], names[b], n) for (a, b), n in heavy), spreads,
        {"content_type": {"text/html": 5_400_000, "application/pdf": 610_000, "text/plain": 90_000},
         "language": {"en": 3_900_000, "de": 1_400_000, "zh": 640_000, "unknown": 160_000}},
    )  # fmt: skip


def _bell(bounds: tuple[float, ...], top: int, middle: int, wide: float) -> Histogram:
    return Histogram(bounds, tuple(int(top * math.exp(-((n - middle) ** 2) / wide)) for n in range(len(bounds))))
