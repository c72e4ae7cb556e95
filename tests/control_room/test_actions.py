"""Forms of the control room that start and stop crawls: permissions and results."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from nutch2py import Crawl
from nutch2py.crawl_reader import CrawlReader
from nutch2py.rest.access.tokens import Role, add_token
from tests.charts.chrome import axe, chrome, faults, open_page, too_wide
from tests.rest.conftest import Client, client, running, settings, silent
from tests.site.server import Reply, ScriptedSite

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["axe", "chrome", "client", "silent"]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def post(client: Client, path: str, **fields: str) -> tuple[int, str]:
    status, response = client.request("POST", path, urlencode(fields).encode(), **FORM)
    return status, str(response)


def test_crawl_is_started_watched_and_stopped_in_browser(
    chrome: Browser, axe: str, client: Client, site: ScriptedSite
) -> None:
    site.on("/", Reply(body=b'<a href="/a">a</a>'))
    site.on("/a", Reply(hang=60))
    with open_page(chrome, "phone", "dark", scripts=True) as page:
        page.goto(f"{client.server.url}crawl")
        assert page.inner_text("h1") == "No crawl yet"
        page.click("text=New crawl")
        assert faults(page, axe) == []
        page.fill("textarea", site.url("/"))
        page.fill("#pages", "5")
        page.click("button")
        page.wait_for_url("**/crawl")
        job = client.get("/api/v1/jobs")[0]
        assert (job["job"], job["state"], job["requestedBy"]) == ("crawl", "running", "local")
        while not page.locator("article.running-job").count():  # until its first job has created table and log
            page.goto(f"{client.server.url}crawl")
        page.goto(f"{client.server.url}crawl")
        assert too_wide(page) == 0
        assert not page.locator(".actions button").is_visible()  # the stop is explained and confirmed first
        page.click(".actions summary")
        assert "fetched pages are kept" in page.inner_text(".confirm")
        page.click(".actions button")
        page.wait_for_url("**/crawl")
        client.wait_for_state(job["id"], "stopped")
        assert [each for each in page.console_lines if "404" not in each] == []  # type: ignore[attr-defined]
        page.goto(f"{client.server.url}crawl")
        assert page.locator(".actions button").count() == 0
    with CrawlReader(client.server.app.state.authorizer.context.conf) as crawl:
        assert crawl.page(site.url("/")) is not None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "no seeds: enter at least one URL"),
        ({"seeds": "no-url"}, "seeds"),
        ({"seeds": "http://a.test/", "pages": "many"}, "pages"),
        ({"seeds": "http://a.test/<b>", "stay": "<script>"}, "stay"),
        ({f"f{number}": "1" for number in range(30)}, "a form has at most 20 fields"),
    ],
)
def test_invalid_form_shows_error_and_keeps_input(client: Client, fields: dict[str, str], message: str) -> None:
    status, response = post(client, "/crawl/new", **fields)
    assert status == 400
    assert message in response.partition('role="alert">')[2].partition("</p>")[0]
    assert "<script>" not in response
    assert client.get("/api/v1/jobs") == []


def test_cross_site_request_is_rejected(client: Client) -> None:
    body = urlencode({"seeds": "http://a.test/"}).encode()
    for headers in ({"Origin": "http://evil.test"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        for path in ("/crawl/new", "/crawl/stop"):
            assert client.request("POST", path, body, **FORM, **headers)[0] == 403
    assert post(client, "/crawl/stop", id="../../etc")[0] in (400, 404)
    assert post(client, "/crawl/stop", id="1700000000000-abcdef")[0] == 404
    assert client.get("/api/v1/jobs") == []
    audit = client.server.app.state.authorizer.context.audit_log.path.read_text()
    assert audit.count("/crawl/") == 8


def test_read_only_user_sees_no_action(tmp_path: Path) -> None:
    conf = settings(tmp_path, rest_tokens_file=f"{tmp_path}/tokens")
    reader = add_token(conf, "reader", Role.READ)
    with running(conf) as server:
        reading = Client(server, reader)
        assert "/crawl/new" not in reading.request("GET", "/crawl")[1]
        assert reading.request("GET", "/crawl/new")[0] == 403
        assert reading.request("POST", "/crawl/new", b"seeds=http://a.test/", **FORM)[0] == 403
        assert Client(server).request("POST", "/crawl/new", b"seeds=http://a.test/", **FORM)[0] == 401


def test_crawl_that_fails_before_its_first_log_entry_is_shown(tmp_path: Path) -> None:
    conf = settings(tmp_path, rest_tokens_file=f"{tmp_path}/tokens", urlfilter_regex_file="missing.txt")
    reading, starting = add_token(conf, "reader", Role.READ), add_token(conf, "starter", Role.RUN)
    with running(conf) as server:
        reader, starter = Client(server, reading), Client(server, starting)
        assert post(starter, "/crawl/new", seeds="http://127.0.0.1:9/")[0] == 303
        job = starter.get("/api/v1/jobs")[0]
        status, first = reader.request("GET", "/crawl")
        assert status == 404
        assert f"/crawl/job?id={job['id']}" in first
        assert " by starter" in reader.get(f"/crawl/job?id={job['id']}")
        starter.wait_for_state(job["id"], "failed")
        page = reader.get(f"/crawl/job?id={job['id']}")
        assert ">failed</span>" in page
        assert "missing.txt" in page.partition("<h2>Output</h2>")[2]
        assert "No entry in the job log." in page
        failure = reader.request("GET", "/crawl")[1].partition('role="alert">')[2].partition("</p>")[0]
        assert "failed with exit code 2" in failure
        with Crawl(settings(tmp_path)) as crawl:
            crawl.inject(["http://127.0.0.1:9/"])
        for path in ("/crawl", "/crawl/jobs"):
            assert f"/crawl/job?id={job['id']}" in reader.get(path)
        assert "<button>Stop" not in reader.get("/crawl")


def test_end_of_job_is_announced_on_open_page(chrome: Browser, axe: str, client: Client, silent: str) -> None:
    assert post(client, "/crawl/new", seeds=silent)[0] == 303
    job = client.get("/api/v1/jobs")[0]
    with open_page(chrome, "phone") as page:
        page.goto(f"{client.server.url}crawl")
        page.wait_for_function("() => live.textContent === 'live' && document.querySelector('[data-job]')")
        assert page.inner_text("#toasts") == ""
        assert post(client, "/crawl/stop", id=job["id"])[0] == 303
        page.wait_for_selector("#toasts a")
        assert page.inner_text("#toasts") == "crawl has ended: show its result"
        assert faults(page, axe) == []
        page.click("#toasts a")
        page.wait_for_url(f"**/crawl/job?id={job['id']}")


def test_killed_crawl_is_not_shown_as_running(client: Client, silent: str) -> None:
    assert post(client, "/crawl/new", seeds=silent)[0] == 303
    job = client.get("/api/v1/jobs")[0]
    while not (pid := client.get(f"/api/v1/jobs/{job['id']}").get("pid")):
        pass
    shown = client.request("GET", "/crawl")[1]
    assert f"/crawl/job?id={job['id']}" in shown.partition('class="actions"')[2]
    os.kill(pid, signal.SIGKILL)
    client.wait_for_state(job["id"], "killed", "failed")
    shown = client.request("GET", "/crawl")[1]
    assert "running" not in shown
    assert f"/crawl/job?id={job['id']}" in shown.partition('role="alert">')[2]


def test_job_of_another_crawl_is_not_shown(client: Client, silent: str) -> None:
    job = client.start_job(job="crawl", seeds=[silent], crawlId="other")
    assert "started here" not in client.request("GET", "/crawl")[1]
    assert client.request("POST", f"/api/v1/jobs/{job['id']}/abort")[0] == 200
