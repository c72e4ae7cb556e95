"""Who may do what: tokens, roles, limits, pages of other sites, and what is written down of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nutch2py.cli import main
from nutch2py.conf import Configuration
from nutch2py.rest.routes import OPERATIONS
from nutch2py.rest.settable import SETTABLE
from nutch2py.rest.tokens import Role
from tests.rest.conftest import Client, running, settings

ROLES = ("read", "run", "admin")


def token(tokens: Path, name: str, role: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["token", name, "-role", role, "-D", f"rest.tokens.file={tokens}"]) == 0
    return capsys.readouterr().out.strip()


@pytest.fixture
def clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, Client]]:
    """Give a client of each role, and one without a token."""
    tokens = tmp_path / "tokens"
    made = {role: token(tokens, f"my-{role}", role, capsys) for role in ROLES}
    with running(settings(tmp_path, rest_tokens_file=str(tokens), ftp_password="hidden-one")) as server:
        yield {"none": Client(server), **{role: Client(server, each) for role, each in made.items()}}


def paths() -> list[tuple[str, str, Role, bool]]:
    return [
        (one.method, one.path.replace("{id}", "x").replace("{name}", "generate.max.count"), one.role, one.changes)
        for one in OPERATIONS
    ]


def test_what_changes_anything_needs_more_than_to_read() -> None:
    assert all(role > Role.READ for _, _, role, changes in paths() if changes)
    # Nutch 2 asks for rows by POST
    assert [(method, path) for method, path, _, changes in paths() if method != "GET" and not changes] == [
        ("POST", "/db")
    ]


def held(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "audit.log"}


def test_who_may_only_read_changes_nothing(clients: dict[str, Client], tmp_path: Path) -> None:
    clients["run"].ask("POST", "/api/v1/seeds", {"id": "x", "urls": ["http://a/"]})
    clients["run"].ask("POST", "/api/v1/configurations", {"id": "x"})
    before = held(tmp_path)
    bodies: list[Any] = [{"job": "inject", "seeds": ["http://a.test/"]}, {"id": "x", "force": True}, {"value": "1"}, {}]
    for method, path, role, changes in paths():
        for body in bodies if method in ("POST", "PUT") else [None]:
            # what anyone may ask can lack a query
            assert clients["none"].ask(method, path, body)[0] in ((401,) if role > Role.NOBODY else (200, 400))
            status, _ = clients["read"].ask(method, path, body)
            assert (status == 403) == (changes or role > Role.READ), (method, path, body, status)
            assert status < 500
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for who, refused in (("none", 401), ("read", 403)):
        for path in ("/crawl/new", "/crawl/stop"):
            assert clients[who].ask("POST", path, b"seeds=http%3A%2F%2Fa.test%2F&id=x", **form)[0] == refused
    assert held(tmp_path) == before


def test_roles_are_those_of_the_tokens(clients: dict[str, Client]) -> None:
    for role in ROLES:
        assert clients[role].ask("GET", "/api/v1/jobs")[0] == 200
    path = "/api/v1/configurations"
    for name, value, status in [("generate.max.count", "5", 201), ("plugin.folders", "/tmp", 403),
                                ("generate.min.score", "${env.HOME}", 403)]:  # fmt: skip
        body = {"id": "mine", "force": True, "properties": {name: value}}
        assert clients["read"].ask("POST", path, body)[0] == 403
        assert clients["run"].ask("POST", path, body)[0] == status
        if "$" not in value:
            assert clients["admin"].ask("POST", path, body)[0] == 201
    assert clients["run"].ask("PUT", f"{path}/mine/properties/plugin.includes", {"value": "x"})[0] == 403
    job = {"job": "checktable", "properties": {"storage.data.store": "embedded:/tmp/elsewhere"}}
    assert clients["run"].ask("POST", "/api/v1/jobs", job)[0] == 403


def test_a_token_is_the_password_of_a_browser_too(clients: dict[str, Client]) -> None:
    status, _ = clients["none"].ask("GET", "/api/v1/jobs")
    assert status == 401
    word = base64.b64encode(f"anybody:{clients['read'].token}".encode()).decode()
    assert clients["none"].ask("GET", "/api/v1/jobs", Authorization=f"Basic {word}")[0] == 200
    for wrong in ("Basic !", "Basic YQ==", "Bearer x", "Digest y", "Bearer"):
        assert clients["none"].ask("GET", "/api/v1/jobs", Authorization=wrong)[0] == 401


def test_secrets_are_masked_and_tokens_are_not_kept(clients: dict[str, Client], tmp_path: Path) -> None:
    shown = clients["admin"].get("/api/v1/configurations/default")
    assert shown["properties"]["ftp.password"] == "********"
    assert clients["admin"].get("/api/v1/configurations/default/properties/ftp.password")["value"] == "********"
    text = (tmp_path / "tokens").read_text()
    assert not any(client.token and client.token in text for client in clients.values())
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0


def test_a_token_that_is_taken_out_is_refused(
    clients: dict[str, Client], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option = f"rest.tokens.file={tmp_path / 'tokens'}"
    assert main(["token", "my-run", "-remove", "-D", option]) == 0
    assert clients["run"].ask("GET", "/api/v1/jobs")[0] == 401
    assert main(["token", "my-run", "-remove", "-D", option]) == 3
    assert "there is no token my-run" in capsys.readouterr().err
    assert main(["token", "a/b", "-D", option]) == 3
    assert main(["token", "ab"]) == 2


def test_the_audit_log_says_who_did_what(clients: dict[str, Client], tmp_path: Path) -> None:
    clients["run"].ask("POST", "/api/v1/seeds", {"id": "x", "urls": ["http://a/"]})
    clients["read"].ask("DELETE", "/api/v1/seeds/x")
    clients["none"].ask("GET", "/api/v1/jobs")
    clients["read"].ask("GET", "/api/v1/jobs")
    lines = [json.loads(line) for line in (tmp_path / "rest" / "audit.log").read_text().splitlines()]
    assert [(line["who"], line["method"], line["status"]) for line in lines] == [
        ("my-run", "POST", 201), ("", "DELETE", 403), ("", "GET", 401)
    ]  # fmt: skip
    assert lines[0]["what"] == "x"
    assert (tmp_path / "rest" / "audit.log").stat().st_mode & 0o077 == 0


def test_a_page_of_another_site_changes_nothing(client: Client) -> None:
    body = {"id": "x", "urls": []}
    for headers in ({"Origin": "http://evil.test"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                    {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://["}):  # fmt: skip
        assert client.ask("POST", "/api/v1/seeds", body, **headers)[0] == 403
    assert client.ask("POST", "/api/v1/seeds", body, **{"Content-Type": "text/plain"})[0] == 415
    own = f"http://127.0.0.1:{client.server.address[1]}"
    assert client.ask("POST", "/api/v1/seeds", body, Origin=own)[0] == 201


def test_bodies_and_rates_have_limits(tmp_path: Path) -> None:
    with running(settings(tmp_path, rest_body_max_bytes="1000", rest_requests_per_second="1")) as server:
        client = Client(server)
        assert client.ask("POST", "/api/v1/seeds", {"urls": ["http://a/" + "a" * 2000]})[0] == 413
        assert client.ask("POST", "/api/v1/seeds", b"{", **{"Transfer-Encoding": "x"})[0] in (400, 501)
        statuses = [client.ask("GET", "/health")[0] for _ in range(8)]
        assert statuses[-1] == 429


def test_no_one_is_answered_elsewhere_without_tokens(tmp_path: Path) -> None:
    from nutch2py.rest.office import Office
    from nutch2py.rest.refusal import Refusal

    office = Office(settings(tmp_path), local=False)
    with pytest.raises(Refusal, match=r"rest\.tokens\.file"):
        office.caller("")


def test_what_may_be_set_is_a_number_a_switch_or_a_choice() -> None:
    conf = Configuration.load()
    values = {name: conf.get(name) or "" for name in SETTABLE}
    plain = {
        name
        for name, value in values.items()
        if value in ("true", "false") or value.lstrip("-").replace(".", "").isdigit()
    }
    assert values.keys() - plain == {"generate.count.mode"}


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", ".", "a%2fb", "%2e%2e%2fx", "a\x00", "x" * 65, "ü"])
def test_no_name_leads_out_of_the_folder(client: Client, name: str) -> None:
    from urllib.parse import quote

    for path in ("jobs", "seeds", "configurations"):
        assert client.ask("GET", f"/api/v1/{path}/{quote(name, safe='%')}")[0] in (400, 404)
