"""Schedules start each job once, and report missed runs."""

from __future__ import annotations

import http.client
import json
import os
import time
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from nutch2py.rest.http_error import HttpError
from nutch2py.rest.job_control.schedules import NewSchedule, Scheduler, ScheduleStore
from nutch2py.rest.state_dir import StoreQuota
from nutch2py.support.file_locks import try_file_lock
from tests.processes import wait_until
from tests.rest.conftest import Client, running, settings

DAILY = {"id": "daily", "cron": "30 4 * * *", "job": {"job": "checktable", "crawlId": "c"}}


def test_schedules_survive_restart(tmp_path: Path) -> None:
    with running(settings(tmp_path)) as first:
        status, stored = Client(first).request("POST", "/api/v1/schedules", DAILY)
        assert (status, datetime.fromtimestamp(stored["nextRun"] / 1000, UTC).strftime("%H:%M")) == (201, "04:30")
    with running(settings(tmp_path)) as second:
        client = Client(second)
        assert [each["id"] for each in client.get("/api/v1/schedules")] == ["daily"]
        assert client.get("/api/v1/schedules/daily")["job"]["crawlId"] == "c"
        assert client.request("DELETE", "/api/v1/schedules/daily")[0] == 200
        assert client.request("GET", "/api/v1/schedules/daily")[0] == 404


@pytest.mark.parametrize("cron", ["", "x", "* * * *", "61 * * * *", "0 0 30 2 *", "* " * 99])
def test_invalid_cron_time_is_rejected(client: Client, cron: str) -> None:
    assert client.request("POST", "/api/v1/schedules", {**DAILY, "cron": cron})[0] == 400


def test_scheduled_job_starts_on_time_and_not_twice(client: Client, silent: str) -> None:
    context = client.server.app.state.authorizer.context
    context.scheduler.stop()
    endless = {"job": "crawl", "seeds": [silent], "crawlId": "c"}
    client.request("POST", "/api/v1/schedules", {**DAILY, "job": endless})
    client.request("POST", "/api/v1/schedules", {**DAILY, "id": "off", "enabled": False})
    now = datetime.now(UTC)
    assert context.scheduler.tick(now) == []
    (started,) = context.scheduler.tick(now + timedelta(days=1))
    assert (started.schedule, started.requested_by) == ("daily", "local")
    assert context.scheduler.tick(now + timedelta(days=1, seconds=1)) == []
    assert context.scheduler.tick(now + timedelta(days=2)) == []  # it is still running
    client.request("POST", f"/api/v1/jobs/{started.id}/abort")
    (again,) = context.scheduler.tick(now + timedelta(days=3))
    client.request("POST", f"/api/v1/jobs/{again.id}/abort")
    assert "SCHEDULE" in (context.state_dir / "audit.log").read_text()


def test_only_one_process_starts_schedules(tmp_path: Path) -> None:
    first = try_file_lock(tmp_path / "clock")
    assert first is not None
    assert try_file_lock(tmp_path / "clock") is None
    os.close(first)
    second = try_file_lock(tmp_path / "clock")
    assert second is not None
    os.close(second)


