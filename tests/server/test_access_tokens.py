"""API keys of the search: authorization, rate limits, CORS, and what is logged."""

import asyncio
import base64
import hashlib
import http.client
import json
import os
import random
import re
import subprocess
import sys
import threading
from contextlib import closing, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.rest.access import rate_limiter
from nutch2py.rest.access.rate_limiter import RateLimiter, rate_limit_key
from nutch2py.rest.access.tokens import Role, TokenStore, add_token
from nutch2py.rest.http_error import HttpError
from nutch2py.search.cors import CorsPolicy
from nutch2py.search_client import AsyncSearchClient, SearchClient, SearchError
from nutch2py.server.app import create_app
from tests.conftest import ROOT
from tests.server.conftest import fill, running
from tests.server.test_search_api import GUIDE, address_of

SITE = "https://shop.example"
SEARCH = "/api/v1/search?q=needle"


def ask(server, method, path, *headers):
    """Return status, headers and body; request headers are pairs, and may be repeated."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.address[1], timeout=60)) as connection:
        connection.putrequest(method, path)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def bearer(key):
    return ("Authorization", f"Bearer {key}")


@pytest.fixture
def server_with_keys(conf, tmp_path):
    """Yield a server that requires keys, and two keys: of the role search, and of another role."""
    fill(conf)
    for name, value in (("rest.tokens.file", str(tmp_path / "tokens")), ("search.keys.required", "true"),
                        ("search.cors.origins", SITE), ("rest.folder", str(tmp_path / "rest"))):  # fmt: skip
        conf.set(name, value)
    keys = {"shop": add_token(conf, "shop", Role.SEARCH), "reader": add_token(conf, "reader", Role.READ)}
    with running(conf) as server:
        yield server, keys


def test_request_without_key_is_rejected(server_with_keys):
    server, keys = server_with_keys
    for path in (SEARCH, "/api/v1/suggest?q=nee", "/search.json?q=needle"):
        for key in keys.values():
            basic = base64.b64encode(f"any:{key}".encode()).decode()
            for sent in (bearer(key), ("Authorization", f"Basic {basic}"), ("Authorization", f"bearer  {key} ")):
                assert ask(server, "GET", path, sent)[0] == 200
            assert ask(server, "HEAD", path, bearer(key))[0] == 200
        wrong = [bearer("n2p_wrong"), bearer(""), bearer(keys["shop"][:-1]), ("Authorization", keys["shop"]),
                 ("X-API-Key", keys["shop"]), ("Cookie", f"key={keys['shop']}")]  # fmt: skip
        for sent in ([], *([each] for each in wrong), [bearer("x"), bearer(keys["shop"])]):
            status, headers, body = ask(server, "GET", path, *sent)
            assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="nutch2py"')  # no login dialog
            assert headers["Content-Type"] == "application/problem+json"
            assert json.loads(body).items() >= {"status": 401, "title": "Unauthorized"}.items()
    assert ask(server, "GET", "/api/v1/jobs", bearer(keys["shop"]))[0] == 403
    for path in ("/?q=needle", "/suggest?q=need", "/health", "/opensearch.xml", "/box.js"):  # pages and API
        assert ask(server, "GET", path)[0] == 200


def test_search_key_opens_no_other_path(server_with_keys):
    """Each path, by each method, is part of the search, public, or rejected."""
    server, keys = server_with_keys
    seen = set()
    for route in server.app.routes:
        path = re.sub(r"\{\w+\}", "x", route.path)
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            length = ("Content-Length", "0")
            mine, nobodys = (ask(server, method, path, length, *key)[0] for key in ([bearer(keys["shop"])], []))
            if method not in (route.methods or ()):
                continue
            seen.add(mine)
            if nobodys == 401:
                wanted = {400} if path.startswith(("/api/v1/search", "/api/v1/suggest")) else {403}
                assert mine in ({200} if path == "/search.json" else wanted), (method, path)
            else:
                # a click is authorized by the token of the results, so that everybody may report one
                allowed = "POST" if path == "/api/v1/clicks" else "GET"
                assert (mine, method) in ((nobodys, allowed), (404, allowed)), (method, path)
    assert seen == {200, 400, 403, 404, 415}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://Bücher.example/", "https://xn--bcher-kva.example"),
        ("https://пример.рф", "https://xn--e1afmkfd.xn--p1ai"),
        ("https://a.org:443", "https://a.org"),
        ("http://a.org:80", "http://a.org"),
        ("http://a.org:443", "http://a.org:443"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://[::1]:8443", "https://[::1]:8443"),
    ],
)
def test_cors_origin_matches_in_any_spelling(given, sent):
    """Browsers send the origin in ASCII and without the default port."""
    origins = CorsPolicy.from_conf(Configuration({"search.cors.origins": f"https://other.example, {given}"}))
    assert origins.allow_origin(sent) == sent
    assert [origins.allow_origin(other) for other in ("null", "", "https://b.org", f"{sent}.evil.example")] == [""] * 4


def test_invalid_client_options_are_not_sent(server):
    client = SearchClient(address_of(server))
    assert client.search("hay", freshness=None, host=None, rows=3).hits == client.search("hay", rows=3).hits
    assert len([*client.iter_hits("hay", freshness=None)]) == 30


def test_key_is_optional_unless_configured_and_needs_file(server, conf):
    assert ask(server, "GET", SEARCH)[0] == 200
    assert ask(server, "GET", SEARCH, bearer("whatever"))[0] == 200
    conf.set("search.keys.required", "true")
    with pytest.raises(ConfigurationError, match=r"rest\.tokens\.file"):
        create_app(conf)


def test_key_rate_applies_across_endpoints(server_with_keys, capsys):
    server, keys = server_with_keys
    file = server.conf.get("rest.tokens.file")
    assert main(["token", "slow", "-role", "search", "-rate", "0.01", "-D", f"rest.tokens.file={file}"]) == 0
    slow = capsys.readouterr().out.strip()
    assert ask(server, "GET", SEARCH, bearer(slow))[0] == 200
    status, headers, body = ask(server, "GET", SEARCH, bearer(slow), ("Origin", SITE))
    assert (status, json.loads(body)["status"]) == (429, 429)
    assert 1 <= int(headers["Retry-After"]) <= 100
    assert headers["Access-Control-Expose-Headers"] == "Retry-After"
    assert ask(server, "GET", SEARCH, bearer(keys["shop"]))[0] == 200
    server.app.state.authorizer.rate_limiter.per_second = 0.01
    assert [ask(server, "GET", SEARCH)[0] for _ in range(3)] == [401, 429, 429]  # by address
    assert ask(server, "GET", SEARCH, bearer(keys["reader"]))[0] == 200  # clients with a key have a limit of their own
    for wrong in ("-1", "nan", "many", "1e9"):
        assert main(["token", "slow", "-rate", wrong, "-D", f"rest.tokens.file={file}"]) == 3
    assert "is not a number of requests per second" in capsys.readouterr().err


def test_flood_of_wrong_keys_is_limited_without_memory(server_with_keys):
    server, _ = server_with_keys
    rate = server.app.state.authorizer.rate_limiter
    rate.per_second = 0.001
    statuses = [ask(server, "GET", SEARCH, bearer(f"wrong-{number}"))[0] for number in range(30)]
    assert statuses == [401, *[429] * 29]
    assert rate.tracked_clients == [("address", "127.0.0.1")]
    many = RateLimiter(1)
    for number in range(10_000):
        many.check(("address", f"192.0.2.{number}"))
    assert len(many.tracked_clients) == 4096


@pytest.mark.parametrize("per_second", [0.001, 0.3, 0.5, 1.0, 3.0, 50.0])
def test_client_retrying_after_given_delay_is_accepted(per_second, monkeypatch):
    """Also after earlier attempts: rejected requests do not extend the wait."""
    now, chance = [0.0], random.Random(11)
    monkeypatch.setattr(rate_limiter.time, "monotonic", lambda: now[0])
    rate, rejected = RateLimiter(per_second), 0
    for _ in range(1000):
        now[0] += chance.choice([0.0, 0.01, 0.4, 0.9]) / per_second
        try:
            rate.check(("address", "192.0.2.1"))
        except HttpError as error:
            rejected += 1
            now[0] += int(error.headers["Retry-After"])
            rate.check(("address", "192.0.2.1"))
    assert rejected > 3


def test_client_ignoring_delay_gets_allowed_rate(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(rate_limiter.time, "monotonic", lambda: now[0])
    rate, let_in = RateLimiter(1.0), 0
    for _ in range(1000):
        now[0] += 0.1
        with suppress(HttpError):
            rate.check(("address", "192.0.2.1"))
            let_in += 1
    assert 100 <= let_in <= 106


def test_client_with_many_addresses_is_counted_once():
    rate = RateLimiter(0.001)
    rate.check(("address", rate_limit_key("2001:db8::1")))
    with pytest.raises(HttpError) as failure:
        rate.check(("address", rate_limit_key("2001:db8::ffff:2")))
    assert 900 <= int(failure.value.headers["Retry-After"]) <= 1000
    rate.check(("address", rate_limit_key("2001:db8:0:1::1")))
    assert rate_limit_key("fe80::1%eth0") == "fe80::"


def test_keys_and_queries_are_not_stored(server_with_keys, tmp_path, caplog):
    server, keys = server_with_keys
    caplog.set_level("DEBUG")
    secret = keys["shop"]
    for path in (f"{SEARCH}&key={secret}", f"{SEARCH}&access_token={secret}"):
        status, _, body = ask(server, "GET", path, bearer(secret))
        assert (status, secret in body.decode()) == (400, False)
    ask(server, "GET", f"{SEARCH}%20secretword", bearer(secret))
    ask(server, "GET", f"{SEARCH}%20secretword&key={secret}")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "rest").rglob("*") if path.is_file())
    assert b"401" in kept
    for word in (secret, "secretword"):
        assert word not in caplog.text
        assert word.encode() not in kept
    assert any("GET /api/v1/search 200 shop" in record.getMessage() for record in caplog.records)


def test_unreadable_key_file_rejects_all_until_readable(server_with_keys, tmp_path, capsys, caplog):
    server, keys = server_with_keys
    file = tmp_path / "tokens"
    whole = file.read_bytes()

    def status(key=keys["shop"]):
        code, headers, body = ask(server, "GET", SEARCH, bearer(key))
        assert str(tmp_path) not in body.decode()
        assert code != 503 or headers["Retry-After"]
        return code

    for torn in (whole[:-60], b"\xff\xfe" * 40, b"shop search", b"shop emperor " + b"0" * 64, whole[:20] + b"\n"):
        file.write_bytes(torn)
        assert status() == 503, torn
        file.write_bytes(whole)
        assert status() == 200
    file.unlink()
    assert [status() for _ in range(50)] == [503] * 50
    file.mkdir()
    assert status() == 503
    assert capsys.readouterr().err.count("cannot read the tokens") + caplog.text.count("cannot read the tokens") <= 2
    file.rmdir()
    file.write_bytes(whole.splitlines(keepends=True)[1])  # without the key
    assert (status(), status(keys["reader"])) == (401, 200)
    assert ask(server, "GET", "/?q=needle")[0] == 200


def test_key_file_changed_twice_in_one_tick_is_reread(conf, tmp_path):
    conf.set("rest.tokens.file", str(tmp_path / "tokens"))
    first = add_token(conf, "shop", Role.SEARCH)
    tokens = TokenStore(conf)
    stat = (tmp_path / "tokens").stat()
    second = first[:-1] + ("A" if first[-1] != "A" else "B")
    text = (tmp_path / "tokens").read_text()
    assert tokens.find_caller(f"Bearer {first}") is not None
    with (tmp_path / "tokens").open("r+") as file:  # the same length, written in place
        file.write(text.replace(*(hashlib.sha256(each.encode()).hexdigest() for each in (first, second))))
    os.utime(tmp_path / "tokens", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert tokens.find_caller(f"Bearer {first}") is None
    assert tokens.find_caller(f"Bearer {second}") is not None


PREFLIGHT = (("Access-Control-Request-Method", "GET"), ("Access-Control-Request-Headers", "authorization"))
ALLOWED = {
    "Access-Control-Allow-Origin": SITE,
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": "Authorization",
    "Access-Control-Max-Age": "7200",
    "Vary": "Origin",
}


def test_cors_preflight_is_answered(server_with_keys):
    server, _ = server_with_keys
    status, headers, body = ask(server, "OPTIONS", SEARCH, ("Origin", SITE), *PREFLIGHT)
    assert (status, body) == (204, b"")
    assert {name: headers[name] for name in ALLOWED} == ALLOWED
    wrong = ["null", "https://shop.example.evil.test", "http://shop.example", "https://shop.example:444", "*", "",
             "https://shop.example/", "https://shop.example, https://evil.test"]  # fmt: skip
    for origins in [*([each] for each in wrong), [], [SITE, "https://evil.test"], ["https://evil.test", SITE]]:
        for method, more in (("OPTIONS", PREFLIGHT), ("GET", ())):
            _, headers, _ = ask(server, method, SEARCH, *(("Origin", each) for each in origins), *more)
            assert not [name for name in headers if name.lower().startswith("access-control")]
            assert headers["Vary"] == "Origin"


def test_cors_is_not_allowed_on_other_paths(server_with_keys):
    server, _ = server_with_keys
    tried = 0
    for route in server.app.routes:
        path = re.sub(r"{\w+}", "x", route.path)
        _, headers, _ = ask(server, "OPTIONS", path, ("Origin", SITE), *PREFLIGHT)
        if path not in ("/api/v1/search", "/api/v1/suggest"):
            assert not [name for name in headers if name.lower().startswith("access-control")], path
            tried += 1
    assert tried > 40


def test_response_header_injection_is_prevented(server_with_keys):
    server, _ = server_with_keys
    for origin in (SITE + "\tX: y", SITE + "\x0b", "https://shop.example\xa0", SITE.upper()):
        _, headers, _ = ask(server, "GET", SEARCH, ("Origin", origin.encode("latin-1")))
        assert headers["Access-Control-Allow-Origin"] in (None, SITE.upper())
    for key in ("a\r\nX: y", "a b", "é", "a\n", ""):
        if key:
            with pytest.raises(InputError):
                SearchClient("http://127.0.0.1:1", api_key=key)


def test_megabyte_query_is_rejected(server_with_keys):
    server, keys = server_with_keys
    for size, status in ((2_000, 400), (1_000_000, 414)):
        assert ask(server, "GET", f"/api/v1/search?q={'x' * size}", bearer(keys["shop"]))[0] == status


async def _asked(client):
    return (await client.search("needle")).total


def test_client_sends_key_only_to_its_server(server_with_keys):
    server, keys = server_with_keys
    assert SearchClient(address_of(server), api_key=keys["shop"]).search("needle").total == 4
    assert asyncio.run(_asked(AsyncSearchClient(address_of(server), api_key=keys["shop"]))) == 4
    with pytest.raises(SearchError, match="an API key is required") as failure:
        SearchClient(address_of(server)).search("needle")
    assert (failure.value.status, failure.value.retry_after) == (401, None)
    server.app.state.authorizer.rate_limiter.per_second = 0.01
    reader = SearchClient(address_of(server), api_key=keys["reader"])
    reader.search("needle")
    with pytest.raises(SearchError, match="too many") as failure:
        reader.search("needle")
    assert (failure.value.status, 1 <= failure.value.retry_after <= 100) == (429, True)
    seen = []

    class Leading(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers["Authorization"])
            self.send_response(HTTPStatus.FOUND if len(seen) == 1 else HTTPStatus.NOT_FOUND)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Leading) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        with pytest.raises(SearchError):
            SearchClient(f"http://127.0.0.1:{other.server_port}", api_key="secret").search("needle")
        other.shutdown()
        thread.join()
    assert seen == ["Bearer secret", None]


@pytest.mark.parametrize(("language", "command"), [("python", [sys.executable]), ("javascript", ["node"])])
def test_documented_applications_send_key(server_with_keys, tmp_path, monkeypatch, language, command):
    server, keys = server_with_keys
    (code,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    path = tmp_path / f"app.{'py' if language == 'python' else 'mjs'}"
    path.write_text(code, encoding="utf-8")
    for key, ended in ((keys["shop"], 0), ("", 1)):
        monkeypatch.setenv("SEARCH_KEY", key)
        try:
            done = subprocess.run([*command, path, address_of(server), "needle"], capture_output=True, text=True,
                                  timeout=60, cwd=ROOT, check=False)  # fmt: skip
        except FileNotFoundError:
            pytest.skip(f"{command[0]} is not here")
        assert done.returncode == ended
        assert done.stdout.startswith("4 pages\n") if key else done.stderr.startswith("401: an API key is required")
