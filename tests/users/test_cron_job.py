"""The cron job of a Nutch 2 operator as requests: on Nutch's own paths and on ours, whatever befalls the server.

The job's script is that of Nutch 2.4 (``bin/crawl``): inject, then rounds of generate, fetch, parse, updatedb, index.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from nutch2py import Crawl
from nutch2py.cli import main
from tests.counted_kills import Kills
from tests.crawl_loop.test_crawl_command import page
from tests.processes import wait_until
from tests.rest.conftest import TIMEOUT_SECONDS
from tests.site.server import Reply, ScriptedSite
from tests.users.conftest import User

CRAWL_ID = "news"
OWN = {
    "http_agent_name": "newsbot", "http_filter_ipaddress_exclude": "", "fetcher_server_delay": "0",
    "http_dns_resolver": "system",
}  # fmt: skip
ROUNDS = 2
SERVER = "nutch2py nutchserver -port 0"
Row = tuple[object, ...]


class Operator:
    """Sends requests as ``curl`` in a script does; ``address``: of the server that runs now."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str) -> Any:
        """Return what ``curl URL`` prints, parsed."""
        return self._answer(Request(f"{self.address}{path}"))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return what ``curl -H 'Content-Type: application/json' -d BODY URL`` prints."""
        data = json.dumps(body).encode()
        return self._answer(Request(f"{self.address}{path}", data, {"Content-Type": "application/json"}))

    @staticmethod
    def _answer(request: Request) -> Any:
        with urlopen(request, timeout=60) as answer:
            text = answer.read().decode()
            return json.loads(text) if answer.headers["Content-Type"].startswith("application/json") else text

    def until(self, path: str, *states: str) -> dict[str, Any]:
        """Ask again and again until a job is in one of some states, as scripts do."""
        ends = time.monotonic() + TIMEOUT_SECONDS
        while (job := self.get(path))["state"] not in states:
            assert time.monotonic() < ends, job
            threading.Event().wait(0.05)
        return dict(job)


class NutchPaths(Operator):
    """The paths of Nutch 2."""

    def inject(self, url: str) -> str:
        """Start an inject; return the id of the job."""
        seeds = self.post("seed/create", {"id": 1, "name": "news", "seedUrls": [{"id": 1, "url": url}]})
        return self._begin("INJECT", seedDir=seeds)

    def generate(self) -> str:
        """Start a generate."""
        return self._begin("GENERATE", topN="50", normalize=False, filter=False)

    def batch_of(self, job: dict[str, Any]) -> str:
        """Return the batch of a generate, "" when nothing was due."""
        return str(job["result"]["generate.batch.id"]) if job["result"]["exitCode"] == 0 else ""

    def work(self, job: str, batch: str) -> str:
        """Start a job on a batch."""
        return self._begin(job.upper(), batch=batch)

    def _begin(self, kind: str, **args: Any) -> str:
        return str(self.post("job/create", {"crawlId": CRAWL_ID, "confId": "default", "type": kind, "args": args}))

    def end_of(self, job: str) -> dict[str, Any]:
        """Wait for the end of a job."""
        return self.until(f"job/{job}?crawlId={CRAWL_ID}", "FINISHED", "FAILED", "KILLED")


class OurPaths(Operator):
    """The paths of ``/api/v1``."""

    def inject(self, url: str) -> str:
        """Start an inject; return the id of the job."""
        return self._begin(job="inject", seeds=[url])

    def generate(self) -> str:
        """Start a generate."""
        self._batch = f"batch-{time.time_ns()}"
        return self._begin(job="generate", topN=50, noNorm=True, noFilter=True, batchId=self._batch)

    def batch_of(self, job: dict[str, Any]) -> str:
        """Return the batch of a generate, "" when nothing was due."""
        return self._batch if job["exitCode"] == 0 else ""

    def work(self, job: str, batch: str) -> str:
        """Start a job on a batch."""
        return self._begin(job=job, batchId=batch)

    def _begin(self, **request: Any) -> str:
        return str(self.post("api/v1/jobs", {"crawlId": CRAWL_ID, **request})["id"])

    def end_of(self, job: str) -> dict[str, Any]:
        """Wait for the end of a job."""
        return self.until(f"api/v1/jobs/{job}", "finished", "failed", "stopped", "killed")


@pytest.fixture
def news(site: ScriptedSite) -> str:
    """A site; the fetch of one of its pages takes long enough for a server to be killed meanwhile."""
    first = page("/one", "/two", "/gone", text="headlines")
    site.on("/", replace(first, hang=1.5))
    site.on("/one", page("/", "/three", text="harbour reopens"))
    site.on("/two", page("/one", text="tide tables"))
    site.on("/gone", Reply(410))
    site.on("/three", page(text="never fetched"))
    return site.url("/")


def table(folder: Path) -> Iterator[tuple[str, Row]]:
    """Yield what jobs have made of each page but for times and ids."""
    with Crawl(f"embedded:{folder / 'crawldata'}", crawl_id=CRAWL_ID) as crawl:
        for url, row in crawl.pages():
            protocol, parse = row.protocol_status, row.parse_status
            yield url, (
                row.status, row.title, row.text, round(row.score, 6), dict(row.outlinks.decoded_items()),
                dict(row.inlinks.decoded_items()), row.signature, row.markers.get("dist"),
                None if protocol is None else protocol.code, None if parse is None else parse.major,
                row.fetch_interval, row.retries_since_fetch,
            )  # fmt: skip


def found(folder: Path) -> set[tuple[str, str]]:
    """Return the documents of the index."""
    with Crawl(f"embedded:{folder / 'crawldata'}", crawl_id=CRAWL_ID) as crawl:
        return {
            (hit.url, str(hit.title)) for word in ("headlines", "harbour", "tide") for hit in crawl.search(word).hits
        }


def by_commands(folder: Path, url: str, conf: Path) -> None:
    """Crawl as the script does, with its commands."""
    (folder / "urls").write_text(url)
    store = ("-D", f"storage.data.store=embedded:{folder / 'crawldata'}", "--conf", str(conf), "-crawlId", CRAWL_ID)
    assert main(["inject", str(folder / "urls"), *store]) == 0
    for number in range(ROUNDS):
        batch = f"round-{number}"
        made = main(["generate", "-topN", "50", "-noNorm", "-noFilter", "-adddays", "0", "-batchId", batch, *store])
        assert made == 0
        for job in ("fetch", "parse", "updatedb", "index"):
            assert main([job, batch, *store]) == 0


def good(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job that has come to a good end."""
    assert job["state"].lower() == "finished", job
    return job


