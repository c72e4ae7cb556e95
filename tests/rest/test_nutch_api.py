"""The paths of Nutch 2's server: a crawl in its words, its forms of answers, and its states."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.crawl import site
from tests.rest.conftest import Client, settings


def done(client: Client, **config: object) -> dict[str, object]:
    status, job_id = client.ask("POST", "/job/create", config)
    assert status == 200, job_id
    client.until(str(job_id), "finished", "failed", "killed", "stopped")
    info = client.get(f"/job/{job_id}?crawlId=c")
    assert (info["state"], info["msg"]) == ("FINISHED", "OK"), info
    return dict(info)


def test_nutch_api_runs_whole_crawl(client: Client) -> None:
    with site() as url:
        form = {"id": 1, "name": "mine", "seedUrls": [{"id": 1, "url": f"{url}/7"}]}
        status, seeds = client.ask("POST", "/seed/create", form)
        assert status == 200
        client.ask("POST", "/config/mine", {"configId": "mine", "force": True, "params": {"generate.max.count": "9"}})
        common = {"crawlId": "c", "confId": "mine"}
        done(client, **common, type="INJECT", args={"seedDir": seeds})
        made = done(client, **common, type="GENERATE", args={"topN": "5", "normalize": False})
        batch = made["result"]["generate.batch.id"]  # type: ignore[index]
        done(client, **common, type="FETCH", args={"batch": batch, "threads": 2})
        done(client, **common, type="PARSE", args={"batch": batch})
        done(client, **common, type="UPDATEDB", args={"batch": batch})
    status, found = client.ask("POST", "/db?crawlId=c", {"startKey": f"{url}/7", "fields": ["status", "outlinks"]})
    (first, *_) = found["values"]
    assert (status, first["url"], first["status"]) == (200, f"{url}/7", 2)
    assert client.ask("POST", "/db?crawlId=c", {"batchId": "none"})[1] == {"values": []}
    assert {job["type"] for job in client.get("/job?crawlId=c")} == {"INJECT", "GENERATE", "FETCH", "PARSE", "UPDATEDB"}
    assert client.get("/job/?crawlId=other") == []
    assert {"confId", "args", "result", "state", "msg", "crawlId", "id", "type"} == made.keys()


def test_nutch_api_manages_configurations(client: Client) -> None:
    assert client.get("/config/") == ["default"]
    assert client.ask("POST", "/config/a", {"configId": "a", "params": {"generate.max.count": "5"}}) == (200, "a")
    assert client.ask("POST", "/config/a", {"configId": "a"})[0] == 409
    assert client.get("/config/a/generate.max.count") == "5"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.ask("PUT", "/config/a/generate.max.count", b"value=7", **form)[0] == 200
    assert client.get("/config/a")["generate.max.count"] == "7"
    assert client.ask("PUT", "/config/a/generate.max.count", b"", **form)[0] == 400
    assert client.ask("DELETE", "/config/a")[0] == 204
    assert client.ask("GET", "/config/a")[0] == 404
    assert client.ask("DELETE", "/config/default")[0] == 409


@pytest.mark.parametrize(
    "config",
    [{"type": "CLASS", "jobClassName": "os.system"}, {"type": "INJECT", "args": {"seedDir": "/etc"}},
     {"type": "INJECT"}, {"type": "FETCH", "args": {"batch": "-warc"}}, {"type": "GENERATE", "args": {"topN": "x"}},
     {"type": "GENERATE", "args": {"curTime": "now"}}, {"type": "FETCH", "args": {"batch": ["a"]}}, {}],
    ids=str,
)  # fmt: skip
def test_nutch_api_invalid_job_is_rejected(client: Client, config: dict[str, object]) -> None:
    assert client.ask("POST", "/job/create", config)[0] == 400


def test_nutch_api_state_stop_and_abort_work(client: Client, silent: str) -> None:
    job = client.begin(job="crawl", seeds=[silent], crawlId="c")["id"]
    assert client.get(f"/job/{job}")["state"] == "RUNNING"
    assert client.get("/admin")["runningJobs"][0]["id"] == job
    assert client.get("/admin/stop").startswith("Can't stop now.")
    assert client.get(f"/job/{job}/abort") is True
    assert client.get(f"/job/{job}")["state"] == "KILLED"
    assert client.ask("GET", "/job/none/stop")[0] == 404


def test_nutchserver_command_serves_and_stops(tmp_path: Path) -> None:
    conf = settings(tmp_path)
    words = [sys.executable, "-m", "nutch2py", "nutchserver", "-D", f"rest.folder={conf.get('rest.folder')}"]
    process = subprocess.Popen([*words, "-port", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as lines:
        first = lines.readline()
        port = first.rstrip("/\n").rpartition(":")[2]
        told = subprocess.run([*words, "-port", port, "-stop"], capture_output=True, text=True, check=False)
        assert (told.returncode, told.stdout.startswith("Stopping")) == (0, True), told
        assert lines.read() == "nutchserver: stopped\n"
    assert process.wait() == 0
    again = subprocess.run([*words, "-port", port, "-stop"], capture_output=True, text=True, check=False)
    assert (again.returncode, "no server responds" in again.stderr) == (3, True)
    refused = subprocess.run([*words, "-port", "0", "-host", "0.0.0.0"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "rest.tokens.file" in refused.stderr) == (2, True)
