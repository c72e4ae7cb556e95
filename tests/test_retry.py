"""Retry of services: duration and log lines; no other module than nutch2py.support.retry waits."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.support import retry
from nutch2py.support.reporting import Reporter, use_reporter
from nutch2py.support.retry import ServiceRetry, report_outage, report_recovery, service_wait_seconds
from tests.import_graph import trees


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(retry, "time", made)
    return made


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    for service in retry.reported_outages():  # of tests before, in this process
        report_recovery(service)
    lines: list[str] = []
    with use_reporter(Reporter(on_warning=lines.append)):
        yield lines
    assert not retry.reported_outages(), "an outage is open"


class Away(Exception):
    """No answer."""


def meet(clock: Clock, seconds: float, wait: float) -> tuple[bool, float]:
    """Request a service that is unavailable for some seconds; return whether it responded, and after how long."""
    began, outage = clock.now, ServiceRetry("Solr at http://s", wait, "solr.server.url")
    while True:
        try:
            with outage.attempt():
                if clock.now - began < seconds:
                    raise Away
        except Away:
            if not outage.wait_before_retry("connection refused"):
                return False, clock.now - began
        else:
            return True, clock.now - began


def test_short_outage_is_not_logged(clock: Clock, warnings: list[str]) -> None:
    assert meet(clock, 0.3, 600)[0]
    assert warnings == []


@pytest.mark.parametrize("seconds", [1.5, 5, 30, 300, 599.9])
def test_long_outage_logs_start_and_end(clock: Clock, warnings: list[str], seconds: float) -> None:
    answered, took = meet(clock, seconds, 600)
    assert answered
    assert seconds <= took <= min(600, seconds + 15 * 1.25)
    assert warnings == [
        "Solr at http://s does not respond (connection refused): trying for 600 s; is solr.server.url right?",
        f"Solr at http://s responds again, after {took:.0f} s",
    ]


@pytest.mark.parametrize("wait", [0, 0.4, 7, 600])
def test_retry_lasts_at_least_the_configured_time(clock: Clock, warnings: list[str], wait: float) -> None:
    assert meet(clock, 1e9, wait) == (False, pytest.approx(wait))
    assert len(warnings) == (wait > 1)


def test_success_resets_retry_time(clock: Clock, warnings: list[str]) -> None:
    outage = ServiceRetry("HDFS", 10, "")
    for _ in range(100):
        assert outage.wait_before_retry("x")
        assert outage.wait_before_retry("x")
        outage.succeeded()
    assert warnings == []


def test_other_address_is_tried_immediately(clock: Clock, warnings: list[str]) -> None:
    before, outage = clock.now, ServiceRetry("HBase at hbase://a,b", 10, "")
    assert outage.wait_before_retry("x", immediately=True)
    assert clock.now == before


def test_threads_in_same_outage_log_it_once(clock: Clock, warnings: list[str]) -> None:
    first, second = ServiceRetry("YARN", 60, ""), ServiceRetry("YARN", 60, "")
    for _ in range(4):
        assert first.wait_before_retry("x" * 500)
        assert second.wait_before_retry("y")
    second.succeeded()
    first.succeeded()
    assert [line.partition(" (")[0].partition(", after")[0] for line in warnings] == [
        "YARN does not respond",
        "YARN responds again",
    ]
    assert max(map(len, warnings)) < 250


def test_caller_without_waiting_does_not_end_wait_of_others(clock: Clock, warnings: list[str]) -> None:
    waits = ServiceRetry("Solr at http://s", 600, "solr.server.url")
    while not warnings:
        assert waits.wait_before_retry("connection refused")
    assert meet(clock, 1, 0) == (False, 0)  # like the job log, which must not delay the job
    assert meet(clock, 0, 600)[0]
    assert len(warnings) == 2
    assert "responds again" in warnings[1]


def test_self_waiting_client_logs_same_lines(warnings: list[str]) -> None:
    report_outage("YARN", "connect to server: h:8032", 60)
    report_outage("YARN", "connect to server: h:8032", 60)
    report_recovery("YARN")
    report_recovery("YARN")
    assert [line.split()[1] for line in warnings] == ["does", "responds"]


def test_late_response_is_logged(warnings: list[str]) -> None:
    said = threading.Event()

    def take(line: str) -> None:
        warnings.append(line)
        said.set()

    with use_reporter(Reporter(on_warning=take)):
        outage = ServiceRetry("Solr at http://s", 600, "solr.server.url")
        with outage.warn_if_slow(0.01):
            assert said.wait(60)
        outage.succeeded()
    assert warnings[0] == (
        "Solr at http://s has not responded for 0.01 s: waiting for its response; is solr.server.url right?"
    )
    assert warnings[1].startswith("Solr at http://s responds again, after ")


def test_default_wait_is_ten_minutes_and_can_be_zero() -> None:
    assert service_wait_seconds(Configuration()) == 600
    assert service_wait_seconds(Configuration({"service.wait.seconds": "0"})) == 0


SLEEPERS = {
    "nutch2py.support.retry": "waits for services, for all others",
    "nutch2py.backends.index_lock": "waits for a process that writes the same index",
    "nutch2py.browser.tab_renderer": "looks whether a page has come to rest",
    "nutch2py.browser.browser_process": "samples the memory of the browser's processes",
    "nutch2py.fetcher.engine.extra_requests": "waits for the turn of a queue",
    "nutch2py.fetcher.engine.fetch_monitor": "reports the progress of a fetch",
    "nutch2py.fetcher.protocols.dns": "delays the retry of a DNS query",
    "nutch2py.fetcher.downloader.transport": "lets cancelled tasks end, and those that they start then",
    "nutch2py.jobs.locking.job_lock": "looks whether the holder of a lock lives",
    "nutch2py.mapreduce.runners.hadoop.hadoop_client": "YARN collects logs some seconds after the end of a job",
    "nutch2py.mapreduce.task_progress": "watches the driver",
    "nutch2py.mapreduce.runners.local_runners": "gives tasks time to end",
    "nutch2py.mcp_server.crawl_tools": "a client waits for the end of a job",
    "nutch2py.rest.job_control.job_processes": "lets the kernel end processes that were killed",
    "nutch2py.support.parent_exit": "looks whether the parent lives, where the kernel cannot report its end",
    "nutch2py.table.hbase.hbase_admin": "waits until a table that another is making is enabled",
}
"""Modules that sleep, with the reason."""


def sleepers() -> set[str]:
    """Return the modules that call something named sleep."""
    return {
        module
        for module, tree in trees("nutch2py").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) == "sleep"
    }


def test_only_listed_modules_sleep() -> None:
    assert sleepers() == SLEEPERS.keys()
