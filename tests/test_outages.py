"""How long services are waited for, what is said of it, and that nobody waits beside nutch2py.outages."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator

import pytest

from nutch2py import outages
from nutch2py.conf import Configuration
from nutch2py.outages import Outage, begins, ends, service_wait
from nutch2py.reporting import Reporter, reporting_to
from tests.imports import trees


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
    monkeypatch.setattr(outages, "time", made)
    return made


@pytest.fixture
def told() -> Iterator[list[str]]:
    lines: list[str] = []
    with reporting_to(Reporter(warning=lines.append)):
        yield lines
    assert not outages._told, "an outage is open"


class Away(Exception):
    """No answer."""


def meet(clock: Clock, seconds: float, wait: float) -> tuple[bool, float]:
    """Ask a service that is away for some seconds; return whether it answered, and how long that took."""
    began, outage = clock.now, Outage("Solr at http://s", wait, "solr.server.url")
    while True:
        try:
            with outage.asking():
                if clock.now - began < seconds:
                    raise Away
        except Away:
            if not outage.failed("connection refused"):
                return False, clock.now - began
        else:
            return True, clock.now - began


def test_what_passes_at_once_is_not_worth_a_line(clock: Clock, told: list[str]) -> None:
    assert meet(clock, 0.3, 600)[0]
    assert told == []


@pytest.mark.parametrize("seconds", [1.5, 5, 30, 300, 599.9])
def test_one_line_when_it_begins_and_one_when_it_ends(clock: Clock, told: list[str], seconds: float) -> None:
    answered, took = meet(clock, seconds, 600)
    assert answered
    assert seconds <= took <= min(600, seconds + 15 * 1.25)
    assert told == [
        "Solr at http://s does not answer (connection refused): trying for 600 s; is solr.server.url right?",
        f"Solr at http://s answers again, after {took:.0f} s",
    ]


@pytest.mark.parametrize("wait", [0, 0.4, 7, 600])
def test_it_is_tried_for_as_long_as_is_said_never_less(clock: Clock, told: list[str], wait: float) -> None:
    assert meet(clock, 1e9, wait) == (False, pytest.approx(wait))
    assert len(told) == (wait > 1)


def test_an_answer_ends_the_count(clock: Clock, told: list[str]) -> None:
    outage = Outage("HDFS", 10, "")
    for _ in range(100):
        assert outage.failed("x")
        assert outage.failed("x")
        outage.over()
    assert told == []


def test_another_address_is_tried_at_once(clock: Clock, told: list[str]) -> None:
    before, outage = clock.now, Outage("HBase at hbase://a,b", 10, "")
    assert outage.failed("x", at_once=True)
    assert clock.now == before


def test_threads_that_meet_the_same_outage_say_it_once(clock: Clock, told: list[str]) -> None:
    first, second = Outage("YARN", 60, ""), Outage("YARN", 60, "")
    for _ in range(4):
        assert first.failed("x" * 500)
        assert second.failed("y")
    second.over()
    first.over()
    assert [line.partition(" (")[0].partition(", after")[0] for line in told] == [
        "YARN does not answer",
        "YARN answers again",
    ]
    assert max(map(len, told)) < 250


def test_who_does_not_wait_ends_nobodys_waiting(clock: Clock, told: list[str]) -> None:
    waits = Outage("Solr at http://s", 600, "solr.server.url")
    while not told:
        assert waits.failed("connection refused")
    assert meet(clock, 1, 0) == (False, 0)  # as the job log does, which is only kept beside the job
    assert meet(clock, 0, 600)[0]
    assert len(told) == 2
    assert "answers again" in told[1]


def test_a_client_that_waits_by_itself_is_told_alike(told: list[str]) -> None:
    begins("YARN", "connect to server: h:8032", 60)
    begins("YARN", "connect to server: h:8032", 60)
    ends("YARN")
    ends("YARN")
    assert [line.split()[1] for line in told] == ["does", "answers"]


def test_an_answer_that_is_late_is_told(told: list[str]) -> None:
    said = threading.Event()

    def take(line: str) -> None:
        told.append(line)
        said.set()

    with reporting_to(Reporter(warning=take)):
        outage = Outage("Solr at http://s", 600, "solr.server.url")
        with outage.listening(0.01):
            assert said.wait(60)
        outage.over()
    assert told[0] == (
        "Solr at http://s has not answered for 0.01 s: waiting for its answer; is solr.server.url right?"
    )
    assert told[1].startswith("Solr at http://s answers again, after ")


def test_ten_minutes_are_the_default_and_nothing_turns_it_off() -> None:
    assert service_wait(Configuration()) == 600
    assert service_wait(Configuration({"service.wait.seconds": "0"})) == 0


SLEEPERS = {
    "nutch2py.outages": "waits for services, for all others",
    "nutch2py.backends.index_lock": "waits for a process that writes the same index",
    "nutch2py.browser.page": "looks whether a page has come to rest",
    "nutch2py.browser.running": "looks at the memory of the browser's processes",
    "nutch2py.fetcher.manners": "waits for the turn of a queue",
    "nutch2py.fetcher.monitor": "tells how a fetch goes",
    "nutch2py.fetcher.names": "lets a moment pass before it asks for a name again",
    "nutch2py.fetcher.transport": "lets tasks end that it has cancelled, and those that they begin then",
    "nutch2py.jobs.locks": "looks whether the holder of a lock lives",
    "nutch2py.mapreduce.hadoop": "YARN collects logs some seconds after the end of a job",
    "nutch2py.mapreduce.progress": "watches the driver",
    "nutch2py.mapreduce.runners": "gives tasks time to end",
    "nutch2py.rest.children": "lets the kernel end processes that were killed",
    "nutch2py.table.hbase.admin": "waits until a table that another is making is enabled",
}
"""Who sleeps, and for what."""


def sleepers() -> set[str]:
    """Return the modules that call something named sleep."""
    return {
        module
        for module, tree in trees("nutch2py").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) == "sleep"
    }


def test_nobody_else_sleeps() -> None:
    assert sleepers() == SLEEPERS.keys()
