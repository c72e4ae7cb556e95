"""A client generated from the OpenAPI document drives a whole crawl."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from nutch2py.rest.access.tokens import Role, add_token
from nutch2py.rest.api_routes import OPERATIONS
from nutch2py.rest.dispatch.openapi import build_document
from tests.jobs.crawl import site
from tests.rest.conftest import TIMEOUT_SECONDS, running, settings


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Generate a client and yield the name of its package, which can be imported."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(json.dumps(build_document(OPERATIONS)))
    (folder / "config.json").write_text(json.dumps({"post_hooks": []}))
    options = ["generate", "--path", "openapi.json", "--config", "config.json", "--meta", "none", "--output-path"]
    command = [sys.executable, "-m", "openapi_python_client", *options, "nutch2py_rest", "--fail-on-warning"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    sys.path.insert(0, str(folder))
    yield "nutch2py_rest"
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == "nutch2py_rest"]:
        del sys.modules[name]


class Caller:
    """Calls the generated functions by operation id, and creates values of the generated types."""

    def __init__(self, package: str, url: str, token: str) -> None:
        self._package = package
        self._client = import_module(package).AuthenticatedClient(base_url=url, token=token)

    def close(self) -> None:
        """Close the connection."""
        self._client.get_httpx_client().close()

    def model(self, name: str, **fields: Any) -> Any:
        """Return a value of a generated type."""
        return getattr(import_module(f"{self._package}.models"), name)(**fields)

    def call(self, tag: str, operation: str, *path: str, **params: Any) -> tuple[int, Any]:
        """Return the status and the response, which is of its generated type."""
        module = import_module(f"{self._package}.api.{tag}.{operation}")
        response = module.sync_detailed(*path, client=self._client, **params)
        return int(response.status_code), response.parsed

    def run_job(self, job: str, **fields: Any) -> Any:
        """Run a job until it has finished, and return it."""
        names = {"updatedb": "UpdateDb", "readdb": "ReadDbStats", "parse": "ParseJob"}
        kind = f"{names.get(job, job.title())}Request"
        tag = getattr(import_module(f"{self._package}.models"), f"{kind}Job")(job)
        status, started = self.call("jobs", "post_jobs", body=self.model(kind, job=tag, crawl_id="c", **fields))
        assert status == 201, started
        return self.wait_until_finished(started.id)

    def wait_until_finished(self, job_id: str) -> Any:
        """Poll a job until it has finished."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            status, job = self.call("jobs", "get_jobs_id", job_id)
            assert status == 200, job
            if job.state.value not in ("running", "stopping", "killing"):
                return job
            assert time.monotonic() < deadline, job
            threading.Event().wait(0.1)


def test_generated_client_runs_whole_crawl(generated: str, tmp_path: Path, silent: str) -> None:
    conf = settings(tmp_path, rest_tokens_file=str(tmp_path / "tokens"))
    token = add_token(conf, "robot", Role.RUN)
    with (
        running(conf) as server,
        site() as url,
        closing(Caller(generated, server.url.rstrip("/"), token)) as caller,
    ):
        new = caller.model("NewSeedList", id="mine", urls=[f"{url}/7"])
        assert caller.call("seeds", "post_seeds", body=new)[0] == 201
        inject = caller.run_job("inject", seed_list="mine")
        assert (inject.state.value, inject.exit_code) == ("finished", 0), inject
        for batch in ("one", "two"):
            caller.run_job("generate", top_n=5, batch_id=batch)
            assert [each.id for each in caller.call("batches", "get_batches", crawl_id="c")[1]] == [batch]
            for step in ("fetch", "parse", "updatedb", "index"):
                ended = caller.run_job(step, batch_id=batch)
                assert (ended.state.value, ended.exit_code) == ("finished", 0), ended
        table_stats = caller.call("statistics", "get_statistics", crawl_id="c")[1].table_stats
        assert table_stats.status.to_dict()["status_fetched"] > 2
        rows = caller.call("rows", "get_rows", crawl_id="c", limit=3)[1]
        assert len(rows.rows) == 3
        log = caller.call("log", "get_log", crawl_id="c")[1]
        assert {entry.job for entry in log} == {"inject", "generate", "fetch", "parse", "updatedb", "index"}
        # an endless crawl is aborted, and the next job uses its table
        stay = import_module(f"{generated}.models").CrawlRequestStay("host")
        kind = import_module(f"{generated}.models").CrawlRequestJob("crawl")
        body = caller.model("CrawlRequest", job=kind, crawl_id="c", seeds=[silent], stay=stay)
        started = caller.call("jobs", "post_jobs", body=body)[1]
        assert caller.call("jobs", "post_jobs_id_abort", started.id)[1].state.value == "killed"
        assert caller.run_job("readdb").exit_code == 0
        assert caller.call("jobs", "delete_jobs_id", started.id)[0] == 200
        assert caller.call("jobs", "get_jobs_id", started.id)[0] == 404
        # by the clock
        daily = caller.model("NewSchedule", id="daily", cron="30 4 * * *", job=body)
        status, stored = caller.call("schedules", "post_schedules", body=daily)
        assert (status, stored.created_by, stored.job.stay) == (201, "robot", stay)
        assert [each.id for each in caller.call("schedules", "get_schedules")[1]] == ["daily"]
        assert caller.call("schedules", "delete_schedules_id", "daily")[0] == 200
        # error responses have a type, too
        status, problem = caller.call("server", "get_metrics")
        assert (status, "nutch2py_jobs" in problem) == (200, True)
        status, problem = caller.call("nutch2", "get_admin")
        assert (status, problem.status, "admin" in problem.error) == (403, 403, True)