def test_job_events_are_streamed(client: Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", client.server.address[1], timeout=60)
    connection.request("GET", "/api/events")
    response = connection.getresponse()
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert response.readline() == b": keep-alive\n"  # the stream is open
    job = client.start_job(job="checktable")
    states = []
    while "failed" not in states:
        line = response.readline().decode()
        if line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            assert event["id"] == job["id"]
            states.append(event["state"])
    connection.close()
    assert states[-1] == "failed"


# the clock


class ScheduleHarness:
    """A scheduler over a folder with recorded jobs instead of processes."""

    def __init__(self, folder: Path) -> None:
        self.schedules = ScheduleStore(folder, StoreQuota())
        self.jobs: list[SimpleNamespace] = []
        self.missed: list[str] = []
        self.moment = datetime.now(UTC)
        self.full = False
        self.restart()

    def restart(self) -> None:
        """Restart the server."""
        jobs = SimpleNamespace(all=lambda: self.jobs)
        self.clock = Scheduler(self.schedules, jobs, self.start, lambda _, why: self.missed.append(why))  # type: ignore[arg-type]

    def start(self, _: object, __: str, schedule: str) -> Any:
        if self.full:
            raise HttpError(HTTPStatus.TOO_MANY_REQUESTS, "8 jobs are running")
        job = SimpleNamespace(schedule=schedule, start_time=round(self.moment.timestamp() * 1000),
                              state=SimpleNamespace(is_alive=False))  # fmt: skip
        self.jobs.append(job)
        return job

    def store(self, cron: str, **more: Any) -> None:
        job = {"job": "checktable", "crawlId": "c"}
        new = msgspec.convert({"id": "s", "cron": cron, "job": job, **more}, NewSchedule)
        self.schedules.store(new, "me")
        os.utime(self.schedules.directory / "s.json", (self.moment.timestamp(),) * 2)

    def tick(self, moment: datetime) -> int:
        self.moment = moment
        return len(self.clock.tick(moment))


NOON = datetime(2026, 10, 25, 12, 0, 30, tzinfo=UTC)
"""The day on which summer time ends in Europe, which has 25 hours there."""


@pytest.fixture
def harness(tmp_path: Path) -> ScheduleHarness:
    made = ScheduleHarness(tmp_path)
    made.moment = NOON
    made.clock.take_over(NOON, NOON)
    return made


def test_schedule_stored_after_its_time_waits_for_next(harness: ScheduleHarness) -> None:
    harness.moment = NOON + timedelta(hours=1)
    harness.store("10 12 * * *")
    assert harness.tick(NOON + timedelta(hours=1, seconds=1)) == 0
    assert harness.tick(NOON + timedelta(days=1, hours=1)) == 1
    harness.moment = NOON + timedelta(days=1, hours=3)
    harness.store("0 14 * * *")  # changed to a time that is past, too
    assert harness.tick(NOON + timedelta(days=1, hours=3, seconds=1)) == 0
    assert harness.tick(NOON + timedelta(days=2, hours=3)) == 1
    assert harness.missed == []


def test_missed_run_is_reported_and_not_repeated(harness: ScheduleHarness) -> None:
    harness.store("0 * * * *")
    assert harness.tick(NOON + timedelta(hours=1)) == 1
    harness.restart()
    harness.clock.take_over(NOON + timedelta(hours=1), NOON + timedelta(hours=5, minutes=20))
    assert harness.tick(NOON + timedelta(hours=5, minutes=20)) == 0
    assert harness.missed == ["missed 4 runs since 2026-10-25 14:00Z: no server was running"]
    assert harness.tick(NOON + timedelta(hours=6)) == 1


def test_disabled_schedule_has_no_missed_run(harness: ScheduleHarness) -> None:
    harness.store("0 * * * *", enabled=False)
    harness.clock.take_over(NOON, NOON + timedelta(days=9))
    harness.store("* * * * *")
    harness.clock.take_over(NOON, NOON + timedelta(days=400))
    assert harness.missed == ["missed 1000 or more runs since 2026-10-25 12:01Z: no server was running"]


def test_takeover_starts_due_job_once(harness: ScheduleHarness) -> None:
    """Another server has run since noon: it started the job of 13:00, or died before."""
    harness.store("0 * * * *")
    for seconds, began in ((40, True), (25, False)):
        harness.restart()
        harness.jobs.clear()
        if began:
            harness.start(None, "", "s")
            harness.jobs[0].start_time = round((NOON + timedelta(minutes=59, seconds=31)).timestamp() * 1000)
        moment = NOON + timedelta(minutes=59, seconds=50)  # 13:00:20
        harness.clock.take_over(moment - timedelta(seconds=seconds), moment)
        assert harness.tick(moment) == (0 if began else 1)
        assert harness.tick(moment + timedelta(seconds=1)) == 0
    assert harness.missed == []


def test_clock_set_back_starts_nothing_twice(harness: ScheduleHarness) -> None:
    harness.store("0 * * * *")
    assert harness.tick(NOON + timedelta(hours=1)) == 1
    assert [harness.tick(NOON + timedelta(minutes=minutes)) for minutes in (5, 30, 60, 90)] == [0] * 4
    assert harness.tick(NOON + timedelta(hours=2)) == 1
    ahead = NOON + timedelta(days=3000)  # the clock was wrong when the machine started
    harness.tick(ahead)
    harness.jobs.clear()  # their times are of the wrong clock
    assert harness.tick(NOON + timedelta(hours=2, minutes=1)) == 0
    assert harness.tick(NOON + timedelta(hours=3)) == 1


def test_schedule_times_are_utc_across_dst(harness: ScheduleHarness) -> None:
    """Each hour of the long and of the short day has its job once."""
    harness.store("30 * * * *")
    for day in (datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2027, 3, 27, 12, tzinfo=UTC)):
        harness.restart()
        harness.clock.take_over(day, day)
        assert sum(harness.tick(day + timedelta(minutes=minute)) for minute in range(24 * 60)) == 24


def test_job_limit_and_running_job_are_reported(harness: ScheduleHarness) -> None:
    harness.store("0 * * * *")
    harness.full = True
    assert harness.tick(NOON + timedelta(hours=1)) == 0
    harness.full = False
    assert harness.tick(NOON + timedelta(hours=2)) == 1
    harness.jobs[0].state.is_alive = True
    assert harness.tick(NOON + timedelta(hours=3)) == 0
    assert harness.missed == ["8 jobs are running", "the last job of the schedule is still running"]


def test_server_reads_last_check_from_folder(tmp_path: Path) -> None:
    conf = settings(tmp_path)
    with running(conf) as first:
        Client(first).request("POST", "/api/v1/schedules", {**DAILY, "cron": "* * * * *", "id": "s"})
    folder = tmp_path / "rest" / "schedules"
    hours_ago = time.time() - 7200
    for name in (".clock", "s.json"):
        (folder / name).touch()
        os.utime(folder / name, (hours_ago, hours_ago))
    audit = tmp_path / "rest" / "audit.log"
    with running(conf):
        wait_until(lambda: "no server was running" in audit.read_text())
