"""Schedules and events: what begins by the clock, once, and what is told of it while it happens."""

from __future__ import annotations

import http.client
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nutch2py.rest.schedules import only
from tests.rest.conftest import Client, running, settings

DAILY = {"id": "daily", "cron": "30 4 * * *", "job": {"job": "checktable", "crawlId": "c"}}


def test_schedules_survive_the_server(tmp_path: Path) -> None:
    with running(settings(tmp_path)) as first:
        status, stored = Client(first).ask("POST", "/api/v1/schedules", DAILY)
        assert (status, datetime.fromtimestamp(stored["next"] / 1000, UTC).strftime("%H:%M")) == (201, "04:30")
    with running(settings(tmp_path)) as second:
        client = Client(second)
        assert [each["id"] for each in client.get("/api/v1/schedules")] == ["daily"]
        assert client.get("/api/v1/schedules/daily")["job"]["crawlId"] == "c"
        assert client.ask("DELETE", "/api/v1/schedules/daily")[0] == 200
        assert client.ask("GET", "/api/v1/schedules/daily")[0] == 404


@pytest.mark.parametrize("cron", ["", "x", "* * * *", "61 * * * *", "0 0 30 2 *", "* " * 99])
def test_what_is_no_time_is_refused(client: Client, cron: str) -> None:
    assert client.ask("POST", "/api/v1/schedules", {**DAILY, "cron": cron})[0] == 400


def test_a_job_begins_at_its_time_and_not_beside_itself(client: Client) -> None:
    office = client.server.app.state.gatekeeper.office
    office.clock.end()
    endless = {"job": "crawl", "seeds": ["http://192.0.2.1/"], "crawlId": "c"}
    client.ask("POST", "/api/v1/schedules", {**DAILY, "job": endless})
    client.ask("POST", "/api/v1/schedules", {**DAILY, "id": "off", "enabled": False})
    now = datetime.now(UTC)
    assert office.clock.tick(now) == []
    (begun,) = office.clock.tick(now + timedelta(days=1))
    assert (begun.schedule, begun.by) == ("daily", "local")
    assert office.clock.tick(now + timedelta(days=1, seconds=1)) == []
    assert office.clock.tick(now + timedelta(days=2)) == []  # it runs still
    client.ask("POST", f"/api/v1/jobs/{begun.id}/abort")
    (again,) = office.clock.tick(now + timedelta(days=3))
    client.ask("POST", f"/api/v1/jobs/{again.id}/abort")
    assert "SCHEDULE" in (office.folder / "audit.log").read_text()


def test_one_process_begins_them(tmp_path: Path) -> None:
    import os

    first = only(tmp_path / "clock")
    assert first is not None
    assert only(tmp_path / "clock") is None
    os.close(first)
    second = only(tmp_path / "clock")
    assert second is not None
    os.close(second)


def test_events_tell_how_jobs_go(client: Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", client.server.address[1], timeout=60)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.readline() == b": still here\n"  # now it looks
    job = client.begin(job="checktable")
    states = []
    while "failed" not in states:
        line = answer.readline().decode()
        if line.startswith("data: "):
            told = json.loads(line.removeprefix("data: "))
            assert told["id"] == job["id"]
            states.append(told["state"])
    connection.close()
    assert states[-1] == "failed"
