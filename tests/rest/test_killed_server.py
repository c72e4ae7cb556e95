"""A server that is killed during a write loses nothing that it acknowledged."""

from __future__ import annotations

import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http import HTTPStatus
from pathlib import Path

from tests.counted_kills import Kills
from tests.processes import wait_until
from tests.rest.conftest import Client, running, settings


def test_killed_server_keeps_acknowledged_state(tmp_path: Path) -> None:
    """Kill the server three times while it writes jobs, seeds, schedules and log lines, with requests pending."""
    command = [sys.executable, "-m", "nutch2py", "serve", "-port", "0", "-D", f"rest.folder={tmp_path / 'rest'}",
             "-D", f"storage.data.store=embedded:{tmp_path / 'data'}", "-D", "rest.requests.per.second=0",
             "-D", "rest.jobs.running=1", "-D", f"index.embedded.path={tmp_path / 'index'}"]  # fmt: skip
    stored: dict[str, set[str]] = {"seeds": set(), "schedules": set(), "configurations": set()}
    started, sent, chance = set[str](), [0], random.Random(7)

    def send_requests(port: int, kind: str) -> None:
        """Send requests until the server is gone."""
        with suppress(OSError, http.client.HTTPException):
            while True:
                sent[0] += 1
                name = f"{kind}-{sent[0]}-{chance.randrange(10**6)}"
                body = {"seeds": {"id": name, "urls": [f"http://{name}/{n}" for n in range(300)]},
                        "schedules": {"id": name, "cron": "30 4 * * *", "job": {"job": "inject", "seeds": [f"http://{name}/"]}},
                        "configurations": {"id": name, "properties": {"generate.max.count": "7"}},
                        "jobs": {"job": "inject", "crawlId": name, "seeds": [f"http://{name}/"]}}[kind]  # fmt: skip
                with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                    headers = {"Content-Type": "application/json"}
                    connection.request("POST", f"/api/v1/{kind}", json.dumps(body), headers)
                    response = connection.getresponse()
                    body = json.loads(response.read())
                if response.status != HTTPStatus.CREATED:  # the limit of jobs is reached
                    threading.Event().wait(0.2)
                elif kind == "jobs":
                    started.add(body["id"])
                else:
                    stored[kind].add(name)

    with Kills("servers", 3) as kills:
        for _ in range(3):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            with process.stdout as lines:
                port = int(lines.readline().rstrip("/\n").rpartition(":")[2])
                with ThreadPoolExecutor(4) as pool:
                    for kind in (*stored, "jobs"):
                        pool.submit(send_requests, port, kind)
                    before = len(stored["seeds"])
                    wait_until(lambda before=before: len(stored["seeds"]) >= before + 8 + chance.randrange(12))
                    kills.kill(process)
    with running(settings(tmp_path, rest_jobs_running="2", rest_requests_per_second="0")) as server:
        client = Client(server)
        found = {kind: {each["id"]: each for each in client.get(f"/api/v1/{kind}")} for kind in ("seeds", "schedules")}
        configurations = {*client.get("/api/v1/configurations")} - {"default"}
        jobs = {job["id"]: job for job in client.get("/api/v1/jobs?limit=1000")}
        for kind, names in (("seeds", {*found["seeds"]}), ("schedules", {*found["schedules"]}),
                            ("configurations", configurations)):  # fmt: skip
            assert stored[kind] <= names
            assert len(names - stored[kind]) <= 3, "at most one pending request at each kill"
        assert all(len(each["urls"]) == 300 for each in found["seeds"].values())
        assert started <= {*jobs}
        assert len(jobs.keys() - started) <= 3
        states = {client.wait_for_state(job, "finished", "failed", "killed")["state"] for job in jobs}
        assert started
        assert states <= {"finished", "killed"}
        assert all(client.get(f"/api/v1/jobs/{job}")["state"] == "finished" for job in started)
        lines = (tmp_path / "rest" / "audit.log").read_bytes().splitlines()
        entries = [json.loads(line) for line in lines if line.endswith(b"}")]
        assert len(lines) - len(entries) <= 3
        assert {name for names in stored.values() for name in names} | started <= {each["detail"] for each in entries}


def test_partial_files_of_killed_server_are_removed(client: Client, tmp_path: Path) -> None:
    client.request("POST", "/api/v1/seeds", {"id": "a", "urls": []})
    folder = tmp_path / "rest" / "seeds"
    for name, age in ((".b.json.12345678", 7200), (".c.json.12345678", 0)):
        (folder / name).write_bytes(b"{")
        os.utime(folder / name, (time.time() - age,) * 2)
    assert [each["id"] for each in client.get("/api/v1/seeds")] == ["a"]
    client.request("POST", "/api/v1/seeds", {"id": "b", "urls": []})
    assert sorted(path.name for path in folder.iterdir()) == [".c.json.12345678", ".lock", "a.json", "b.json"]
