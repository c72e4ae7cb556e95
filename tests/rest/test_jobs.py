"""Jobs over REST: a whole crawl, stop and abort, restart of the server, and the state that they leave."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from nutch2py import Crawl, WebPage
from tests.jobs.crawl import site
from tests.jobs.test_deletion_limit import PAGES, found, gone, put
from tests.rest.conftest import Client, running, settings


def test_crawl_runs_from_seeds_to_search(client: Client) -> None:
    with site() as url:
        status, seeds = client.request("POST", "/api/v1/seeds", {"id": "mine", "urls": [f"{url}/7"]})
        assert (status, seeds["id"]) == (201, "mine")
        job = client.run_job(job="inject", seedList="mine", crawlId="c")
        assert job["commandArgs"] == ["inject", "seeds.txt"]
        client.run_job(job="generate", topN=20, batchId="round", crawlId="c")
        assert [batch["id"] for batch in client.get("/api/v1/batches?crawlId=c")] == ["round"]
        for step in ("fetch", "parse", "updatedb", "index"):
            client.run_job(job=step, batchId="round", crawlId="c")
        counted = client.run_job(job="readdb", crawlId="c")
        more = {"by": ["host", "depth"], "quantiles": True, "json": True}
        broken_down = client.run_job(job="readdb", crawlId="c", most=5, **more)
    output = client.get(f"/api/v1/jobs/{counted['id']}/output")
    assert (output["hasMore"], "status_fetched" in output["text"]) == (False, True)
    stats = json.loads(client.get(f"/api/v1/jobs/{broken_down['id']}/output")["text"].splitlines()[-1])
    assert ([*stats["by"]], "score" in stats["quantiles"]) == (["host", "depth"], True)
    table_stats = client.get("/api/v1/statistics?crawlId=c")["tableStats"]
    assert table_stats["status"]["status_fetched"] == 1
    found = client.get("/api/v1/rows?crawlId=c&limit=2")
    assert len(found["rows"]) == 2
    later = client.get(f"/api/v1/rows?crawlId=c&limit=1000&start={found['nextKey']}")
    assert (len(later["rows"]) + 2, later["nextKey"]) == (table_stats["rows"], None)
    (first,) = client.get(f"/api/v1/rows?crawlId=c&url={url}/7&fields=status,outlinks")["rows"]
    assert (first["status"], first["url"]) == (2, f"{url}/7")
    assert client.get("/api/v1/jobs?crawlId=other") == []


def test_whole_crawl_runs_as_one_job(client: Client) -> None:
    with site() as url:
        job = client.run_job(job="crawl", seeds=[f"{url}/7"], pages=10)
    assert job["exitCode"] == 0
    text = client.get(f"/api/v1/jobs/{job['id']}/output")["text"]
    assert "pages fetched" in text
    assert client.request("GET", "/search.json?q=Text")[1]["total"] > 0


JOBS = [
    ("generate", {"topN": 5, "batchId": "b2"}),
    ("fetch", {"batchId": "b1"}),
    ("parse", {"batchId": "b1"}),
    ("updatedb", {"batchId": "b1"}),
    ("index", {"batchId": "b1"}),
]


def test_aborted_job_is_resumed_by_next_command(client: Client) -> None:
    states = []
    with site() as url:
        client.run_job(job="inject", seeds=[f"{url}/{n}" for n in range(30)])
        client.run_job(job="generate", batchId="b1", topN=5)
        for job, arguments in JOBS:
            started = client.start_job(job=job, **arguments)
            output = f"/api/v1/jobs/{started['id']}/output"
            while (found := client.get(output))["hasMore"] and not found["text"]:
                threading.Event().wait(0.02)  # wait until it is working
            status, aborted = client.request("POST", f"/api/v1/jobs/{started['id']}/abort")
            states.append(aborted["state"])
            assert (status, aborted["state"] in ("killed", "finished")) == (200, True), aborted
            done = client.run_job(job=job, **arguments)
            assert done["exitCode"] == 0 or aborted["state"] == "finished", done
    assert "killed" in states
    with Crawl(settings(client.server.app.state.authorizer.context.state_dir.parent)) as crawl:
        assert sum(page.status == 2 for _, page in crawl.pages(fields={WebPage.status})) > 2
        assert crawl.check() == 0


FORCED_JOBS: list[tuple[str, dict[str, Any]]] = [
    ("/api/v1/jobs", {"job": "index", "batchId": "-all"}),
    ("/api/v1/jobs", {"job": "clean"}),
    ("/api/v1/jobs", {"job": "clean", "noCommit": False}),
    ("/job/create", {"type": "INDEX", "args": {"batch": "-all"}}),
]


@pytest.mark.parametrize(("path", "body"), FORCED_JOBS, ids=str)
def test_job_deletes_beyond_limit_when_forced(tmp_path: Path, path: str, body: dict[str, Any]) -> None:
    conf = settings(tmp_path, indexer_delete_max_share="0.2", indexer_delete_max_count="3")
    put(conf, PAGES, lambda _: None)
    with Crawl(conf) as crawl:
        crawl.index("-all")
    put(conf, PAGES[:10], gone)
    with running(conf) as server:
        client = Client(server)
        for force, ended in ((False, ("failed", 12)), (True, ("finished", 0))):
            target = body.get("args", body)
            target["force"] = force
            status, made = client.request("POST", path, body)
            assert status in (200, 201), made
            job = client.wait_for_state(made if isinstance(made, str) else made["id"], "failed", "finished")
            assert (job["state"], job["exitCode"]) == ended, job
            assert ("-force" in job["commandArgs"]) == force
            assert ("-force" in job["message"]) == (not force)
        assert found(conf) == set(PAGES[10:])
        status, problem = client.request("POST", "/api/v1/jobs", {"job": "updatedb", "batchId": "-all", "force": True})
        assert (status, "force" in problem["detail"]) == (400, True)


def test_stopped_job_reports_stopped(client: Client, silent: str) -> None:
    job = client.start_job(job="crawl", seeds=[silent], properties={"fetcher.threads.fetch": "1"})
    status, stopped = client.request("POST", f"/api/v1/jobs/{job['id']}/stop")
    assert status == 200
    assert stopped["state"] in ("stopping", "stopped")
    client.wait_for_state(job["id"], "stopped")
    assert client.request("POST", f"/api/v1/jobs/{job['id']}/abort")[1]["state"] == "stopped"  # the job continues
    assert client.request("DELETE", f"/api/v1/jobs/{job['id']}")[0] == 200
    assert client.request("GET", f"/api/v1/jobs/{job['id']}")[0] == 404


def test_job_survives_server_restart(tmp_path: Path, silent: str) -> None:
    conf = settings(tmp_path)
    with running(conf) as first:
        job = Client(first).start_job(job="crawl", seeds=[silent], properties={"fetcher.threads.fetch": "1"})
        Client(first).wait_for_state(job["id"], "running")
    with running(conf) as second:
        client = Client(second)
        assert client.get(f"/api/v1/jobs/{job['id']}")["state"] == "running"
        assert client.request("POST", f"/api/v1/jobs/{job['id']}/abort")[1]["state"] == "killed"


def test_running_jobs_are_limited(tmp_path: Path, silent: str) -> None:
    with running(settings(tmp_path, rest_jobs_running="1", rest_jobs_keep="1")) as server:
        client = Client(server)
        held = client.start_job(job="crawl", seeds=[silent])
        status, body = client.request("POST", "/api/v1/jobs", {"job": "checktable"})
        assert (status, "rest.jobs.running" in body["error"]) == (429, True)
        assert client.request("DELETE", f"/api/v1/jobs/{held['id']}")[0] == 409
        client.request("POST", f"/api/v1/jobs/{held['id']}/abort")
        for _ in range(2):
            failed = client.start_job(job="checktable")
            assert "there is no table" in client.wait_for_state(failed["id"], "failed")["message"]
        assert len(client.get("/api/v1/jobs")) <= 2


@pytest.mark.parametrize(
    "request_",
    [
        {"job": "shell"},
        {"job": "fetch"},
        {"job": "fetch", "batchId": "-warc"},
        {"job": "fetch", "batchId": "b", "warc": "/tmp"},
        {"job": "generate", "batchId": "--conf=/etc"},
        {"job": "generate", "topN": -1},
        {"job": "generate", "topN": "1"},
        {"job": "generate", "crawlId": "../../etc"},
        {"job": "generate", "configuration": "../x"},
        {"job": "inject"},
        {"job": "inject", "seeds": ["/etc/passwd"]},
        {"job": "crawl", "seeds": ["http://a/\nfile:///etc/passwd"]},
        {"job": "crawl", "seeds": []},
        {"job": "generate", "properties": {"fetcher.threads.fetch": "many"}},
    ],
    ids=str,
)
def test_invalid_job_request_is_rejected(client: Client, request_: dict[str, object]) -> None:
    assert client.request("POST", "/api/v1/jobs", request_)[0] == 400
    assert client.get("/api/v1/jobs") == []
