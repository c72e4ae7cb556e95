"""Control room and API without a store: failed jobs show, and an unavailable store holds up nobody."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nutch2py.control_room.crawl_fingerprint import crawl_fingerprint
from nutch2py.crawl_reader import CrawlReader
from nutch2py.errors import InputError, NutchError, StoreError
from nutch2py.mapreduce.task_progress import decode_error
from nutch2py.rest.context import RestContext
from tests.processes import wait_until
from tests.rest.conftest import Client, client, running, settings, silent

__all__ = ["client", "silent"]
HTML = {"Accept": "text/html"}


def fail_job(made: Client) -> str:
    """Run a job that fails, since its crawl does not exist; return its id."""
    job = made.start_job(job="checktable")["id"]
    made.wait_for_state(job, "failed")
    return str(job)


def test_failed_job_shows_as_failed_before_and_after_first_crawl(client: Client) -> None:
    fail_job(client)
    status, page = client.request("GET", "/crawl", **HTML)
    assert status == 404
    assert "checktable</a>, started here" in page
    assert "failed with exit code 4" in page
    assert ": running" not in page
    client.run_job(job="inject", seeds=["http://a.test/"])
    status, page = client.request("GET", "/crawl", **HTML)
    assert (status, "failed with exit code 4" in page) == (200, True)
    for _ in range(2):
        client.run_job(job="inject", seeds=["http://a.test/"])
    assert "failed with exit code" not in client.request("GET", "/crawl", **HTML)[1]  # no longer among the latest


def test_killed_job_shows_as_killed(client: Client, silent: str) -> None:
    job = client.start_job(job="crawl", seeds=[silent])["id"]
    client.request("POST", f"/api/v1/jobs/{job}/abort")
    page = client.request("GET", "/crawl", **HTML)[1]
    assert ": killed" in page
    assert ": running" not in page


def test_fingerprint_changes_when_job_fails_without_log_entry(client: Client) -> None:
    context: RestContext = client.server.app.state.authorizer.context
    first = crawl_fingerprint(lambda: CrawlReader(context.conf), context.jobs)
    assert first == crawl_fingerprint(lambda: CrawlReader(context.conf), context.jobs)
    fail_job(client)
    assert crawl_fingerprint(lambda: CrawlReader(context.conf), context.jobs) != first


def test_unavailable_store_is_reported_after_short_wait(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    conf = settings(tmp_path, serve_store_wait_seconds="0.2", service_wait_seconds="3600")
    conf.set("storage.data.store", f"hbase://127.0.0.1:{port}")
    with running(conf) as server:
        made = Client(server)
        for path in ("/crawl", "/crawl/jobs", "/crawl/hosts", "/api/v1/batches", "/api/v1/log", "/api/v1/statistics"):
            status, page = made.request("GET", path, **HTML)
            assert status == 503, path
            assert "127.0.0.1" in str(page)
        reading = server.app.state.authorizer.context.reading_configuration("")
        assert reading.get("service.wait.seconds") == "0.2"
        job = made.start_job(job="checktable")  # jobs wait as long as before
        assert made.get(f"/api/v1/jobs/{job['id']}")["logEntries"] == []
        site = tmp_path / "rest" / "jobs" / job["id"] / "conf" / "nutch-site.xml"
        assert "<value>3600</value>" in site.read_text()
        made.request("POST", f"/api/v1/jobs/{job['id']}/abort")


def test_requests_that_wait_for_store_block_no_other(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def wait(_: object, __: object = None, ___: object = None) -> None:
        released.wait(60)
        raise StoreError("the store is unavailable")

    monkeypatch.setattr(CrawlReader, "jobs", wait)
    with ThreadPoolExecutor(100) as pool:
        waiting = [pool.submit(client.request, "GET", "/crawl/jobs") for _ in range(90)]
        wait_until(lambda: sum(each.done() for each in waiting) == 90 - 64)  # the others wait for the store
        assert {each.result()[0] for each in waiting if each.done()} == {503}
        assert client.request("GET", "/health")[0] == 200
        assert client.request("POST", "/api/v1/seeds", {"id": "x"})[0] == 201
        assert client.request("GET", "/api/v1/log")[0] == 503
        assert client.get("/api/v1/jobs") == []
        released.set()
        assert {each.result()[0] for each in waiting} == {404, 503}


@pytest.mark.parametrize("name", ["iter_causes", "Iterator", "__builtins__", "annotations", "nothing", "NutchError"])
def test_error_named_by_task_is_an_error_class(name: str) -> None:
    error = decode_error(f'{{"kind": "{name}", "text": "x", "trace": ""}}'.encode())
    assert (type(error), str(error)) == (NutchError, "x")


def test_known_error_of_task_keeps_its_class() -> None:
    assert type(decode_error(b'{"kind": "InputError", "text": "x", "trace": ""}')) is InputError
