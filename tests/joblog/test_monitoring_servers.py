"""Rules, dashboard and metrics with the real Prometheus, Pushgateway and node_exporter."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from nutch2py import Crawl
from nutch2py.errors import NutchError
from nutch2py.joblog.job_recorder import JobRecorder
from nutch2py.server.http_server import HttpServer
from tests.conftest import ROOT
from tests.joblog.monitoring_servers import get_json, programs, started
from tests.jobs.crawl import properties, seeds, site
from tests.processes import wait_until
from tests.server.running_server import serving

RULES = ROOT / "docs" / "monitoring" / "nutch2py.rules.yml"
DASHBOARD = ROOT / "docs" / "monitoring" / "nutch2py-dashboard.json"
SOURCES = {"file", "push", "serve"}
"""Scrape jobs: node_exporter with the file, the Pushgateway, and the server of the crawl."""


def panel_queries() -> Iterator[tuple[str, str]]:
    """Yield title and query of each target of the dashboard, for all crawls."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$crawl", ".*")


def run_crawl(folder: Path, textfiles: Path, gateway: str, url: str) -> Crawl:
    """Return a crawl of one round, whose index job has failed."""
    settings = {
        **properties(),
        "metrics.file": str(textfiles / "${storage.crawl.id}.prom"),
        "metrics.push.url": f"http://{gateway}",
        "index.embedded.path": str(folder / "index"),
        "rest.folder": str(folder / "rest"),
    }
    warnings: list[str] = []
    crawl = Crawl(f"embedded:{folder / 'crawldata'}", settings, crawl_id="c", on_warning=warnings.append)
    crawl.inject(seeds(url))
    batch = crawl.generate(batch_id="b").batch_id
    crawl.fetch(batch)
    crawl.parse(batch)
    crawl.updatedb(batch)
    (folder / "index").write_text("not a folder")
    with pytest.raises(NutchError):
        crawl.index(batch)
    assert not [each for each in warnings if "metrics" in each]
    return crawl


def test_rules_are_valid_and_fire() -> None:
    cases = ROOT / "tests" / "joblog" / "rules_test.yml"
    for words in (("check", "rules", RULES), ("test", "rules", cases)):
        done = subprocess.run([programs() / "promtool", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    rules = {rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
    tests = [case for test in yaml.safe_load(cases.read_text())["tests"] for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in tests if case["exp_alerts"]} == rules
    assert {case["alertname"] for case in tests if not case["exp_alerts"]} == rules


def test_prometheus_answers_every_panel_and_fires_alert(tmp_path: Path) -> None:
    textfiles = tmp_path / "textfiles"
    textfiles.mkdir()
    collector = ("--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={textfiles}")
    with ExitStack() as stack:
        exporter = stack.enter_context(started("prometheus-node-exporter", "/metrics", tmp_path, *collector))
        gateway = stack.enter_context(started("prometheus-pushgateway", "/-/ready", tmp_path))
        crawl = stack.enter_context(run_crawl(tmp_path, textfiles, gateway, stack.enter_context(site())))
        running = JobRecorder(crawl.conf, "fetch", "b2")
        running.start()
        stack.callback(running.finish)
        running.step_started(lambda: 3, 9)
        server = stack.enter_context(serving(HttpServer(crawl.conf, ("127.0.0.1", 0))))
        addresses = {"file": exporter, "push": gateway, "serve": "{}:{}".format(*server.address)}
        scrapes = [
            {"job_name": name, "static_configs": [{"targets": [address]}], "honor_labels": name == "push"}
            for name, address in addresses.items()
        ]
        configuration = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": [str(RULES)],
            "scrape_configs": scrapes,
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        options = ("--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.size=50MB")
        prometheus = stack.enter_context(started("prometheus", "/-/ready", tmp_path, *options))
        assert_panels_and_alerts(prometheus)


def assert_panels_and_alerts(prometheus: str) -> None:
    def query(expression: str) -> list[dict[str, Any]]:
        return [*get_json(prometheus, "/api/v1/query", query=expression)["result"]]

    def firing() -> list[dict[str, str]]:
        alerts = get_json(prometheus, "/api/v1/alerts")["alerts"]
        return [alert["labels"] for alert in alerts if alert["state"] == "firing"]

    ours = {"nutch2py", *SOURCES}  # the value of `job` is that of the push, or of the scrape
    wait_until(lambda: len(query("nutch2py_job_last_begin_timestamp_seconds")) >= 3 * 6)
    for title, expression in panel_queries():
        if "running" in expression:
            wait_until(lambda expression=expression: query(expression))  # type: ignore[misc]
        found = [each["metric"] for each in query(expression)]
        sources = {"serve"} if "running" in expression else {"file", "nutch2py", "serve"}
        assert {labels["job"] for labels in found} == sources, f"{title}: {expression} has no data of some source"
        assert {labels["crawl"] for labels in found} == {"c"}
        assert not [labels for labels in found if any(name.startswith("exported_") for name in labels)]
        assert {labels.get("job_name", "") for labels in found}.isdisjoint(ours), title
    pages = query('nutch2py_job_last_counter{job="file",job_name="fetch",group="FetcherStatus",name=~"[A-Z_]+"}')
    assert sum(float(each["value"][1]) for each in pages) == 20
    wait_until(lambda: len([labels for labels in firing() if labels["alertname"] == "CrawlJobFailed"]) == 3)
    failed = [labels for labels in firing() if labels["alertname"] == "CrawlJobFailed"]
    assert {(labels["crawl"], labels["job_name"]) for labels in failed} == {("c", "index")}
