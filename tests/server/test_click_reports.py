"""Logging of searches and clicks by the server: what is stored, for whom, and what is rejected."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import DerivedRow
from nutch2py.rest.access.tokens import Role, add_token
from nutch2py.search.search_log.search_log_store import SEARCH_LOG_PREFIX, SearchWithClicks, read_searches
from nutch2py.server.http_server import HttpServer
from nutch2py.table import TableQuery, open_store, prefix_range
from tests.charts.chrome import axe, chrome, open_page
from tests.server.conftest import fill, running
from tests.server.test_serve import get

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["axe", "chrome"]
PATH = "/api/v1/clicks"


@contextmanager
def logging(conf: Configuration) -> Iterator[HttpServer]:
    """Serve with a search log; it is complete after the block."""
    fill(conf)
    conf.set("search.log", "true")
    with running(conf) as server:
        yield server


def logged(conf: Configuration) -> list[SearchWithClicks]:
    """Return the log, oldest first."""
    return [*read_searches(open_store(conf, DerivedRow))][::-1]


def post(server: HttpServer, body: Any, kind: str = "application/json") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.address[1], timeout=10)
    connection.request("POST", PATH, json.dumps(body), {"Content-Type": kind})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def token_of(body: str) -> str:
    found = re.search(r'<ol class="hits" start="\d+" data-token="([^"]+)"', body)
    assert found is not None
    return found[1]


def test_nothing_is_logged_by_default(conf: Configuration) -> None:
    fill(conf)
    with running(conf) as server:
        assert "data-token" not in get(server, "/?q=needle")[1]
        assert json.loads(get(server, "/api/v1/search?q=needle")[1])["resultToken"] == ""
        assert post(server, {"resultToken": "x", "position": 1}) == 404
    assert logged(conf) == []


def test_page_and_api_log_searches_and_clicks(conf: Configuration) -> None:
    with logging(conf) as server:
        token = token_of(get(server, "/?q=hay&start=10", **{"X-Search-Session": "abc"})[1])
        assert post(server, {"resultToken": token, "position": 12, "session": "abc"}) == 204
        assert post(server, {"resultToken": token, "position": 12, "session": "abc", "dwellMs": 1500}) == 204
        for path in ("/?q=hay&partial=1", "/", "/suggest?q=ha", "/?q=xylophone"):  # only the last one is a search
            assert "data-token" not in get(server, path)[1]
        found = json.loads(get(server, "/api/v1/search?q=needle&rows=2")[1])
        assert post(server, {"resultToken": found["resultToken"], "position": 2}) == 204
        get(server, "/search.json?q=plain")
    first, none, api, old_api = logged(conf)
    assert (first.search.query, first.search.total, first.search.start, first.search.shown) == ("hay", 30, 10, 10)
    assert [(click.position, click.dwell_ms) for click in first.clicks] == [(12, 1500)]
    assert first.search.session == first.clicks[0].session != "abc"
    assert (none.search.query, none.search.total, none.search.ids) == ("xylophone", 0, [])
    assert (api.search.source, api.search.ids) == ("api", [hit["id"] for hit in found["hits"]])
    assert [click.position for click in api.clicks] == [2]
    assert (old_api.search.source, old_api.search.query) == ("api", "plain")


def test_log_has_nothing_personal(conf: Configuration) -> None:
    names = {"X-Search-Session": "session-in-the-page", "User-Agent": "Browser/7", "Referer": "http://from.org/"}
    with logging(conf) as server:
        token = token_of(get(server, "/?q=needle", **names)[1])
        assert post(server, {"resultToken": token, "position": 1, "session": "session-in-the-page"}) == 204
    rows = open_store(conf, DerivedRow).scan(TableQuery(None, prefix_range(SEARCH_LOG_PREFIX)))
    stored = b"".join(row.data or b"" for _, row in rows)
    assert set(json.loads(stored[: stored.index(b"}") + 1])) == {
        "query", "total", "start", "shown", "ids", "source", "session",
    }  # fmt: skip
    for secret in (b"127.0.0.1", b"Browser", b"from.org", b"session-in-the-page", token.encode()):
        assert secret not in stored


def test_invalid_click_reports_are_rejected(conf: Configuration) -> None:
    with logging(conf) as server:
        token = token_of(get(server, "/?q=needle")[1])
        good = {"resultToken": token, "position": 1}
        for wrong in (
            {"resultToken": token[:-1] + ("0" if token[-1] != "0" else "1"), "position": 1},
            {"resultToken": "x" * 10_000, "position": 1},
            *({**good, **more} for more in (
                {"position": 0}, {"position": 5}, {"position": "1"}, {"dwellMs": -1}, {"session": "x" * 65},
            )),
            [], None, "", {"position": 1},
        ):  # fmt: skip
            assert post(server, wrong) == 400, wrong
        assert post(server, good, "text/plain") == 415  # which pages of other sites may send
        assert post(server, {**good, "session": "x" * (1 << 20)}) == 413
        assert get(server, PATH)[0].status == 405
        assert post(server, good) == 204
    assert [len(each.clicks) for each in logged(conf)] == [1]


def test_page_reports_clicks_when_applications_need_keys(conf: Configuration, tmp_path: Any) -> None:
    conf.set("rest.tokens.file", str(tmp_path / "tokens"))
    add_token(conf, "shop", Role.SEARCH)
    conf.set("search.keys.required", "true")
    with logging(conf) as server:
        token = token_of(get(server, "/?q=needle")[1])
        assert post(server, {"resultToken": token, "position": 1}) == 204
    assert [len(each.clicks) for each in logged(conf)] == [1]


def test_one_address_cannot_displace_searches_of_others(conf: Configuration) -> None:
    with logging(conf) as server:
        bodies = [get(server, "/?q=needle")[1] for _ in range(40)]
    assert all("Plain" in body for body in bodies)
    assert 10 <= len(logged(conf)) < 40
    assert sum("data-token" in body for body in bodies) == len(logged(conf))


def test_searchlog_prints_statistics(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-D", f"storage.data.store={conf.get('storage.data.store')}"]
    assert main(["searchlog", *where]) == 1
    capsys.readouterr()
    with logging(conf) as server:
        token = token_of(get(server, "/?q=needle")[1])
        post(server, {"resultToken": token, "position": 2, "dwellMs": 1500})
        get(server, "/?q=hay")
        get(server, "/?q=" + quote("xylo\u202ephone"))
    assert main(["searchlog", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {
        "searches:\t3", "queries:\t3", "without hits:\t1", "clicks:\t1", "click-through:\t50.0 %",
        "mean click position:\t2.0", "median dwell time:\t1.5 s", "needle\t1\t4\t100.0 %\t2.0", "hay\t1\t30\t0.0 %\t-",
    } <= {*lines}  # fmt: skip
    assert not any("\u202e" in line for line in lines)
    assert main(["searchlog", "-json", "-days", "1", "-top", "1", "-source", "page", *where]) == 0
    quality = json.loads(capsys.readouterr().out)
    assert (quality["searches"], quality["clicks"], len(quality["frequent"])) == (3, 1, 1)
    assert [each["query"] for each in quality["no_clicks"]] == ["hay"]
    assert main(["searchlog", "-source", "api", *where]) == 1
    for wrong in ("0", "-1", "nan", "x"):
        assert main(["searchlog", "-days", wrong, *where]) != 0


def test_script_reports_click_and_dwell_time(chrome: Browser, conf: Configuration) -> None:
    with logging(conf) as server, open_page(chrome) as page:
        page.context.route("http://hay.org/**", lambda route: route.fulfill(body="<p>hay", content_type="text/html"))
        page.goto(f"{server.url}?q=hay&start=10")
        with page.expect_request(f"**{PATH}") as sent:
            page.click("ol.hits > li:nth-child(3) > h2 > a")
        page.wait_for_url("http://hay.org/**")
        with page.expect_request(f"**{PATH}") as returned:
            page.go_back()
        assert json.loads(sent.value.post_data or "")["position"] == 13
        assert json.loads(returned.value.post_data or "")["dwellMs"] >= 0
        wait_for_response(page.evaluate)
        assert page.context.cookies() == []
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
        assert [each for each in page.console_lines if "404" not in each] == []
    clicks = [click for each in logged(conf) for click in each.clicks]
    assert [(click.position, click.dwell_ms is not None) for click in clicks] == [(13, True)]


def wait_for_response(evaluate: Callable[[str], object]) -> None:
    """Wait until the server has read what the page sent before: requests of one page arrive in order."""
    evaluate("fetch('/suggest?q=hay').then(answer => answer.text())")
