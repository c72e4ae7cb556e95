"""A server over an empty folder, and a client that speaks JSON with it."""

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
from tests.server.running_server import answering

PATIENCE = 120.0


class Client:
    """Asks a server; ``token``: whose."""

    def __init__(self, server: HttpServer, token: str = "") -> None:
        self.server, self.token = server, token

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the status, and the answer as JSON if it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.address[1], timeout=PATIENCE)
        given = {"Content-Type": "application/json"} if body is not None else {}
        if self.token:
            given["Authorization"] = f"Bearer {self.token}"
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        connection.request(method, path, data, {**given, **headers})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = answer.headers.get("Content-Type", "")
        return answer.status, json.loads(text) if kind.startswith(
            ("application/json", "application/problem+json")
        ) else text.decode()

    def get(self, path: str) -> Any:
        """Return what is there."""
        status, answer = self.ask("GET", path)
        assert status == 200, answer
        return answer

    def begin(self, **request: Any) -> dict[str, Any]:
        """Begin a job."""
        status, job = self.ask("POST", "/api/v1/jobs", request)
        assert status == 201, job
        return dict(job)

    def until(self, job_id: str, *states: str) -> dict[str, Any]:
        """Wait until a job is in one of some states, and return it."""
        ends = time.monotonic() + PATIENCE
        while (job := self.get(f"/api/v1/jobs/{job_id}"))["state"] not in states:
            assert time.monotonic() < ends, job
            threading.Event().wait(0.05)
        return dict(job)

    def done(self, **request: Any) -> dict[str, Any]:
        """Run a job to its end, which is a good one."""
        job = self.until(self.begin(**request)["id"], "finished", "failed", "killed", "stopped")
        assert job["state"] == "finished", job
        return job


def running(conf: Configuration) -> AbstractContextManager[HttpServer]:
    """Serve a configuration on a free port."""
    return answering(HttpServer(conf, ("127.0.0.1", 0)))


def settings(folder: Path, **more: str) -> Configuration:
    """Return the configuration of a server whose crawls and state are in a folder."""
    given = {
        **SETTINGS,
        "storage.data.store": f"embedded:{folder / 'crawldata'}",
        "index.embedded.path": str(folder / "index"),
        "rest.folder": str(folder / "rest"),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return Configuration.load(overrides=given)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Give a client of a server that asks for no tokens."""
    with running(settings(tmp_path)) as server:
        yield Client(server)


@pytest.fixture(scope="session")
def silent() -> Iterator[str]:
    """Give a page whose server never says a word: a crawl of it goes on for longer than a test looks."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
