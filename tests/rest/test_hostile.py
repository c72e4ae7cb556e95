"""Hostile requests and files cause no failure, stall, loss or disclosure."""

from __future__ import annotations

import errno
import http.client
import json
import logging
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nutch2py import Crawl
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.rest.access.tokens import Role, add_token
from nutch2py.rest.api_routes import OPERATIONS
from nutch2py.rest.context import RestContext
from nutch2py.rest.dispatch.sse import MAX_STREAMS
from nutch2py.rest.endpoints import row_queries
from nutch2py.rest.http_error import HttpError
from nutch2py.rest.job_control import job_processes
from nutch2py.rest.job_control.job_processes import JobSpec
from tests.processes import wait_until
from tests.rest.conftest import Client, running, settings

CHECK = {"job": "checktable"}


def raw(client: Client, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", client.server.address[1], timeout=60)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


# requests


def test_deeply_nested_body_is_rejected(client: Client) -> None:
    for depth in (1000, 100_000):
        nested = "[" * depth + "]" * depth
        for path, body in [
            ("/job/create", f'{{"type":"FETCH","args":{{"a":{nested}}}}}'),
            ("/api/v1/jobs", f'{{"job":"inject","more":{nested}}}'),
            ("/api/v1/schedules", f'{{"cron":{nested}}}'),
        ]:
            status, body = client.request("POST", path, body.encode(), **{"Content-Type": "application/json"})
            assert (status, "error" in body) == (400, True), body


def test_name_with_trailing_newline_is_rejected(client: Client) -> None:
    for job in ({"crawlId": "c\n"}, {"configuration": "default\n"}, {"properties": {"generate.max.count\n": "1"}}):
        assert client.request("POST", "/api/v1/jobs", {**CHECK, **job})[0] == 400
    assert client.request("POST", "/api/v1/jobs", {"job": "fetch", "batchId": "-all\n"})[0] == 400
    assert client.request("POST", "/api/v1/seeds", {"urls": ["http://a.test/\n"]})[0] == 400
    assert client.request("GET", "/api/v1/statistics?crawlId=c%0a")[0] == 400
    assert client.request("POST", "/api/v1/seeds", {"id": "a\n", "urls": []})[0] == 400


@pytest.mark.parametrize("name", ["a%C2%84", "a%20b", "%0D%0A", "a%00", "%F0%9F%98%80", "a" * 300])
def test_path_parameters_follow_schema(client: Client, name: str) -> None:
    assert client.request("POST", "/api/v1/configurations", {"id": "x"})[0] == 201
    for path, method, body in [
        ("/api/v1/configurations/x/properties/{}", "PUT", {"value": "1"}), ("/config/x/{}", "PUT", {"value": "1"}),
        ("/api/v1/configurations/x/properties/{}", "GET", None), ("/config/x/{}", "GET", None),
        ("/job/{}", "GET", None), ("/api/v1/seeds/{}", "DELETE", None),
    ]:  # fmt: skip
        assert client.request(method, path.format(name), body)[0] == 400, path


def test_form_with_many_fields_is_rejected(client: Client) -> None:
    body = b"a=1&" * 100_000
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.request("PUT", "/config/x/generate.max.count", body, **kind)[0] == 400


def test_unsupported_method_returns_allowed_methods(client: Client) -> None:
    allowed: dict[str, set[str]] = {}
    for one in OPERATIONS:
        path = one.path.replace("{id}", "x").replace("{name}", "y")
        allowed.setdefault(path, set()).update({one.method, "OPTIONS"} if one.allows_cors else {one.method})
    for path, methods in allowed.items():
        if path in ("/job/create", "/admin/stop"):  # also an id of another path
            continue
        response = raw(client, "PATCH", path)
        advertised = {word.strip() for word in response.headers["Allow"].split(",")}
        assert (response.status, advertised - {"HEAD"}) == (405, methods), path


def test_head_request_has_no_effect(client: Client, silent: str) -> None:
    started = client.start_job(job="crawl", seeds=[silent])
    for path in (f"/job/{started['id']}/abort", f"/job/{started['id']}/stop", "/admin/stop?force=true"):
        assert raw(client, "HEAD", path).status == 405
    assert client.get(f"/api/v1/jobs/{started['id']}")["state"] == "running"
    assert client.request("GET", f"/job/{started['id']}/abort") == (200, True)


def test_foreign_host_header_is_rejected_on_loopback(client: Client) -> None:
    """DNS rebinding: the host name of another site resolves to this server."""
    for one in OPERATIONS:
        path = one.path.replace("{id}", "x").replace("{name}", "y")
        for host in ("evil.test", "127.0.0.1.evil.test", "localhost.evil.test:8080", "[::1].evil.test", ""):
            assert raw(client, one.method, path, Host=host).status in (400, 421), (one.path, host)
    for path in ("/api/events", "/crawl", "/crawl/events", "/crawl/new", "/", "/search.json", "/api/openapi.json"):
        assert raw(client, "GET", path, Host="evil.test").status == 421
    for name in ("localhost", "127.0.0.1", "[::1]", "127.8.9.10"):
        assert raw(client, "GET", "/health", Host=f"{name}:{client.server.address[1]}").status == 200


def test_path_cannot_inject_log_lines(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nutch2py.rest"):
        client.request("GET", "/api/v1/seeds/a%0aDELETE%20x%0d%1b[2J")
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.isprintable()


def test_event_streams_are_limited_and_released(client: Client) -> None:
    streams = client.server.app.state.authorizer.event_streams
    opened = []
    for number in range(MAX_STREAMS):
        connection = http.client.HTTPConnection("127.0.0.1", client.server.address[1], timeout=60)
        connection.request("GET", "/api/events" if number % 2 else "/crawl/events")
        response = connection.getresponse()
        assert response.status == 200
        opened.append((connection, response))
    assert client.request("GET", "/api/events")[0] == 429
    assert client.request("GET", "/crawl/events")[0] == 429
    assert client.request("GET", "/health")[0] == 200
    for connection, response in opened:
        response.close()
        connection.close()
    for _ in range(40):  # clients that disconnect before the response
        with socket.create_connection(client.server.address) as hasty:
            hasty.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    wait_until(lambda: not streams.open_count)


def test_batch_without_rows_does_not_scan_table(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with Crawl(client.server.app.state.authorizer.context.conf) as crawl:
        crawl.inject([f"http://127.0.0.1/{number}" for number in range(50)])
    assert client.request("POST", "/db", {"batchId": "none"}) == (200, {"values": []})
    read = []
    monkeypatch.setattr(row_queries, "SCAN_SECONDS", -1.0)
    monkeypatch.setattr(row_queries, "row_to_dict", read.append)
    found = row_queries.scan_rows(client.server.app.state.authorizer.context.conf, row_queries.key_range("", "", ""),
                           row_queries.select_fields(["status"]), 10, "none")  # fmt: skip
    assert (found.rows, read) == ([], [])
    assert found.next_key is not None


def test_url_is_a_field_of_rows(client: Client) -> None:
    """Clients of Nutch 2 name it; alone, beside others, in both interfaces."""
    with Crawl(client.server.app.state.authorizer.context.conf) as crawl:
        crawl.inject(["http://127.0.0.1/a"])
    only, both = {"url": "http://127.0.0.1/a"}, {"url": "http://127.0.0.1/a", "status": 0}
    assert client.request("POST", "/db", {"fields": ["url"]}) == (200, {"values": [only]})
    assert client.request("POST", "/db", {"fields": ["status", "url"]}) == (200, {"values": [both]})
    assert client.get("/api/v1/rows?fields=url")["rows"] == [only]
    assert client.get("/api/v1/rows?fields=url,status")["rows"] == [both]
    assert client.request("POST", "/db", {"fields": ["urls"]})[0] == 400


def test_row_without_requested_fields_is_returned(client: Client) -> None:
    with Crawl(client.server.app.state.authorizer.context.conf) as crawl:
        crawl.inject(["http://127.0.0.1/a"])
    assert client.get("/api/v1/rows?fields=status") == {
        "rows": [{"url": "http://127.0.0.1/a", "status": 0}],
        "nextKey": None,
    }


# schedules


@pytest.mark.parametrize("cron", ["* * * * * *", "0 0 0 30 4 *", "@daily", "* * * * *\n*", "0 0 31 2 *", "99 * * * *"])
def test_schedule_each_second_or_never_is_rejected(client: Client, cron: str) -> None:
    assert client.request("POST", "/api/v1/schedules", {"cron": cron, "job": CHECK})[0] == 400


def test_damaged_schedule_does_not_block_others(client: Client) -> None:
    context = client.server.app.state.authorizer.context
    context.scheduler.stop()
    for name in ("a", "b", "c"):
        client.request("POST", "/api/v1/schedules", {"id": name, "cron": "30 4 * * *", "job": CHECK})
    folder = context.schedules.directory
    (folder / "a.json").write_text((folder / "a.json").read_text().replace("30 4", "99 4"))
    (folder / "b.json").write_bytes(b"\x00\xff{")
    (folder / "odd name.json").write_text("{}")
    started = context.scheduler.tick(datetime.now(UTC) + timedelta(days=1))
    assert [child.schedule for child in started] == ["c"]
    listed = client.get("/api/v1/schedules")
    assert [(each["id"], each["nextRun"] is None) for each in listed] == [("a", True), ("c", False)]
    for child in started:
        client.wait_for_state(child.id, "failed")


def test_schedule_is_read_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    context = client.server.app.state.authorizer.context
    context.scheduler.stop()
    client.request("POST", "/api/v1/schedules", {"id": "a", "cron": "30 4 * * *", "job": CHECK})
    assert len(context.schedules.list_with_stamps()) == 1
    monkeypatch.setattr("nutch2py.rest.state_dir.read_json", None)
    assert len(context.schedules.list_with_stamps()) == 1


# tokens


def test_schedule_secrets_are_masked_for_readers(tmp_path: Path) -> None:
    conf = settings(tmp_path, rest_tokens_file=str(tmp_path / "tokens"))
    admin, read = add_token(conf, "root", Role.ADMIN), add_token(conf, "eye", Role.READ)
    secret = {"solr.auth.password": "hidden-one", "solr.server.url": "http://me:hidden-two@localhost/solr"}
    with running(conf) as server:
        body = {"id": "s", "cron": "30 4 * * *", "job": {**CHECK, "properties": secret}}
        assert Client(server, admin).request("POST", "/api/v1/schedules", body)[0] == 201
        eye = Client(server, read)
        for path in ("/api/v1/schedules", "/api/v1/schedules/s"):
            assert "hidden" not in json.dumps(eye.get(path))
        assert "hidden-one" in (tmp_path / "rest" / "schedules" / "s.json").read_text()  # the job needs it


def test_unreadable_token_file_rejects_all_without_path(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    conf = settings(tmp_path, rest_tokens_file=str(file))
    token = add_token(conf, "root", Role.ADMIN)
    good = file.read_text()
    with running(conf) as server:
        client = Client(server, token)
        for damage in ("one two\n", "a king " + "0" * 64 + "\n", None):
            file.write_text(damage) if damage else file.unlink()
            for each in (client, Client(server, "n2p_other")):
                status, body = each.request("GET", "/api/v1/jobs")
                assert (status, str(tmp_path) in str(body)) == (503, False), body
            assert client.request("GET", "/crawl")[0] == 503
        file.write_bytes(b"\x00\xff\xfe\n")
        assert client.request("GET", "/api/v1/jobs")[0] == 503
        file.write_text(good)
        os.utime(file, (1, 1))
        assert client.request("GET", "/api/v1/jobs")[0] == 200
        file.write_text("")
        assert client.request("GET", "/api/v1/jobs")[0] == 401


# the folder of the server


def test_full_disk_is_reported_and_leaves_nothing(client: Client, monkeypatch: pytest.MonkeyPatch, silent: str) -> None:
    client.wait_for_state(client.start_job(**CHECK)["id"], "failed")
    running_one = client.start_job(job="crawl", seeds=[silent])
    context = client.server.app.state.authorizer.context
    before = sorted(context.jobs.jobs_dir.iterdir())

    real = os.open

    def full(path: Any, flags: int, *more: Any, **others: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "No space left on device", str(context.state_dir))
        return real(path, flags, *more, **others)

    def no_text(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device", str(context.state_dir))

    with monkeypatch.context() as disk:
        disk.setattr(os, "open", full)
        disk.setattr(Path, "write_text", no_text)
        for method, path, body in [
            ("POST", "/api/v1/jobs", CHECK),
            ("POST", "/job/create", {"type": "READDB"}),
            ("POST", "/api/v1/seeds", {"urls": []}),
            ("POST", "/api/v1/configurations", {"id": "x"}),
            ("POST", "/api/v1/schedules", {"cron": "30 4 * * *", "job": CHECK}),
        ]:
            status, body = client.request(method, path, body)
            assert (status, "No space left" in body["error"], str(context.state_dir) in body["error"]) == (
                503,
                True,
                False,
            )
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert client.request("POST", "/crawl/new", b"seeds=http%3A%2F%2F192.0.2.1%2F", **form)[0] == 503
        assert client.request("POST", f"/api/v1/jobs/{running_one['id']}/abort")[1]["state"] == "killed"
    assert sorted(context.jobs.jobs_dir.iterdir()) == before
    assert client.request("POST", "/api/v1/seeds", {"urls": []})[0] == 201


def test_job_half_created_by_killed_server_is_ignored(client: Client, tmp_path: Path) -> None:
    done = client.wait_for_state(client.start_job(**CHECK)["id"], "failed")
    jobs = tmp_path / "rest" / "jobs"
    whole = (jobs / done["id"] / "job.json").read_bytes()

    def leave_job(number: int, **files: bytes) -> str:
        folder = jobs / f"{number:013d}-abcdef"
        folder.mkdir()
        for name, data in files.items():
            (folder / name.replace("_", ".")).write_bytes(data)
        return folder.name

    def describe(name: str) -> bytes:
        return whole.replace(done["id"].encode(), name.encode())

    nothing = [
        leave_job(1),
        leave_job(2, job_json=b""),
        leave_job(3, job_json=whole[:40]),
        leave_job(4, seeds_txt=b"http://a/\n"),
    ]
    names = [f"{number:013d}-abcdef" for number in range(5, 10)]
    leave_job(5, job_json=describe(names[0]))
    leave_job(6, job_json=describe(names[1]), lock=b"")
    leave_job(7, job_json=describe(names[2]), lock=b"", exit=b"\xff\xfe", pid=b"\xff", session=b"x", output=b"\xff")
    leave_job(8, job_json=describe(names[3]), lock=b"", exit=b"", asked=b"\x00")
    leave_job(9, job_json=describe(names[4]), lock=b"", exit=b"9" * 5000)
    (jobs / "0000000000010-abcdef").symlink_to("/etc")
    (jobs / "0000000000011-abcdef").write_text("a file")
    found = {job["id"]: job["state"] for job in client.get("/api/v1/jobs")}
    assert found == {done["id"]: "failed", **dict.fromkeys(names, "killed")}
    for name in nothing:
        assert client.request("GET", f"/api/v1/jobs/{name}")[0] == 404
        os.utime(jobs / name, (1, 1))
    for name in names:
        for path in (f"/api/v1/jobs/{name}", f"/api/v1/jobs/{name}/output", f"/job/{name}", f"/job/{name}/stop"):
            assert client.request("GET", path)[0] == 200
        assert client.request("POST", f"/api/v1/jobs/{name}/abort")[0] == 200
    assert client.request("GET", "/crawl/jobs")[0] in (200, 404)
    client.wait_for_state(client.start_job(**CHECK)["id"], "failed")
    assert not any((jobs / name).exists() for name in nothing)
    assert Path("/etc/passwd").exists()


def test_job_is_invisible_before_it_runs(tmp_path: Path, silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its lock it would count as killed: one more job could start, and its folder could be deleted."""
    first, second = (RestContext(settings(tmp_path), is_local=True).jobs for _ in range(2))
    real, seen = job_processes.write_json, []

    def inspect(*args: Any) -> None:
        real(*args)
        seen.append([child.state for child in second.all()])

    monkeypatch.setattr(job_processes, "write_json", inspect)
    job = first.start(
        JobSpec(id="", job="crawl", crawl_id="", configuration="", command_args=["crawl", silent]), Configuration.load()
    )
    try:
        assert [[state.value for state in states] for states in seen] == [[], ["running"]]  # configuration, job.json
        assert second.get(job.id).state == "running"
    finally:
        assert second.abort(job.id).state == "killed"


@pytest.mark.parametrize("name", ["lock", "exit", "asked", "job.json"])
def test_system_error_does_not_end_job(tmp_path: Path, silent: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A server that could briefly open no file would record a job as killed, and start one more."""
    jobs = RestContext(settings(tmp_path, rest_jobs_running="1"), is_local=True).jobs
    spec = JobSpec(id="", job="crawl", crawl_id="", configuration="", command_args=["crawl", silent])
    job = jobs.start(spec, Configuration.load())
    whole = os.open, Path.read_text, Path.read_bytes

    def without_room(real: Any) -> Any:
        def opened(path: Any, *args: Any, **more: Any) -> Any:
            if Path(path).name == name:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
            return real(path, *args, **more)

        return opened

    with monkeypatch.context() as patched:
        for owner, member, real in zip((os, Path, Path), ("open", "read_text", "read_bytes"), whole, strict=True):
            patched.setattr(owner, member, without_room(real))
        for ask in (lambda: jobs.get(job.id), jobs.all, lambda: jobs.start(spec, Configuration.load())):
            with suppress(OSError, HttpError):
                ask()
    try:
        assert jobs.get(job.id).state == "running"
        assert [each.id for each in jobs.all()] == [job.id]
    finally:
        assert jobs.abort(job.id).state == "killed"


def test_two_servers_share_one_folder(tmp_path: Path, silent: str) -> None:
    conf = settings(tmp_path, rest_jobs_running="3", rest_jobs_keep="1", rest_requests_per_second="0")
    with running(conf) as first, running(conf) as second:
        clients = [Client(first), Client(second)]
        endless = [{"job": "crawl", "seeds": [silent], "crawlId": f"c{n}"} for n in range(6)]
        with ThreadPoolExecutor(4) as pool:
            started = list(pool.map(lambda n: clients[n % 2].request("POST", "/api/v1/jobs", endless[n]), range(6)))
        assert sorted(status for status, _ in started) == [201] * 3 + [429] * 3
        jobs = [job["id"] for status, job in started if status == 201]
        # each stops and aborts the jobs that the other has started
        other = {job["id"]: clients[1 - n % 2] for n, (status, job) in enumerate(started) if status == 201}
        assert other[jobs[0]].request("POST", f"/api/v1/jobs/{jobs[0]}/abort")[1]["state"] == "killed"
        for job in jobs[1:]:
            assert other[job].request("POST", f"/api/v1/jobs/{job}/stop")[0] == 200
            other[job].wait_for_state(job, "stopped")
        with ThreadPoolExecutor(4) as pool:  # one reads while another deletes
            started = list(pool.map(lambda n: clients[n % 2].request("POST", "/api/v1/jobs", CHECK), range(3)))
            seen = list(pool.map(lambda n: clients[n % 2].request("GET", "/api/v1/jobs")[0], range(40)))
        assert {status for status, _ in started} <= {201, 429}
        assert {*seen} == {200}
        wait_until(lambda: all(job["state"] != "running" for job in clients[0].get("/api/v1/jobs")))


def test_world_accessible_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "rest").mkdir()
    (tmp_path / "rest").chmod(0o777)
    with pytest.raises(ConfigurationError, match="world-writable"):
        RestContext(settings(tmp_path), is_local=True)
