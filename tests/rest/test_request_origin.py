"""Changes need proof of their origin: a page of another site cannot make a browser change anything."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from nutch2py.rest.access.cross_site import check_change
from nutch2py.rest.access.form_tokens import FORM_HEADER, FormTokens
from nutch2py.rest.access.tokens import Role, add_token
from nutch2py.rest.api_routes import OPERATIONS
from tests.rest.conftest import Client, client, running, settings

__all__ = ["client"]
CHROME = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0.0.0",
    "Accept-Language": "en-US,en;q=0.9",
    "Accept-Encoding": "gzip, deflate",
}
NAVIGATION = {**CHROME, "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}
IMAGE = {**CHROME, "Accept": "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"}
FETCH = {**CHROME, "Accept": "*/*"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON_TYPE = {"Content-Type": "application/json"}


def basic(token: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'me:{token}'.encode()).decode()}"}


class Server:
    """A server with tokens, its clients, and the record whether it was asked to stop."""

    def __init__(self, made: Client, token: str) -> None:
        self.anonymous, self.token, self.stops = made, token, list[int]()
        self.address = f"127.0.0.1:{made.server.address[1]}"
        made.server.app.state.authorizer.context.stop_server = lambda: self.stops.append(1)

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
        return self.anonymous.request(method, path, body, **headers)[0]


@pytest.fixture
def admin(tmp_path: Path) -> Iterator[Server]:
    """Yield a server with the token of an administrator."""
    conf = settings(tmp_path, rest_tokens_file=f"{tmp_path}/tokens", rest_requests_per_second="0")
    token = add_token(conf, "me", Role.ADMIN)
    with running(conf) as server:
        yield Server(Client(server), token)


@pytest.mark.parametrize("headers", [NAVIGATION, IMAGE, FETCH, {**FETCH, "Cookie": "a=b"}], ids=range(4))
@pytest.mark.parametrize("referrer", ["", "http://evil.test/"])
def test_browser_with_remembered_login_cannot_stop_server(
    admin: Server, headers: dict[str, str], referrer: str
) -> None:
    sent = {**headers, **basic(admin.token), **({"Referer": referrer} if referrer else {})}
    assert admin.send("GET", "/admin/stop", **sent) == 403
    assert admin.send("GET", "/job/1700000000000-abcdef/stop", **sent) == 403
    assert admin.send("GET", "/job/1700000000000-abcdef/abort", **sent) == 403
    assert admin.send("GET", "/api/v1/jobs", **sent) == 200
    assert admin.stops == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Origin": "https://{own}", "X-Forwarded-Proto": "http"},
        {"Origin": "chrome-extension://{own}"},
        {"Origin": "http://{own}.evil.test"},
        {"Origin": "http://me@{own}"},
        {"Referer": "http://evil.test/"},
        {"Referer": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://{own}"},
        {"Sec-Fetch-Site": "none", "Sec-Purpose": "prefetch;prerender"},
        {"Sec-Fetch-Site": "none", "Purpose": "prefetch"},
        {"User-Agent": CHROME["User-Agent"]},
        {"Accept-Language": "de"},
        {"Cookie": "a=b"},
        {"Accept": NAVIGATION["Accept"]},
        {"Accept": IMAGE["Accept"]},
        {"Upgrade-Insecure-Requests": "1"},
        {"Sec-Fetch-Dest": "image"},
    ],
    ids=str,
)
def test_change_without_proof_is_rejected(admin: Server, client: Client, headers: dict[str, str]) -> None:
    for server, login in ((admin, {"Authorization": f"Bearer {admin.token}"}), (Server(client, ""), {})):
        sent = {name: value.format(own=server.address) for name, value in headers.items()}
        assert server.send("GET", "/admin/stop", **login, **sent) == 403
        assert server.send("POST", "/api/v1/seeds", b'{"id": "x"}', **JSON_TYPE, **login, **sent) == 403
        assert server.send("POST", "/crawl/new", b"seeds=http://a.test/", **FORM, **login, **sent) == 403
        assert server.stops == []
        assert server.send("GET", "/api/v1/seeds", **login, **sent) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"User-Agent": "curl/8.5.0", "Accept": "*/*"},
        {"User-Agent": "Java/1.8.0_392", "Accept": "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"},
        {"User-Agent": "python-requests/2.32", "Accept-Encoding": "gzip, deflate", "Accept": "*/*"},
        {"User-Agent": "node", "Accept": "*/*", "Accept-Language": "*", "Sec-Fetch-Mode": "cors"},
        {"User-Agent": "Mozilla/5.0 (Windows NT 10.0; Microsoft Windows 10; en-US) PowerShell/7.4.1"},
        {"User-Agent": "Apache-HttpClient/4.5 (Java/17)", "Accept": "application/json"},
        {**FETCH, "Origin": "http://{own}"},
        {**FETCH, "Sec-Fetch-Site": "same-origin"},
        {**NAVIGATION, "Sec-Fetch-Site": "none"},
    ],
    ids=str,
)
def test_program_and_own_page_may_change(admin: Server, client: Client, headers: dict[str, str]) -> None:
    for server, login in ((admin, {"Authorization": f"Bearer {admin.token}"}), (Server(client, ""), {})):
        sent = {name: value.format(own=server.address) for name, value in headers.items()}
        assert server.send("POST", "/api/v1/seeds", b'{"id": "x"}', **JSON_TYPE, **login, **sent) == 201
        assert server.send("GET", "/job/1700000000000-abcdef/stop", **login, **sent) == 404
        assert server.send("GET", "/admin/stop", **login, **sent) == 200
        assert server.stops == [1]


def test_every_operation_with_effect_needs_proof(admin: Server) -> None:
    for one in OPERATIONS:
        if one.modifies:
            path = one.path.replace("{id}", "x").replace("{name}", "generate.max.count")
            for headers in (FETCH, {"Referer": "http://evil.test/"}, {}):
                assert admin.send(one.method, path, b"{}", **JSON_TYPE, **basic(admin.token), **headers) == 403, path
    assert admin.stops == []


def test_basic_login_changes_only_by_form_of_its_reader(admin: Server, tmp_path: Path) -> None:
    own = {**NAVIGATION, "Origin": f"http://{admin.address}", **basic(admin.token)}
    fields = {"seeds": "no-url"}
    assert admin.send("POST", "/crawl/new", urlencode(fields).encode(), **FORM, **own) == 403
    _, page = admin.anonymous.request("GET", "/crawl/new", **NAVIGATION, **basic(admin.token))
    token = re.findall(r'name="form_token" value="([^"]+)"', page)[0]
    with_token = urlencode({**fields, "form_token": token}).encode()
    assert admin.send("POST", "/crawl/new", with_token, **FORM, **own) == 400  # the seed is no URL
    assert admin.send("POST", "/crawl/new", with_token, **FORM, **{**own, "Origin": "http://evil.test"}) == 403
    wrong = urlencode({**fields, "form_token": token[:-1] + ("0" if token[-1] != "0" else "1")}).encode()
    assert admin.send("POST", "/crawl/new", wrong, **FORM, **own) == 403
    conf = settings(tmp_path, rest_tokens_file=f"{tmp_path}/tokens")
    other = basic(add_token(conf, "other", Role.RUN))
    assert admin.send("POST", "/crawl/new", with_token, **FORM, **{**own, **other}) == 403
    header = {FORM_HEADER: token}
    assert admin.send("POST", "/api/v1/seeds", b'{"id": "x"}', **JSON_TYPE, **own, **header) == 201


def test_programs_with_basic_login_may_change_where_set(tmp_path: Path) -> None:
    tokens = {"rest_tokens_file": f"{tmp_path}/tokens", "rest_basic_changes": "true"}
    conf = settings(tmp_path, **tokens)
    login = basic(add_token(conf, "me", Role.RUN))
    with running(conf) as server:
        made = Server(Client(server), "")
        assert made.send("POST", "/api/v1/seeds", b'{"id": "x"}', **JSON_TYPE, **login) == 201
        assert made.send("POST", "/api/v1/seeds", b'{"id": "x"}', **JSON_TYPE, **login, **FETCH) == 403
        own = {"Origin": f"http://{made.address}"}
        assert made.send("POST", "/api/v1/seeds", b'{"id": "x"}', **JSON_TYPE, **login, **FETCH, **own) == 403


def request_with(**headers: str) -> Request:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": raw})


@pytest.mark.parametrize(
    ("host", "origin", "forwarded", "is_own"),
    [
        ("search.example.org", "https://search.example.org", "https", True),
        ("search.example.org", "https://search.example.org", "", True),
        ("search.example.org:443", "https://search.example.org", "https", True),
        ("search.example.org:80", "http://search.example.org", "", True),
        ("search.example.org", "http://search.example.org", "https", False),
        ("search.example.org", "https://search.example.org:8443", "https", False),
        ("127.0.0.1:8080", "https://search.example.org", "https", False),
        ("[::1]:8080", "http://[::1]:8080", "", True),
        ("", "http://", "", False),
    ],
)
def test_origin_is_compared_behind_proxy(host: str, origin: str, forwarded: str, is_own: bool) -> None:
    headers = {"Host": host, "Origin": origin, **FETCH, **({"X-Forwarded-Proto": forwarded} if forwarded else {})}
    assert (check_change(request_with(**headers)) == "") is is_own
    public = "https://search.example.org/"
    is_public = is_own or origin == "https://search.example.org"
    assert (check_change(request_with(**headers), public_url=public) == "") is is_public


def test_form_token_expires_and_belongs_to_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other, nobody = request_with(Authorization="Basic a"), request_with(Authorization="Basic b"), request_with()
    shared, own = FormTokens(is_shared=True), FormTokens(is_shared=False)
    token = shared.create(mine)
    assert FormTokens(is_shared=True).is_valid(mine, token)
    assert not shared.is_valid(other, token)
    assert not shared.is_valid(nobody, shared.create(nobody))  # nobody has a key
    assert own.is_valid(nobody, own.create(nobody))
    assert not FormTokens(is_shared=False).is_valid(nobody, own.create(nobody))
    for wrong in ("", "-", "x-y", f"{'f' * 40}-0", token.upper(), "ü-ü"):
        assert not shared.is_valid(mine, wrong)
    import time

    now = time.time()
    monkeypatch.setattr("nutch2py.rest.access.form_tokens.time.time", lambda: now + 25 * 3600)
    assert not shared.is_valid(mine, token)
