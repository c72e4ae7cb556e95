"""Authorization: tokens, roles, rate limits, cross-site requests, and the audit log."""

from __future__ import annotations

import base64
import errno
import http.client
import json
import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.rest.access import audit_log
from nutch2py.rest.access.allowed_properties import RUN_ROLE_PROPERTIES
from nutch2py.rest.access.audit_log import AuditLog
from nutch2py.rest.access.tokens import Role
from nutch2py.rest.api_routes import OPERATIONS
from tests.rest.conftest import Client, running, settings

ROLES = ("search", "read", "run", "admin")


def token(tokens: Path, name: str, role: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["token", name, "-role", role, "-D", f"rest.tokens.file={tokens}"]) == 0
    return capsys.readouterr().out.strip()


@pytest.fixture
def clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, Client]]:
    """Yield a client of each role, and one without a token."""
    tokens = tmp_path / "tokens"
    made = {role: token(tokens, f"my-{role}", role, capsys) for role in ROLES}
    with running(settings(tmp_path, rest_tokens_file=str(tokens), ftp_password="hidden-one")) as server:
        yield {"none": Client(server), **{role: Client(server, each) for role, each in made.items()}}


def paths() -> list[tuple[str, str, Role, bool]]:
    return [
        (one.method, one.path.replace("{id}", "x").replace("{name}", "generate.max.count"), one.role, one.modifies)
        for one in OPERATIONS
    ]


def test_changing_request_requires_more_than_read_role() -> None:
    assert all(role > Role.READ for _, _, role, changes in paths() if changes)
    # Nutch 2 requests rows by POST, and the search page reports clicks by a token of its response
    assert [(method, path) for method, path, _, changes in paths() if method != "GET" and not changes] == [
        ("POST", "/api/v1/clicks"),
        ("POST", "/db"),
    ]


def held(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "audit.log"}


def test_read_role_changes_nothing(clients: dict[str, Client], tmp_path: Path) -> None:
    clients["run"].request("POST", "/api/v1/seeds", {"id": "x", "urls": ["http://a/"]})
    clients["run"].request("POST", "/api/v1/configurations", {"id": "x"})
    before = held(tmp_path)
    bodies: list[Any] = [{"job": "inject", "seeds": ["http://a.test/"]}, {"id": "x", "force": True}, {"value": "1"}, {}]
    for method, path, role, changes in paths():
        for body in bodies if method in ("POST", "PUT") else [None]:
            # an anonymous request may lack a query
            assert clients["none"].request(method, path, body)[0] in ((401,) if role > Role.SEARCH else (200, 400))
            status, _ = clients["read"].request(method, path, body)
            assert (status == 403) == (changes or role > Role.READ), (method, path, body, status)
            assert status < 500
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for caller, expected in (("none", 401), ("read", 403)):
        for path in ("/crawl/new", "/crawl/stop"):
            assert clients[caller].request("POST", path, b"seeds=http%3A%2F%2Fa.test%2F&id=x", **form)[0] == expected
    assert held(tmp_path) == before


