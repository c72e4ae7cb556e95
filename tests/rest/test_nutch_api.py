"""The API of Nutch 2's server: a crawl by its requests, the form of its responses, and its states."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nutch2py import Crawl
from tests.jobs.crawl import site
from tests.rest.conftest import Client, settings


def run_job(client: Client, **config: object) -> dict[str, object]:
    status, job_id = client.request("POST", "/job/create", config)
    assert status == 200, job_id
    client.wait_for_state(str(job_id), "finished", "failed", "killed", "stopped")
    info = client.get(f"/job/{job_id}?crawlId=c")
    assert (info["state"], info["msg"]) == ("FINISHED", "OK"), info
    return dict(info)


def test_nutch_api_runs_whole_crawl(client: Client) -> None:
    with site() as url:
        form = {"id": 1, "name": "mine", "seedUrls": [{"id": 1, "url": f"{url}/7"}]}
        status, seeds = client.request("POST", "/seed/create", form)
        assert status == 200
        client.request(
            "POST", "/config/mine", {"configId": "mine", "force": True, "params": {"generate.max.count": "9"}}
        )
        common = {"crawlId": "c", "confId": "mine"}
        run_job(client, **common, type="INJECT", args={"seedDir": seeds})
        made = run_job(client, **common, type="GENERATE", args={"topN": "5", "normalize": False})
        batch = made["result"]["generate.batch.id"]  # type: ignore[index]
        run_job(client, **common, type="FETCH", args={"batch": batch, "threads": 2})
        run_job(client, **common, type="PARSE", args={"batch": batch})
        run_job(client, **common, type="UPDATEDB", args={"batch": batch})
    status, found = client.request("POST", "/db?crawlId=c", {"startKey": f"{url}/7", "fields": ["status", "outlinks"]})
    (first, *_) = found["values"]
    assert (status, first["url"], first["status"]) == (200, f"{url}/7", 2)
    assert client.request("POST", "/db?crawlId=c", {"batchId": "none"})[1] == {"values": []}
    assert {job["type"] for job in client.get("/job?crawlId=c")} == {"INJECT", "GENERATE", "FETCH", "PARSE", "UPDATEDB"}
    assert client.get("/job/?crawlId=other") == []
    assert {"confId", "args", "result", "state", "msg", "crawlId", "id", "type"} == made.keys()


def test_seed_dir_reads_within_seed_folder_only(client: Client, tmp_path: Path) -> None:
    folder, outside = tmp_path / "allowed" / "mine", tmp_path / "outside"
    folder.mkdir(parents=True)
    outside.mkdir()
    for place in (folder, outside):
        (place / "seeds.txt").write_text("http://a.example/\tnutch.score=7\n# none\nhttp://b.example/\n")
    (tmp_path / "allowed" / "link").symlink_to(outside)
    (tmp_path / "allowed" / "files").mkdir()
    (tmp_path / "allowed" / "files" / "link.txt").symlink_to(outside / "seeds.txt")
    conf = client.server.app.state.authorizer.context.conf

    def status(path: Path | str) -> int:
        return int(client.request("POST", "/job/create", {"type": "INJECT", "args": {"seedDir": str(path)}})[0])

    assert status(folder) == 400
    conf.set("rest.seed.folder", str(tmp_path / "allowed"))
    bad = (outside, folder / ".." / ".." / "outside", "link", "files", "", "/etc", tmp_path)
    assert [status(tmp_path / "allowed" / each if each else "") for each in bad] == [400] * len(bad)
    run_job(client, crawlId="c", confId="default", type="INJECT", args={"seedDir": str(folder)})
    found = client.request("POST", "/db?crawlId=c", {"fields": ["score"]})[1]["values"]
    assert [(row["url"], row["score"]) for row in found] == [("http://a.example/", 7.0), ("http://b.example/", 1.0)]
    assert client.get("/api/v1/seeds") == []


def test_class_runs_job_of_its_type(client: Client) -> None:
    with Crawl(client.server.app.state.authorizer.context.conf) as crawl:
        crawl.inject(["http://a.example/"])
    name = "org.apache.nutch.crawl.WebTableReader"
    run_job(client, crawlId="", confId="default", type="CLASS", jobClassName=name, args={})
    assert [job["type"] for job in client.get("/job")] == ["READDB"]
    for other in ("os.system", "org.apache.nutch.crawl.Other", "", "org.apache.nutch.plugin.PluginRepository"):
        assert client.request("POST", "/job/create", {"type": "CLASS", "jobClassName": other})[0] == 400


def test_nutch_api_manages_configurations(client: Client) -> None:
    assert client.get("/config/") == ["default"]
    assert client.request("POST", "/config/a", {"configId": "a", "params": {"generate.max.count": "5"}}) == (200, "a")
    assert client.request("POST", "/config/a", {"configId": "a"})[0] == 409
    assert client.get("/config/a/generate.max.count") == "5"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.request("PUT", "/config/a/generate.max.count", b"value=7", **form)[0] == 200
    assert client.get("/config/a")["generate.max.count"] == "7"
    assert client.request("PUT", "/config/a/generate.max.count", b"", **form)[0] == 400
    assert client.request("DELETE", "/config/a")[0] == 204
    assert client.request("GET", "/config/a")[0] == 404
    assert client.request("DELETE", "/config/default")[0] == 409


@pytest.mark.parametrize(
    "config",
    [{"type": "CLASS", "jobClassName": "os.system"}, {"type": "INJECT", "args": {"seedDir": "/etc"}},
     {"type": "INJECT"}, {"type": "FETCH", "args": {"batch": "-warc"}}, {"type": "GENERATE", "args": {"topN": "x"}},
     {"type": "GENERATE", "args": {"curTime": "now"}}, {"type": "FETCH", "args": {"batch": ["a"]}}, {}],
    ids=str,
)  # fmt: skip
def test_nutch_api_invalid_job_is_rejected(client: Client, config: dict[str, object]) -> None:
    assert client.request("POST", "/job/create", config)[0] == 400


def test_nutch_api_state_stop_and_abort_work(client: Client, silent: str) -> None:
    job = client.start_job(job="crawl", seeds=[silent], crawlId="c")["id"]
    assert client.get(f"/job/{job}")["state"] == "RUNNING"
    assert client.get("/admin")["runningJobs"][0]["id"] == job
    assert client.get("/admin/stop").startswith("Can't stop now.")
    assert client.get(f"/job/{job}/abort") is True
    assert client.get(f"/job/{job}")["state"] == "KILLED"
    assert client.request("GET", "/job/none/stop")[0] == 404


def test_nutchserver_command_serves_and_stops(tmp_path: Path) -> None:
    conf = settings(tmp_path)
    command = [sys.executable, "-m", "nutch2py", "nutchserver", "-D", f"rest.folder={conf.get('rest.folder')}"]
    process = subprocess.Popen([*command, "-port", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as lines:
        first = lines.readline()
        port = first.rstrip("/\n").rpartition(":")[2]
        stopped = subprocess.run([*command, "-port", port, "-stop"], capture_output=True, text=True, check=False)
        assert (stopped.returncode, stopped.stdout.startswith("Stopping")) == (0, True), stopped
        assert lines.read() == "nutchserver: stopped\n"
    assert process.wait() == 0
    again = subprocess.run([*command, "-port", port, "-stop"], capture_output=True, text=True, check=False)
    assert (again.returncode, "no server responds" in again.stderr) == (3, True)
    rejected = subprocess.run([*command, "-port", "0", "-host", "0.0.0.0"], capture_output=True, text=True, check=False)
    assert (rejected.returncode, "rest.tokens.file" in rejected.stderr) == (2, True)
