"""Fixtures of the REST API tests: a server over an empty folder, and a JSON client."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.server.http_server import HttpServer
from tests.jobs.crawl import SETTINGS
from tests.server.running_server import serving

TIMEOUT_SECONDS = 120.0
"""Maximum time of a response and of a job."""


class Client:
    """JSON client of a server; ``token``: its bearer token, "" for none."""

    def __init__(self, server: HttpServer, token: str = "") -> None:
        self.server, self.token = server, token

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the status and the body, decoded if it is JSON."""
        connection = http.client.HTTPConnection(*self.server.address, timeout=TIMEOUT_SECONDS)
        sent_headers = {"Content-Type": "application/json"} if body is not None else {}
        if self.token:
            sent_headers["Authorization"] = f"Bearer {self.token}"
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        connection.request(method, path, data, {**sent_headers, **headers})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        kind = response.headers.get("Content-Type", "")
        return response.status, json.loads(text) if kind.startswith(
            ("application/json", "application/problem+json")
        ) else text.decode()

    def get(self, path: str) -> Any:
        """Return the body of a GET that succeeds."""
        status, body = self.request("GET", path)
        assert status == 200, body
        return body

    def start_job(self, **request: Any) -> dict[str, Any]:
        """Start a job and return it."""
        status, job = self.request("POST", "/api/v1/jobs", request)
        assert status == 201, job
        return dict(job)

    def wait_for_state(self, job_id: str, *states: str) -> dict[str, Any]:
        """Wait until a job is in one of ``states``, and return it."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while (job := self.get(f"/api/v1/jobs/{job_id}"))["state"] not in states:
            assert time.monotonic() < deadline, job
            threading.Event().wait(0.05)
        return dict(job)

    def run_job(self, **request: Any) -> dict[str, Any]:
        """Run a job until it has finished, and return it; fail if it does not succeed."""
        job = self.wait_for_state(self.start_job(**request)["id"], "finished", "failed", "killed", "stopped")
        assert job["state"] == "finished", job
        return job


def running(conf: Configuration) -> AbstractContextManager[HttpServer]:
    """Serve a configuration on a free port."""
    return serving(HttpServer(conf, ("127.0.0.1", 0)))


def settings(folder: Path, **more: str) -> Configuration:
    """Return the configuration of a server with its crawls and state in ``folder``."""
    properties = {
        **SETTINGS,
        "storage.data.store": f"embedded:{folder / 'crawldata'}",
        "index.embedded.path": str(folder / "index"),
        "rest.folder": str(folder / "rest"),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return Configuration.load(overrides=properties)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Yield a client of a server without tokens."""
    with running(settings(tmp_path)) as server:
        yield Client(server)


@pytest.fixture(scope="session")
def silent() -> Iterator[str]:
    """Yield the URL of a server that never responds: a crawl of it outlasts every test."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
