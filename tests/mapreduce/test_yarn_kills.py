"""Tasks and drivers on a real YARN are killed at work: the result equals that of an undisturbed run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState, journal_prefix
from nutch2py.records.webpage import CrawlStatus, DerivedRow, Mark, WebPage
from nutch2py.table import TableQuery, open_store, prefix_range
from nutch2py.url.keys import reverse_url
from tests.conftest import ROOT
from tests.counted_kills import Kills, strike
from tests.jobs import crawl, rows
from tests.mapreduce.hadoop_cluster import Cluster
from tests.processes import wait_until

BATCH = "test-1"
SLOW_FETCH = {**crawl.SETTINGS, "fetcher.server.delay": "1", "fetcher.threads.per.queue": "1"}
SLOW_WRITES = {**crawl.SETTINGS, "hbase.thrift.write.rows": "10", "hbase.thrift.write.bytes": "2000"}
PAGES, LINKS = 100, 80


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give a seed file of nine pages of a site that is served."""
    path = tmp_path_factory.mktemp("seeds") / "seeds.txt"
    with crawl.site() as url:
        path.write_text("".join(f"{url}/{number}\n" for number in range(9)))
        yield str(path)


def on_yarn(cluster: Cluster, hbase: Any, name: str, settings: dict[str, str]) -> Configuration:
    store = {"storage.data.store": hbase.location.strip(), "storage.crawl.id": name, "storage.embedded.shared": "false"}
    return cluster.configuration({**store, **settings})


def inline(folder: Path, settings: dict[str, str]) -> Configuration:
    return Configuration.load(overrides={**settings, "storage.data.store": f"embedded:{folder / 'inline'}"})


def to_fetch(conf: Configuration, seeds: str) -> None:
    """Make a batch that waits for its fetch."""
    here = conf.copy()
    here.set("mapreduce.runner", "inline")
    crawl.inject(here, seeds)
    crawl.generate(here, batch_id=BATCH)


def to_update(conf: Configuration) -> None:
    """Make a batch that waits for updatedb: pages with links to 8000 rows that are not there."""
    marks = {Mark.GENERATE: BATCH, Mark.FETCH: BATCH, Mark.PARSE: BATCH, Mark.DISTANCE: "0"}
    pages = {
        f"http://h{number % 7}.test/{number}": {
            "status": CrawlStatus.FETCHED,
            "marks": marks,
            "batch_id": BATCH,
            "outlinks": {f"http://l{link % 5}.test/{number}/{link}": f"to\r{link}" for link in range(LINKS)},
        }
        for number in range(PAGES)
    }
    rows.put(conf, pages)
    BatchListStore(conf).store.create()


def journal_entries(conf: Configuration) -> int:
    """Return how many blocks of changes the reducers of updatedb have kept."""
    whole = TableQuery(frozenset({DerivedRow.data}), prefix_range(journal_prefix(BATCH)))
    return sum(1 for _ in open_store(conf, DerivedRow).scan(whole))


def is_written(conf: Configuration) -> bool:
    """Return whether writing of the journal has started: the first page has lost its mark, or exists."""
    key = reverse_url("http://h0.test/0")
    page = open_store(conf, WebPage).get(key, frozenset({WebPage.markers}))
    linked = open_store(conf, WebPage).get(reverse_url("http://l0.test/0/0"), frozenset({WebPage.score}))
    return linked is not None or (page is not None and page.markers.get(Mark.GENERATE) is None)


class Killer(threading.Thread):
    """Waits for the tasks of some jobs, and for a moment in each, and kills one of them."""

    def __init__(self, cluster: Cluster, *targets: tuple[str, str, Callable[[], object]]) -> None:
        super().__init__(daemon=True)
        self._cluster, self._targets = cluster, targets
        self.kills = Kills("tasks on YARN", len(targets))

    def run(self) -> None:
        for job, kind, moment in self._targets:
            while True:
                found = self._cluster.tasks(job, kind)
                if found and moment():
                    self.kills.kill(found[0])
                    break
                time.sleep(0.02)


def test_killed_mapper_and_reducer_of_fetch_are_rerun(
    hadoop_cluster: Cluster, hbase: Any, seeds: str, tmp_path: Path
) -> None:
    conf, reference = on_yarn(hadoop_cluster, hbase, "kill1", SLOW_FETCH), inline(tmp_path, SLOW_FETCH)
    for each in (conf, reference):
        to_fetch(each, seeds)
    killer = Killer(
        hadoop_cluster,
        ("FetcherJob", "mapper", lambda: True),
        ("FetcherJob", "reducer", lambda: rows.marked(conf, Mark.FETCH)),
    )
    with killer.kills:
        killer.start()
        result = crawl.fetch(conf, BATCH)
        killer.join(60)
    crawl.fetch(reference, BATCH)
    assert result.count("Job Counters", "Failed map tasks") == 1
    assert result.count("Job Counters", "Failed reduce tasks") == 1
    assert crawl.table(conf) == crawl.table(reference)