@pytest.mark.parametrize("paths", [NutchPaths, OurPaths])
def test_rest_requests_replace_crawl_script(
    user: User, site: ScriptedSite, news: str, tmp_path: Path, paths: Callable[[str], NutchPaths | OurPaths]
) -> None:
    user.configures(**OWN)
    with user.started(SERVER) as (process, address):
        cron = paths(address)
        good(cron.end_of(cron.inject(news)))
        batch = cron.batch_of(good(cron.end_of(cron.generate())))
        fetching = cron.work("fetch", batch)
        wait_until(lambda: site.gets("/") == 1)
        with Kills("the server") as kills:
            kills.kill(process)
    with user.started(SERVER) as (_, address):  # the job went on without the server, and is known
        cron = paths(address)
        good(cron.end_of(fetching))
        for job in ("parse", "updatedb"):
            good(cron.end_of(cron.work(job, batch)))
    with user.started(SERVER) as (_, address):  # between two jobs it was stopped and started
        cron = paths(address)
        good(cron.end_of(cron.work("index", batch)))
        for _round in range(ROUNDS - 1):
            batch = cron.batch_of(good(cron.end_of(cron.generate())))
            for job in ("fetch", "parse", "updatedb", "index"):
                good(cron.end_of(cron.work(job, batch)))
    assert site.gets("/") == 1
    by_commands(tmp_path, news, user.folder / "conf")
    ours, theirs = dict(table(user.folder)), dict(table(tmp_path))
    assert ours.keys() == theirs.keys()
    assert len(ours) == 5
    for url, row in theirs.items():
        assert ours[url] == row, url
    assert found(user.folder) == found(tmp_path)
    assert len(found(tmp_path)) == 3
