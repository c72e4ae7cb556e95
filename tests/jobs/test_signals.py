"""SIGINT and SIGTERM: jobs stop, keep finished work, return the exit code of signals, and resume when run again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.crawl_reader import CrawlReader
from nutch2py.joblog.job_entry import JobState
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.records.webpage import Mark
from tests.counted_kills import strike
from tests.jobs.rows import marked, put
from tests.processes import HEEDING, wait_until
from tests.site.server import Reply, ScriptedSite

PAGES = 40


@pytest.fixture
def site() -> Iterator[ScriptedSite]:
    with ScriptedSite() as running:
        running.on("/robots.txt", Reply(404))
        for number in range(PAGES):
            # the first ten respond at once, others after a minute, and the last ones send single bytes for ever
            drip = Reply(length=False, pieces=repeat(b"x"), pause=0.1)
            running.on(f"/{number}", drip if number >= 30 else Reply(body=b"<p>words", hang=0 if number < 10 else 60))
        yield running


def command(conf: Configuration, *words: str) -> list[str]:
    settings = {
        "storage.data.store": conf.get("storage.data.store", ""),
        "storage.embedded.map.size": conf.get("storage.embedded.map.size", ""),
        "http.agent.name": "nutch-test",
        "http.filter.ipaddress.exclude": "",
        "fetcher.server.delay": "0",
        "fetcher.threads.per.queue": "50",
    }
    options = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    return [sys.executable, "-c", HEEDING, *words, *options]


LOADING = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
asked, at = -1, int(sys.argv.pop(1))
class Finder:
    def find_spec(self, name, path=None, target=None):
        global asked
        asked += 1 if asked >= 0 or name == "nutch2py.cli" else 0
        if asked == at:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv[0] = "nutch2py"
try:
    runpy.run_module("nutch2py", run_name="__main__", alter_sys=True)
finally:
    print("asked", asked)
"""
"""The command, sent SIGINT when a module is looked for; its last line says how many were."""


def test_command_interrupted_while_loading_reports_it(conf: Configuration, tmp_path: Path) -> None:
    put(conf, {"http://a.test/": {}})

    def stopped(at: int) -> tuple[int, str, str]:
        words = command(conf, "readdb", "-stats")[3:]
        process = subprocess.run(
            [sys.executable, "-c", LOADING, str(at), *words], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        return process.returncode, process.stdout, process.stderr

    code, printed, _ = stopped(1_000_000)
    whole = int(printed.split()[-1])
    assert (code, whole > 50) == (0, True)
    for at in [0, 1, *range(2, whole, whole // 12), whole]:  # 68 of 300, where an extension is loaded, crashed
        code, _, errors = stopped(at)
        assert (code, errors) == (130, "interrupted: run the same command again to continue\n"), at


@pytest.mark.parametrize(
    ("number", "code", "runner", "group"),
    [
        (signal.SIGINT, 130, "inline", False),
        (signal.SIGTERM, 143, "inline", False),
        (signal.SIGINT, 130, "local", True),
        (signal.SIGTERM, 143, "local", False),
    ],
)
def test_interrupted_fetch_keeps_results_and_reports_it(
    site: ScriptedSite, conf: Configuration, tmp_path: Path, number: signal.Signals, code: int, runner: str, group: bool
) -> None:
    put(conf, {site.url(f"/{page}"): {"fetch_time": 1} for page in range(PAGES)})
    generate(conf, batch_id="b")
    words = ("fetch", "b", "-threads", "50", "-r", runner)
    process = subprocess.Popen(
        command(conf, *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=tmp_path,
    )
    wait_until(lambda: sum(site.gets(f"/{page}") for page in range(PAGES)) == PAGES or process.poll() is not None)
    time.sleep(0.3)  # the ten answers are on their way
    assert strike(process, number, group=group)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err.decode()
    assert b"FetcherJob: finished" not in out
    assert b"Traceback" not in err
    assert marked(conf, Mark.FETCH, "b") == {site.url(f"/{page}") for page in range(10)}
    (entry,) = (each for each in CrawlReader(conf).jobs() if each.job == "fetch")
    assert (entry.state, entry.exit_code) == (JobState.STOPPED, code)
    assert entry.counters["FetcherStatus"] == {"SUCCESS": 10, "bytes_downloaded": 80}
    assert sum(amount for name, amount in entry.counters["fetch_size_bytes"].items() if name != "sum") == 10
    for page in range(PAGES):
        site.on(f"/{page}", Reply(body=b"<p>words"))
    again = subprocess.run(command(conf, *words, "-resume"), capture_output=True, check=False, cwd=tmp_path)
    assert again.returncode == 0, again.stderr.decode()
    assert len(marked(conf, Mark.FETCH, "b")) == PAGES
    assert [site.gets(f"/{page}") for page in range(10)] == [1] * 10
