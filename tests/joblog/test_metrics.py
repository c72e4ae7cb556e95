"""Prometheus metrics of a crawl: export to a file and a gateway, and the names used by rules and dashboard."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from nutch2py import Crawl
from nutch2py.fetcher.stats.response_histograms import (
    OVERFLOW_BUCKET,
    SUM_KEY,
    TIME_BOUNDS_MS,
    response_histogram,
    to_job_counters,
)
from nutch2py.joblog.job_entry import JobEntry, JobState
from nutch2py.joblog.prometheus_metrics import render_exposition
from nutch2py.joblog.table_stats import ScoreSummary, TableStats
from tests.backends.failing_server import server
from tests.conftest import ROOT
from tests.jobs.crawl import properties, seeds, site

_SAMPLE = re.compile(r'(nutch2py_\w+)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (\S+)')
ENTRY = JobEntry("0000000000009-000001", "fetch", "c", "b", JobState.FINISHED, 1000, 3500, 3500, "h", 1, "u", 0)


class FakeMetricsSource:
    def __init__(self, *entries: JobEntry, stats: TableStats | None = None) -> None:
        self._entries, self._stats = [*entries], stats

    def jobs(self, limit: int = 100) -> list[JobEntry]:
        return self._entries[:limit]

    def table_stats(self) -> TableStats | None:
        return self._stats


def samples(text: str) -> dict[str, float]:
    """Return the samples by name and labels; every line must be one that Prometheus reads."""
    found: dict[str, float] = {}
    typed: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name = line.split()[2]
            assert name not in typed, "the samples of a metric must be adjacent"
            typed.add(name)
        elif not line.startswith("# HELP "):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert re.sub("_(bucket|sum|count)$", "", match[1]) in typed or match[1] in typed
            assert f"{match[1]}{{{match[2]}}}" not in found
            found[f"{match[1]}{{{match[2]}}}"] = float(match[3])
    return found


def families(text: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def test_job_metrics_are_exported() -> None:
    spread = response_histogram(TIME_BOUNDS_MS)
    for value in (5, 10, 11, 99_999):
        spread.add(value)
    counted = to_job_counters(spread)
    assert counted == {"10": 2, "30": 1, OVERFLOW_BUCKET: 1, SUM_KEY: 100_025}
    counters = {"FetcherStatus": {'a "quoted"\\\nname': 3}, "fetch_time_ms": counted}
    counters |= {group: {"x a.example": 3} for group in ("fetch_hosts", "fetch_host_times")}
    done = replace(ENTRY, counters=counters, cpu_ms=1500, peak_bytes=1 << 20, rows=7)
    running = replace(
        ENTRY, id="0000000000010-000001", state=JobState.RUNNING, finish_time=None, exit_code=None, expected=9
    )
    killed = replace(ENTRY, job="parse", state=JobState.KILLED, finish_time=None, exit_code=None)
    stats = TableStats(1000, 5, {"status_fetched": 5}, score=ScoreSummary(0.0, 0.5, 1.0), due=2)
    values = samples(render_exposition(FakeMetricsSource(running, done, killed, stats=stats)))
    assert values['nutch2py_job_last_duration_seconds{crawl="c",job_name="fetch"}'] == 2.5
    assert values['nutch2py_job_last_exit_code{crawl="c",job_name="parse"}'] == -1
    assert (
        values['nutch2py_job_running_rows_expected{batch="b",crawl="c",id="0000000000010-000001",job_name="fetch"}']
        == 9
    )
    assert not [name for name in values if "a.example" in name]
    counted = r'nutch2py_job_last_counter{crawl="c",group="FetcherStatus",job_name="fetch",name="a \"quoted\"\\\nname"}'
    assert values[counted] == 3
    buckets = [
        values[f'nutch2py_fetch_answer_seconds_bucket{{crawl="c",le="{le}"}}'] for le in ("0.01", "0.03", "+Inf")
    ]
    assert buckets == [2, 3, 4]
    assert values['nutch2py_fetch_answer_seconds_sum{crawl="c"}'] == pytest.approx(100.025)
    assert values['nutch2py_table_rows_due{crawl="c"}'] == 2
    assert values['nutch2py_table_score{crawl="c",of="mean"}'] == 0.5
    assert render_exposition(FakeMetricsSource()) == ""


@contextmanager
def gateway(status: int = 200, body: bytes = b"") -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Give a Pushgateway's address, and what was put there; ``status`` and ``body``: its response."""
    put: list[tuple[str, str]] = []

    class Gateway(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            put.append((self.path, self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", put
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_rules_dashboard_and_page_use_exported_metric_names(tmp_path: Path) -> None:
    settings = {**properties(), "metrics.file": str(tmp_path / "${storage.crawl.id}.prom")}
    with site() as url, gateway() as (address, put), Crawl(f"embedded:{tmp_path}", settings, crawl_id="c") as crawl:
        crawl.inject(seeds(url))
        batch = crawl.generate(batch_id="b").batch_id
        crawl.fetch(batch)
        crawl.conf.set("metrics.push.url", address)
        crawl.parse(batch)
        text = (tmp_path / "c.prom").read_text()
        assert put == [("/metrics/job/nutch2py/crawl/c", text)]
        assert stat.S_IMODE((tmp_path / "c.prom").stat().st_mode) == 0o644
        assert not [*tmp_path.glob(".*.prom*")]
        assert samples(text)['nutch2py_job_last_rows{crawl="c",job_name="parse"}'] == 20
        fetched = samples(text)['nutch2py_fetch_answer_seconds_count{crawl="c"}']
        assert fetched == samples(text)['nutch2py_fetch_answer_bytes_bucket{crawl="c",le="+Inf"}'] > 15
        assert families(render_exposition(crawl)) == families(text)
    at_work = FakeMetricsSource(replace(ENTRY, state=JobState.RUNNING, finish_time=None, expected=9))
    given = families(text) | families(render_exposition(at_work))
    page = (ROOT / "docs" / "watching.md").read_text()
    assert set(re.findall(r"^\| `(nutch2py_\w+)` \|", page, re.MULTILINE)) == given
    folder = ROOT / "docs" / "monitoring"
    rules, dashboard = (folder / "nutch2py.rules.yml").read_text(), (folder / "nutch2py-dashboard.json").read_text()
    asked = {name.removesuffix("_bucket") for name in re.findall(r"\bnutch2py_\w+", rules + dashboard)}
    assert asked <= given
    assert len(asked) > 10
    assert {rule["alert"] for rule in yaml.safe_load(rules)["groups"][0]["rules"]} >= {"CrawlJobFailed"}
    assert len(json.loads(dashboard)["panels"]) == 10


def test_prometheus_client_is_imported_only_for_metrics() -> None:
    modules = "nutch2py.joblog.metrics_export, nutch2py.rest.server_metrics, nutch2py.crawl"
    code = f"import sys, {modules}; print('prometheus_client' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_failed_export_logs_warning(tmp_path: Path) -> None:
    warnings: list[str] = []
    settings = {
        **properties(),
        "metrics.file": str(tmp_path / "none" / "m.prom"),
        "metrics.push.url": "http://me:s3cret@127.0.0.1:9/",
    }
    with Crawl(f"embedded:{tmp_path}", settings, on_warning=warnings.append) as crawl:
        crawl.inject(["http://127.0.0.1:9/"])
    assert len(warnings) == 2
    assert "cannot write the metrics to" in warnings[0]
    assert warnings[1].startswith("cannot push the metrics to http://127.0.0.1:9/ (ConnectionError)")


def test_only_the_start_of_a_rejection_is_read(tmp_path: Path) -> None:
    sent, warnings = [0], list[str]()
    with server("endless error", sent=sent) as (url, _):
        settings = {**properties(), "metrics.push.url": url}
        with Crawl(f"embedded:{tmp_path}", settings, on_warning=warnings.append) as crawl:
            crawl.inject(["http://127.0.0.1:9/"])
    assert ["it rejected them with status 500" in warning for warning in warnings] == [True]
    assert sent[0] < 20_000_000  # what the sockets hold


def test_rejected_push_warns_with_reason(tmp_path: Path) -> None:
    warnings: list[str] = []
    with gateway(400, b"pushed metrics are invalid or inconsistent\nand more") as (address, _):
        settings = {**properties(), "metrics.push.url": address}
        with Crawl(f"embedded:{tmp_path}", settings, on_warning=warnings.append) as crawl:
            crawl.inject(["http://127.0.0.1:9/"])
    assert len(warnings) == 1
    assert "(it rejected them with status 400: pushed metrics are invalid or inconsistent)" in warnings[0]
