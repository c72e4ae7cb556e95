"""A fetch in a process that may open few files."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from nutch2py.fetcher.runtime import fd_budget
from nutch2py.fetcher.runtime.fd_budget import compute_fd_budget
from tests.site.server import Reply, ScriptedSite

_CHILD = """
import json, resource, sys
from pathlib import Path
from tests.fetcher.conftest import Crawl, loopback
soft, hard, folder, urls = json.loads(sys.argv[1])
import scrapy.crawler, scrapy.core.engine
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
crawl = Crawl(loopback(Path(folder), http_timeout="10000", fetcher_threads_per_queue="100"))
crawl(*urls, threads=100)
print(json.dumps(crawl.report.counters))
"""


@pytest.mark.parametrize(("soft", "hard", "warns"), [(64, 64, True), (64, 1024, False)])
def test_low_descriptor_limit_loses_no_page(
    site: ScriptedSite, tmp_path: Path, soft: int, hard: int, warns: bool
) -> None:
    """A missing socket is not blamed on the server; the process raises its own limit."""
    paths = [f"/{number}" for number in range(100)]
    for path in paths:
        site.on(path, Reply(body=b"<p>words", hang=0.3))
    asked = json.dumps([soft, hard, str(tmp_path), [site.url(path) for path in paths]])
    child = subprocess.run([sys.executable, "-c", _CHILD, asked], capture_output=True, text=True, check=True)
    assert json.loads(child.stdout.splitlines()[-1]) == {"SUCCESS": 100}
    assert ("raise the limit (ulimit -n" in child.stderr) is warns
    assert site.most_at_once > (50 if not warns else 1)


@pytest.mark.parametrize(
    ("limits", "asked", "found"),
    [
        ((1000, 1000), (10, 200, 64), (10, 200, 64)),
        ((1000, 1000), (800, 200, 1600), (800, 150, 950)),
        ((1000, 1000), (2000, 200, 4000), (950, 0, 950)),
        ((40, 40), (10, 200, 64), (1, 0, 1)),
        ((resource.RLIM_INFINITY,) * 2, (9000, 200, 18_000), (9000, 200, 18_000)),
    ],
)
def test_descriptors_are_allotted_to_threads_first(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], asked: tuple[int, int, int], found: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(fd_budget.resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(fd_budget.resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(fd_budget, "count_open_files", lambda: 10)
    assert compute_fd_budget(*asked) == found
