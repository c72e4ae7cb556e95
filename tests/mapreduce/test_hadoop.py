"""Jobs on a real YARN, HDFS and HBase."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.jobs.index import index
from nutch2py.jobs.inject import InjectorJob
from nutch2py.jobs.readdb import dump
from nutch2py.mapreduce.driver import JobResult, run_job
from nutch2py.mapreduce.splits import split_files
from tests.conftest import ROOT
from tests.jobs import crawl
from tests.mapreduce.hadoop_cluster import Cluster, wait_until

Table = dict[str, dict[str, bytes]]
SLOW = {**crawl.SETTINGS, "fetcher.server.delay": "0.7", "fetcher.threads.per.queue": "1"}

SHOWN = dict.fromkeys(("content", "headers", "links", "text"), False)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with crawl.site() as url:
        yield url


@pytest.fixture
def seeds(site: str, tmp_path: Path) -> str:
    path = tmp_path / "seeds.txt"
    path.write_text("".join(f"{site}/{number}\n" for number in range(9)))
    return str(path)


def inline(folder: Path, settings: dict[str, str]) -> Configuration:
    store = {
        "storage.data.store": f"embedded:{folder / 'inline'}",
        "index.embedded.path": str(folder / "index-inline"),
    }
    return Configuration.load(overrides={**settings, **store})


def on_yarn(cluster: Cluster, folder: Path, settings: dict[str, str]) -> Configuration:
    store = {"storage.data.store": f"embedded:{folder / 'yarn'}", "index.embedded.path": str(folder / "index-yarn")}
    return cluster.configuration({**store, **settings})


def more_than_one_task_each(result: JobResult, reduces: bool) -> None:
    assert result.count("Job Counters", "Launched map tasks") > 1
    assert (result.count("Job Counters", "Launched reduce tasks") > 1) == reduces


def test_a_crawl_on_yarn_and_hbase_ends_in_the_table_of_an_inline_crawl(
    hadoop_cluster: Cluster, hbase: Any, seeds: str, tmp_path: Path
) -> None:
    store = {"storage.data.store": hbase.location, "storage.crawl.id": "yarn"}
    conf = on_yarn(hadoop_cluster, tmp_path, {**crawl.SETTINGS, **store})
    reference = inline(tmp_path, crawl.SETTINGS)
    crawl.rounds(reference, seeds, 1)
    crawl.inject(conf, seeds)
    _, generated = crawl.generate(conf, top_n=20, batch_id="test-1")
    assert generated == 9
    more_than_one_task_each(crawl.fetch(conf, "test-1"), reduces=True)
    more_than_one_task_each(crawl.parse(conf, "test-1"), reduces=False)
    more_than_one_task_each(crawl.updatedb(conf, "test-1"), reduces=True)
    assert crawl.table(conf) == crawl.table(reference)
    indexed = index(conf, "test-1")
    assert indexed.count("IndexerStatus", "added") == index(reference, "test-1").count("IndexerStatus", "added") > 3
    left = hadoop_cluster.hadoop("fs", "-ls", "-C", "nutch2py").splitlines()
    assert len(left) == 1  # the package; the jobs' own files are gone
    assert left[0].endswith(".tar.gz")


def test_killed_tasks_are_run_again_without_a_second_effect(
    hadoop_cluster: Cluster, seeds: str, tmp_path: Path
) -> None:
    conf, reference = on_yarn(hadoop_cluster, tmp_path, SLOW), inline(tmp_path, SLOW)
    for each in (conf, reference):
        each.set("mapreduce.runner", "inline")
        crawl.inject(each, seeds)
        crawl.generate(each, batch_id="test-1")
    conf.set("mapreduce.runner", "hadoop")
    killed: dict[str, int] = {}
    killer = threading.Thread(target=_kill_one_of_each, args=(hadoop_cluster, "FetcherJob", killed), daemon=True)
    killer.start()
    result = crawl.fetch(conf, "test-1")
    killer.join()
    crawl.fetch(reference, "test-1")
    assert result.count("Job Counters", "Failed map tasks") == 1
    assert result.count("Job Counters", "Failed reduce tasks") == 1
    assert crawl.table(conf) == crawl.table(reference)


def _kill_one_of_each(cluster: Cluster, job: str, killed: dict[str, int]) -> None:
    for kind in ("mapper", "reducer"):
        wait_until(lambda kind=kind: cluster.tasks(job, kind))
        killed[kind] = cluster.tasks(job, kind)[0]
        os.kill(killed[kind], signal.SIGKILL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_the_application_ends_with_its_driver_and_a_rerun_finishes(
    hadoop_cluster: Cluster, seeds: str, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    conf, reference = on_yarn(hadoop_cluster, tmp_path, SLOW), inline(tmp_path, SLOW)
    for each in (conf, reference):
        each.set("mapreduce.runner", "inline")
        crawl.inject(each, seeds)
        crawl.generate(each, batch_id="test-1")
    settings = {**SLOW, **hadoop_cluster.settings, "storage.data.store": conf.get("storage.data.store", "")}
    words = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    command = [
        sys.executable,
        "-m",
        "nutch2py.cli",
        "fetch",
        "test-1",
        "--conf",
        str(hadoop_cluster.conf_folder),
        *words,
    ]
    driver = subprocess.Popen(command, cwd=ROOT)
    wait_until(lambda: hadoop_cluster.tasks("FetcherJob", "reducer") or driver.poll() is not None)
    assert driver.poll() is None
    assert "nutch2py - FetcherJob test-1" in " ".join(hadoop_cluster.running())
    driver.send_signal(number)
    assert driver.wait() == code
    wait_until(lambda: not hadoop_cluster.running() and not hadoop_cluster.tasks("FetcherJob", "reducer"))
    conf.set("mapreduce.runner", "local")
    crawl.fetch(conf, "test-1")
    crawl.fetch(reference, "test-1")
    assert crawl.table(conf) == crawl.table(reference)


def test_a_task_tells_what_is_wrong_and_reads_the_files_of_the_client(
    hadoop_cluster: Cluster, seeds: str, tmp_path: Path
) -> None:
    broken = {"urlfilter.regex.file": "broken-urlfilter.txt", "mapreduce.map.maxattempts": "1"}
    conf = on_yarn(hadoop_cluster, tmp_path, {**crawl.SETTINGS, **broken})
    with pytest.raises(ConfigurationError, match=r"broken-urlfilter\.txt"):  # the driver of inject would find it, too
        run_job(InjectorJob, conf, split_files([Path(seeds)], 2), title="InjectorJob")


def test_a_dump_comes_back_as_it_would_be_written_here(hadoop_cluster: Cluster, seeds: str, tmp_path: Path) -> None:
    conf, reference = on_yarn(hadoop_cluster, tmp_path, crawl.SETTINGS), inline(tmp_path, crawl.SETTINGS)
    for each in (conf, reference):
        each.set("mapreduce.runner", "inline")
        each.set("injector.current.time", "1")
        crawl.inject(each, seeds)
    conf.set("mapreduce.runner", "hadoop")
    dump(conf, tmp_path / "out-yarn", "", SHOWN)
    dump(reference, tmp_path / "out-inline", "", SHOWN)
    assert _lines(tmp_path / "out-yarn") == _lines(tmp_path / "out-inline")


def test_seeds_on_hdfs_are_read(hadoop_cluster: Cluster, seeds: str, tmp_path: Path) -> None:
    hadoop_cluster.hadoop("fs", "-mkdir", "-p", "/seeds")
    hadoop_cluster.hadoop("fs", "-put", seeds, "/seeds/list.txt")
    conf = on_yarn(hadoop_cluster, tmp_path, {**crawl.SETTINGS, "mapreduce.runner": "inline"})
    assert crawl.inject(conf, "hdfs:///seeds").count("injector", "urls_new") == 9
    with pytest.raises(InputError, match="cannot read hdfs:///nowhere"):
        crawl.inject(conf, "hdfs:///nowhere")


def _lines(folder: Path) -> list[str]:
    text = "".join(path.read_text() for path in sorted(folder.glob("part-*")))
    return sorted(line for line in text.splitlines(keepends=True) if "Time" not in line)