def status_of(client: Client, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> int:
    """Return the status of a response, which may have no body."""
    with closing(http.client.HTTPConnection("127.0.0.1", client.server.address[1], timeout=60)) as connection:
        token = {"Authorization": f"Bearer {client.token}"} if client.token else {}
        connection.request(method, path, body, {**token, **headers})
        return connection.getresponse().status


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def test_no_path_allows_action_with_read_role(clients: dict[str, Client], tmp_path: Path) -> None:
    """Checks all routes of the application and the state of its folder, so that new routes are covered."""
    app = clients["none"].server.app
    context, stopped = app.state.authorizer.context, list[int]()
    context.stop_server = lambda: stopped.append(1)
    context.conf.set("rest.requests.per.second", "0")
    app.state.authorizer.rate_limiter.per_second = 0.0
    for kind, body in (("seeds", {"urls": ["http://a/"]}), ("configurations", {})):
        clients["run"].request("POST", f"/api/v1/{kind}", {"id": "x", **body})
    crawl = {"job": "crawl", "seeds": ["http://192.0.2.1/"]}
    job = clients["run"].start_job(**crawl)
    clients["run"].request("POST", "/api/v1/schedules", {"id": "x", "cron": "30 4 * * *", "job": crawl})
    context.scheduler.stop()
    clients["run"].request("POST", f"/api/v1/jobs/{job['id']}/abort")
    clients["run"].wait_for_state(job["id"], "killed")
    before, form = held(tmp_path), {"Content-Type": "application/x-www-form-urlencoded"}
    texts = [json.dumps(crawl).encode(), b'{"id": "y", "force": true}', b'{"value": "1"}', b'{"type": "INJECT"}']
    bodies: list[tuple[bytes, dict[str, str]]] = [(text, {"Content-Type": "application/json"}) for text in texts]
    bodies.append((b"seeds=http%3A%2F%2Fa.test%2F&id=" + job["id"].encode(), form))
    requested = set()
    for route in app.routes:
        for given in (job["id"], "x") if "{id" in route.path else ("",):
            path = re.sub(r"{id[^}]*}", given, re.sub(r"{name[^}]*}", "generate.max.count", route.path))
            assert "{" not in path, "give a value for this parameter"
            for method in METHODS:
                if path.endswith("/events") and method == "GET":  # endless responses
                    continue
                for body, headers in bodies if method in ("POST", "PUT", "PATCH") else [(None, {})]:
                    for role in ("none", "read"):
                        status = status_of(clients[role], method, path, body, headers)
                        assert status < 500 or status == 503, (method, path, status)  # no index exists
                        requested.add((path, method, role))
    assert {path for path, _, _ in requested} >= {"/crawl/new", "/crawl/stop", "/admin/stop", "/job/create", "/db"}
    assert stopped == []
    assert held(tmp_path) == before
    assert [each["id"] for each in clients["read"].get("/api/v1/jobs")] == [job["id"]]


def test_roles_follow_tokens(clients: dict[str, Client]) -> None:
    for role in ROLES:
        assert clients[role].request("GET", "/api/v1/jobs")[0] == (403 if role == "search" else 200)
    path = "/api/v1/configurations"
    for name, value, status in [("generate.max.count", "5", 201), ("plugin.folders", "/tmp", 403),
                                ("generate.min.score", "${env.HOME}", 403)]:  # fmt: skip
        body = {"id": "mine", "force": True, "properties": {name: value}}
        assert clients["read"].request("POST", path, body)[0] == 403
        assert clients["run"].request("POST", path, body)[0] == status
        if "$" not in value:
            assert clients["admin"].request("POST", path, body)[0] == 201
    assert clients["run"].request("PUT", f"{path}/mine/properties/plugin.includes", {"value": "x"})[0] == 403
    job = {"job": "checktable", "properties": {"storage.data.store": "embedded:/tmp/elsewhere"}}
    assert clients["run"].request("POST", "/api/v1/jobs", job)[0] == 403


def test_token_is_accepted_as_basic_auth_password(clients: dict[str, Client]) -> None:
    status, _ = clients["none"].request("GET", "/api/v1/jobs")
    assert status == 401
    word = base64.b64encode(f"anybody:{clients['read'].token}".encode()).decode()
    assert clients["none"].request("GET", "/api/v1/jobs", Authorization=f"Basic {word}")[0] == 200
    for wrong in ("Basic !", "Basic YQ==", "Bearer x", "Digest y", "Bearer"):
        assert clients["none"].request("GET", "/api/v1/jobs", Authorization=wrong)[0] == 401


def test_secrets_are_masked_and_tokens_not_stored(clients: dict[str, Client], tmp_path: Path) -> None:
    shown = clients["admin"].get("/api/v1/configurations/default")
    assert shown["properties"]["ftp.password"] == "********"
    assert clients["admin"].get("/api/v1/configurations/default/properties/ftp.password")["value"] == "********"
    text = (tmp_path / "tokens").read_text()
    assert not any(client.token and client.token in text for client in clients.values())
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0


def test_removed_token_is_rejected(
    clients: dict[str, Client], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option = f"rest.tokens.file={tmp_path / 'tokens'}"
    assert main(["token", "my-run", "-remove", "-D", option]) == 0
    assert clients["run"].request("GET", "/api/v1/jobs")[0] == 401
    assert main(["token", "my-run", "-remove", "-D", option]) == 3
    assert "token my-run not found" in capsys.readouterr().err
    assert main(["token", "a/b", "-D", option]) == 3
    assert main(["token", "ab"]) == 2


def test_tokens_replaced_during_requests_work(clients: dict[str, Client], tmp_path: Path) -> None:
    """A token of both files is always accepted, a token of neither file never."""
    clients["read"].server.app.state.authorizer.rate_limiter.per_second = 0.0
    file = tmp_path / "tokens"
    lines = file.read_text().splitlines(keepends=True)
    texts = ["".join(line for line in lines if "my-run" not in line), "# another\n" + "".join(lines)]
    ended = threading.Event()

    def request_often(role: str) -> set[int]:
        seen = set()
        while not ended.is_set():
            seen.add(clients[role].request("GET", "/api/v1/jobs")[0])
        return seen

    with ThreadPoolExecutor(3) as pool:
        statuses = {role: pool.submit(request_often, role) for role in ("read", "run", "none")}
        for number in range(60):
            part = tmp_path / "part"
            part.write_text(texts[number % 2])
            part.replace(file)
            ended.wait(0.005)
        ended.set()
    assert statuses["read"].result() == {200}
    assert statuses["none"].result() == {401}
    assert statuses["run"].result() == {200, 401}
    assert clients["run"].request("GET", "/api/v1/jobs")[0] == 200
    file.write_text(texts[0])
    assert clients["run"].request("GET", "/api/v1/jobs")[0] == 401


def test_audit_log_records_user_and_action(clients: dict[str, Client], tmp_path: Path) -> None:
    clients["run"].request("POST", "/api/v1/seeds", {"id": "x", "urls": ["http://a/"]})
    clients["read"].request("DELETE", "/api/v1/seeds/x")
    clients["none"].request("GET", "/api/v1/jobs")
    clients["read"].request("GET", "/api/v1/jobs")
    lines = [json.loads(line) for line in (tmp_path / "rest" / "audit.log").read_text().splitlines()]
    assert [(line["caller"], line["method"], line["status"]) for line in lines] == [
        ("my-run", "POST", 201), ("", "DELETE", 403), ("", "GET", 401)
    ]  # fmt: skip
    assert lines[0]["detail"] == "x"
    assert (tmp_path / "rest" / "audit.log").stat().st_mode & 0o077 == 0


def test_cross_site_request_is_rejected(client: Client) -> None:
    body = {"id": "x", "urls": []}
    for headers in ({"Origin": "http://evil.test"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                    {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://["}):  # fmt: skip
        assert client.request("POST", "/api/v1/seeds", body, **headers)[0] == 403
    assert client.request("POST", "/api/v1/seeds", body, **{"Content-Type": "text/plain"})[0] == 415
    own = f"http://127.0.0.1:{client.server.address[1]}"
    assert client.request("POST", "/api/v1/seeds", body, Origin=own)[0] == 201


def test_request_body_and_rate_are_limited(tmp_path: Path) -> None:
    with running(settings(tmp_path, rest_body_max_bytes="1000", rest_requests_per_second="1")) as server:
        client = Client(server)
        assert client.request("POST", "/api/v1/seeds", {"urls": ["http://a/" + "a" * 2000]})[0] == 413
        assert client.request("POST", "/api/v1/seeds", b"{", **{"Transfer-Encoding": "x"})[0] in (400, 501)
        statuses = [client.request("GET", "/health")[0] for _ in range(8)]
        assert statuses[-1] == 429


def test_non_loopback_address_requires_tokens(tmp_path: Path) -> None:
    from nutch2py.rest.context import RestContext
    from nutch2py.rest.http_error import HttpError

    context = RestContext(settings(tmp_path), is_local=False)
    with pytest.raises(HttpError, match=r"rest\.tokens\.file"):
        context.authenticate("")


def test_settable_properties_are_numbers_switches_or_choices() -> None:
    conf = Configuration.load()
    values = {name: conf.get(name) or "" for name in RUN_ROLE_PROPERTIES}
    plain = {
        name
        for name, value in values.items()
        if value in ("true", "false") or value.lstrip("-").replace(".", "").isdigit()
    }
    assert values.keys() - plain == {"generate.count.mode"}


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", ".", "a%2fb", "%2e%2e%2fx", "a\x00", "x" * 65, "ü"])
def test_name_cannot_escape_folder(client: Client, name: str) -> None:
    from urllib.parse import quote

    for path in ("jobs", "seeds", "configurations"):
        assert client.request("GET", f"/api/v1/{path}/{quote(name, safe='%')}")[0] in (400, 404)


def test_audit_log_injection_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(
        b'{"time": "2026-01-01T00:00:00Z", "caller": "a serv'
    )  # of a server that was killed, or had no disk space
    AuditLog(path, 1 << 20).record("me", "", "POST", "/x", 201, "y")
    torn, whole = path.read_bytes().splitlines()
    assert (torn[-4:], json.loads(whole)["detail"]) == (b"serv", "y")


def test_audit_lines_wait_for_failing_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line of which the disk has taken a part is not in the file twice."""
    monkeypatch.setattr(audit_log, "MAX_WAITING_LINES", 4)
    path, write = tmp_path / "audit.log", os.write

    def write_part(descriptor: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:-10])

    log = AuditLog(path, 1 << 20)
    log.record("me", "", "POST", "/x", 201, "0")
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", write_part)
        for number in range(1, 7):
            log.record("me", "", "POST", "/x", 201, str(number))
        assert len(path.read_bytes().splitlines()) == 1
    log.record("me", "", "POST", "/x", 201, "7")
    assert [json.loads(line)["detail"] for line in path.read_bytes().splitlines()] == ["0", "4", "5", "6", "7"]
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", write_part)
        log.record("me", "", "POST", "/x", 201, "8")
        log.close()
    said = capsys.readouterr().err.splitlines()
    assert [line.removeprefix(f"WARN {path}") for line in said[1::2]] == [
        " is written again; 3 lines were dropped", ": 1 lines of the audit log were lost"
    ]  # fmt: skip
    assert [f"no space is left for {path}" in line for line in said[::2]] == [True, True]


def test_audit_lines_that_wait_are_written_by_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(tmp_path / "audit.log", 1 << 20)
    with monkeypatch.context() as disk:
        disk.setattr(audit_log, "ensure_private_dir", read_only_dir)
        log.record("me", "", "POST", "/x", 201, "0")
    log.close()
    assert json.loads((tmp_path / "audit.log").read_bytes())["detail"] == "0"


def read_only_dir(folder: Path) -> Path:
    raise OSError(errno.EROFS, "Read-only file system", str(folder))


def test_concurrent_audit_log_rotation_loses_no_line(tmp_path: Path) -> None:
    path, number = tmp_path / "audit.log", 300
    servers = [AuditLog(path, number * 90) for _ in range(4)]  # they start one new file, and so keep all lines
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: servers[n % 4].record("me", "", "POST", "/x", 201, str(n)), range(number)))
    lines = [*(tmp_path / "audit.log.1").read_bytes().splitlines(), *path.read_bytes().splitlines()]
    assert sorted(int(json.loads(line)["detail"]) for line in lines) == [*range(number)]
