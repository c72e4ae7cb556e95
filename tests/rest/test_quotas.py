"""What requests store has a quota in number and bytes, and every list is paged."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nutch2py.rest.context import RestContext
from nutch2py.rest.http_error import HttpError
from nutch2py.rest.job_control import job_processes
from nutch2py.rest.job_control.job_processes import JobProcess, JobSpec
from tests.rest.conftest import Client, running, settings

KINDS = ("seeds", "configurations", "schedules")
UNLIMITED = {"rest_requests_per_second": "0"}


def item(kind: str, item_id: str, characters: int) -> dict[str, Any]:
    """Return an item of a kind with about this number of characters."""
    urls = [f"http://a.test/{'a' * 1000}" for _ in range(characters // 1020)]
    if kind == "seeds":
        return {"id": item_id, "urls": urls}
    if kind == "configurations":
        properties = {f"db.x.{number}": "a" * 1000 for number in range(characters // 1020)}
        return {"id": item_id, "properties": properties, "force": True}
    return {
        "id": item_id,
        "cron": "30 4 * * *",
        "job": {"job": "crawl", "crawlId": "c", "seeds": urls or ["http://a/"]},
    }


def store(client: Client, kind: str, item_id: str, characters: int = 0) -> int:
    return client.request("POST", f"/api/v1/{kind}", item(kind, item_id, characters))[0]


@pytest.mark.parametrize("kind", KINDS)
def test_number_of_stored_items_is_limited(tmp_path: Path, kind: str) -> None:
    with running(settings(tmp_path, rest_stored_items="5", **UNLIMITED)) as server:
        client = Client(server)
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda number: store(client, kind, f"x{number}"), range(20)))
        assert sorted(statuses) == [201] * 5 + [409] * 15
        kept = [path.stem for path in (tmp_path / "rest" / kind).glob("*.json")]
        assert len(kept) == 5
        assert store(client, kind, kept[0]) == 201  # replaced
        assert client.request("DELETE", f"/api/v1/{kind}/{kept[0]}")[0] == 200
        assert store(client, kind, "another") == 201


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_stored_items_are_limited(tmp_path: Path, kind: str) -> None:
    with running(settings(tmp_path, rest_stored_bytes="500000", **UNLIMITED)) as server:
        client = Client(server)
        with ThreadPoolExecutor(4) as pool:
            statuses = list(pool.map(lambda number: store(client, kind, f"x{number}", 100_000), range(12)))
        assert set(statuses) == {201, 507}
        files = [*(tmp_path / "rest" / kind).glob("*.json")]
        assert 300_000 < sum(path.stat().st_size for path in files) <= 500_000
        assert store(client, kind, files[0].stem, 90_000) == 201  # smaller than before
        assert store(client, kind, files[0].stem, 400_000) == 507
        problem = client.request("POST", f"/api/v1/{kind}", item(kind, "y", 400_000))[1]
        assert "rest.stored.bytes" in problem["detail"]


@pytest.mark.parametrize("kind", KINDS)
def test_lists_are_paged_and_bounded_in_bytes(tmp_path: Path, kind: str) -> None:
    with running(settings(tmp_path, **UNLIMITED)) as server:
        client = Client(server)
        for number in range(14):
            assert store(client, kind, f"x{number:02}", 900_000) == 201
        ids, after = [], ""
        while True:
            page = client.get(f"/api/v1/{kind}?after={after}&limit=12")
            if not page:
                break
            assert len(page) <= 12
            assert len(json.dumps(page)) < 10_000_000
            ids += [each if isinstance(each, str) else each["id"] for each in page]
            after = ids[-1]
        assert [each for each in ids if each != "default"] == [f"x{number:02}" for number in range(14)]
        assert client.request("GET", f"/api/v1/{kind}?limit=1001")[0] == 400
        assert client.request("GET", f"/api/v1/{kind}?after=x13")[1] == []


def test_lists_of_nutch_paths_are_paged(client: Client) -> None:
    for number in range(3):
        store(client, "configurations", f"x{number}")
    assert client.get("/config?limit=2") == ["default", "x0"]
    assert client.get("/config?after=x0") == ["x1", "x2"]
    assert client.get("/config/?after=default&limit=1") == ["x0"]
    assert client.get("/admin")["configuration"] == ["default", "x0", "x1", "x2"]
    jobs = [client.start_job(job="checktable", crawlId="c")["id"] for _ in range(3)]
    assert [job["id"] for job in client.get("/job?limit=2")] == jobs[:0:-1]
    assert [job["id"] for job in client.get(f"/job?crawlId=c&before={jobs[1]}")] == jobs[:1]
    assert client.request("GET", "/api/v1/batches?crawlId=none&limit=5")[0] == 404


def test_configuration_cannot_grow_by_many_small_requests(tmp_path: Path) -> None:
    with running(settings(tmp_path, rest_body_max_bytes="10000", **UNLIMITED)) as server:
        client = Client(server)
        store(client, "configurations", "x")
        statuses = {
            client.request("PUT", f"/api/v1/configurations/x/properties/db.x.{number}", {"value": "a" * 5000})[0]
            for number in range(6)
        }
        assert statuses == {200, 413}
        assert (tmp_path / "rest" / "configurations" / "x.json").stat().st_size < 15_000


def test_job_of_nutch_path_keeps_few_arguments(client: Client) -> None:
    args = {f"{number:03}{'n' * 1000}": "v" * 1000 for number in range(300)}
    status, job_id = client.request("POST", "/job/create", {"type": "READDB", "crawlId": "c", "args": args})
    assert status == 200
    assert len(json.dumps(client.get(f"/job/{job_id}")["args"])) < 50 * 420


def test_schedules_in_memory_hold_no_job(tmp_path: Path) -> None:
    with running(settings(tmp_path)) as server:
        client = Client(server)
        context = server.app.state.authorizer.context
        context.scheduler.stop()
        assert store(client, "schedules", "x", 500_000) == 201
        ((timing, _),) = context.schedules.list_with_stamps()
        assert not hasattr(timing, "job")
        (started,) = context.scheduler.tick(datetime.now(UTC) + timedelta(days=1))
        assert (started.schedule, started.crawl_id) == ("x", "c")
        context.jobs.abort(started.id)


def test_folders_of_jobs_are_limited_in_bytes(tmp_path: Path, silent: str) -> None:
    conf = settings(tmp_path, rest_jobs_bytes="600000")
    context = RestContext(conf, is_local=True)
    spec = JobSpec(id="", job="checktable", crawl_id="c", configuration="default", command_args=["checktable"])
    ended = []
    for _ in range(6):
        job = context.jobs.start(spec, conf, ["http://a.test/" + "a" * 4000] * 25)
        context.jobs.abort(job.id)
        ended.append(job.id)
        assert not context.jobs.get(job.id).state.is_alive
    context.jobs.prune()
    left = [job.id for job in context.jobs.all()]
    assert 3 <= len(left) < 6
    assert left == ended[::-1][: len(left)]  # the newest
    crawl = JobSpec(
        id="", job="crawl", crawl_id="c", configuration="default", command_args=["crawl", "seeds.txt", "-depth", "1"]
    )
    endless = context.jobs.start(crawl, conf, [silent])
    try:
        (context.jobs.jobs_dir / endless.id / "much").write_bytes(b"x" * 600_000)
        with pytest.raises(HttpError, match=r"rest\.jobs\.bytes") as raised:
            context.jobs.start(spec, conf)
        assert raised.value.status == 507
    finally:
        context.jobs.abort(endless.id)


TALK = r"""
import os, sys, time
size, ended, code = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdout.write("first line\n")
for at in range(0, size, 100):
    os.write(1, b"y" * 99 + b"\n")