def test_killed_tasks_of_updatedb_are_rerun(
    hadoop_cluster: Cluster, hbase: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    conf, reference = on_yarn(hadoop_cluster, hbase, "kill2", SLOW_WRITES), inline(tmp_path, crawl.SETTINGS)
    for each in (conf, reference):
        to_update(each)
    killer = Killer(
        hadoop_cluster,
        ("DbUpdaterJob", "mapper", lambda: True),
        ("DbUpdaterJob", "reducer", lambda: journal_entries(conf)),
        ("JournalJob", "mapper", lambda: is_written(conf)),
    )
    with killer.kills:
        killer.start()
        crawl.updatedb(conf, BATCH)
        killer.join(60)
    crawl.updatedb(reference, BATCH)
    said = re.findall(r"(DbUpdaterJob.*): application_\S+: .*, (\d+) of them failed", capfd.readouterr().out)
    assert said == [(f"DbUpdaterJob {BATCH}", "2"), (f"DbUpdaterJob: writing {BATCH}", "1")]
    rows_then = crawl.table(conf)
    assert len(rows_then) == PAGES * (1 + LINKS)
    assert rows_then == crawl.table(reference)


def start(cluster: Cluster, conf: Configuration, *words: str, scratch: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a command with a configuration, and with a folder of its own for files for temporary use."""
    own = {**cluster.settings, "storage.data.store": "", "storage.crawl.id": "", **SLOW_FETCH, **SLOW_WRITES}
    options = [word for name in own for word in ("-D", f"{name}={conf.get(name, '')}")]
    command = [sys.executable, "-m", "nutch2py.cli", *words, "--conf", str(cluster.conf_folder), *options]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **({"TMPDIR": str(scratch)} if scratch else {})})


def test_terminated_driver_of_fetch_ends_application_and_resumes(
    hadoop_cluster: Cluster, hbase: Any, seeds: str, tmp_path: Path
) -> None:
    conf, reference = on_yarn(hadoop_cluster, hbase, "kill3", SLOW_FETCH), inline(tmp_path, SLOW_FETCH)
    for each in (conf, reference):
        to_fetch(each, seeds)
    driver = start(hadoop_cluster, conf, "fetch", BATCH)
    wait_until(lambda: hadoop_cluster.tasks("FetcherJob", "reducer") or driver.poll() is not None)
    assert driver.poll() is None
    assert "nutch2py kill3 FetcherJob test-1" in " ".join(hadoop_cluster.running())
    assert strike(driver, signal.SIGTERM)
    assert driver.returncode == 143
    wait_until(lambda: not hadoop_cluster.running() and not hadoop_cluster.tasks("FetcherJob", "reducer"))
    assert start(hadoop_cluster, conf, "fetch", BATCH).wait() == 0
    crawl.fetch(reference, BATCH)
    assert crawl.table(conf) == crawl.table(reference)


def test_killed_driver_of_updatedb_is_resumed(hadoop_cluster: Cluster, hbase: Any, tmp_path: Path) -> None:
    """Once before the journal is complete, and once while it is written."""
    conf, reference = on_yarn(hadoop_cluster, hbase, "kill4", SLOW_WRITES), inline(tmp_path, crawl.SETTINGS)
    scratch, unpacked = tmp_path / "scratch", set(Path("/tmp").glob("hadoop-unjar*"))
    scratch.mkdir()
    for each in (conf, reference):
        to_update(each)
    for job, kind, moment in (
        ("DbUpdaterJob", "reducer", lambda: journal_entries(conf)),
        ("JournalJob", "mapper", lambda: is_written(conf)),
    ):
        driver = start(hadoop_cluster, conf, "updatedb", BATCH, scratch=scratch)
        wait_until(lambda moment=moment, driver=driver: moment() or driver.poll() is not None)
        assert strike(driver)
        state = BatchListStore(conf).get_record(BATCH)
        assert (state is not None and state.state == BatchState.APPLYING) == (job == "JournalJob")
        wait_until(lambda job=job, kind=kind: not hadoop_cluster.running() and not hadoop_cluster.tasks(job, kind))
        assert len(list(scratch.glob("nutch2py-job-*"))) == 1  # the second driver took away what the first had left
    assert start(hadoop_cluster, conf, "updatedb", BATCH, scratch=scratch).wait() == 0
    assert list(scratch.iterdir()) == []
    assert set(Path("/tmp").glob("hadoop-unjar*")) <= unpacked
    crawl.updatedb(reference, BATCH)
    assert crawl.table(conf) == crawl.table(reference)