while ended and not os.path.exists(ended):
    time.sleep(0.01)
sys.stderr.write("nutch2py: the last line\n")
sys.exit(code)
"""
"""Prints a number of bytes, waits for a file unless its name is "", and ends with a line of error."""


def talk(context: RestContext, monkeypatch: pytest.MonkeyPatch, size: int, ended: str = "", code: int = 3) -> str:
    """Start a job that prints ``size`` bytes; return its id."""
    command = [sys.executable, "-c", TALK, str(size), ended, str(code)]
    spec = JobSpec(id="", job="talk", crawl_id="", configuration="default", command_args=command)
    with monkeypatch.context() as patch:
        patch.setattr(job_processes, "job_command", lambda args, _: args)
        return context.jobs.start(spec, context.conf).id


def wait_for_end(context: RestContext, job_id: str) -> JobProcess:
    deadline = time.monotonic() + 60
    while (job := context.jobs.get(job_id)).state.is_alive:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return job


@pytest.mark.parametrize("limit", [3_000, 20_000, 1_000_000])
@pytest.mark.parametrize("share", [0.1, 1.5, 20])
def test_output_of_job_is_limited_and_keeps_start_and_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, share: float
) -> None:
    context = RestContext(settings(tmp_path, rest_job_output_bytes=str(limit)), is_local=True)
    job = wait_for_end(context, talk(context, monkeypatch, int(limit * share)))
    assert (job.state, job.exit_code, job.message) == ("failed", 3, "the last line")
    data, size = context.jobs.read_output(job.id, 0, 1 << 20)
    assert size <= limit
    assert data.startswith(b"first line\n")
    assert data.endswith(b"nutch2py: the last line\n")
    assert (b"rest.job.output.bytes" in data) == (share > 1)


def test_output_of_running_job_stops_growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = settings(tmp_path, rest_job_output_bytes="20000", rest_jobs_bytes="10000000")
    context = RestContext(conf, is_local=True)
    first = talk(context, monkeypatch, 5_000_000, str(tmp_path / "end"))
    deadline = time.monotonic() + 60
    while b"rest.job.output.bytes" not in context.jobs.read_output(first, 0, 1 << 20)[0]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert sum(path.lstat().st_size for path in (context.jobs.jobs_dir / first).rglob("*")) < 40_000
    reopened = RestContext(conf, is_local=True)  # the limit does not depend on the server that began the job
    assert reopened.jobs.get(first).state == "running"
    assert reopened.jobs.read_output(first, 0, 1 << 20)[1] <= 20_000
    (tmp_path / "end").touch()
    assert wait_for_end(reopened, first).message == "the last line"


def test_output_of_running_job_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = RestContext(settings(tmp_path), is_local=True)
    job_id = talk(context, monkeypatch, 100, str(tmp_path / "end"))
    deadline = time.monotonic() + 60
    while not context.jobs.read_output(job_id, 0, 1 << 20)[0].endswith(b"y\n"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert context.jobs.get(job_id).state == "running"
    (tmp_path / "end").touch()
    wait_for_end(context, job_id)


@pytest.mark.parametrize("how", ["stop", "abort"])
def test_stopped_job_of_long_output_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    context = RestContext(settings(tmp_path, rest_job_output_bytes="5000"), is_local=True)
    job_id = talk(context, monkeypatch, 1_000_000, str(tmp_path / "never"))
    getattr(context.jobs, how)(job_id)
    job = wait_for_end(context, job_id)
    assert job.state == {"stop": "stopped", "abort": "killed"}[how]
    assert context.jobs.read_output(job_id, 0, 1 << 20)[1] <= 5_000


def test_outputs_that_running_jobs_may_write_are_reserved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = settings(tmp_path, rest_job_output_bytes="100000", rest_jobs_bytes="300000", rest_jobs_running="3")
    context = RestContext(conf, is_local=True)
    held = [talk(context, monkeypatch, 0, str(tmp_path / "end")) for _ in range(2)]
    with pytest.raises(HttpError, match=r"rest\.job\.output\.bytes") as raised:  # with its configuration it is more
        talk(context, monkeypatch, 0)
    assert raised.value.status == 507
    (tmp_path / "end").touch()
    for job_id in held:
        wait_for_end(context, job_id)
    wait_for_end(context, talk(context, monkeypatch, 0))


def test_output_is_limited_by_share_of_all_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = settings(tmp_path, rest_jobs_bytes="400000", rest_jobs_running="4")
    context = RestContext(conf, is_local=True)
    job = wait_for_end(context, talk(context, monkeypatch, 500_000))
    assert context.jobs.read_output(job.id, 0, 1 << 20)[1] <= 100_000
