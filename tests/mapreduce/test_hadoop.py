"""Jobs on a real YARN and HDFS; tests/mapreduce/test_yarn_crawl.py has a whole crawl, with HBase and Solr."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py import plugins
from nutch2py.cli import main
from nutch2py.conf import Configuration
from nutch2py.errors import (
    ConfigurationError,
    IndexingError,
    InputError,
    NutchError,
    PluginFailuresError,
    RunnerError,
    StoreError,
)
from nutch2py.jobs.inject import InjectorJob, InjectParameters
from nutch2py.jobs.package import clean_packages
from nutch2py.jobs.readdb_dump import DumpParameters, dump
from nutch2py.mapreduce import package_archive as archive
from nutch2py.mapreduce.driver import run_job
from nutch2py.mapreduce.hadoop import Hadoop
from nutch2py.mapreduce.splits import split_files
from nutch2py.mapreduce.yarn import HadoopRunner
from tests.conftest import ROOT
from tests.jobs import crawl, rows
from tests.kills import strike
from tests.mapreduce.hadoop_cluster import Cluster
from tests.processes import HEEDING, wait_until


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


def test_a_task_tells_what_is_wrong_and_reads_the_files_of_the_client(
    hadoop_cluster: Cluster, seeds: str, tmp_path: Path
) -> None:
    broken = {"urlfilter.regex.file": "broken-urlfilter.txt", "mapreduce.map.maxattempts": "1"}
    conf = on_yarn(hadoop_cluster, tmp_path, {**crawl.SETTINGS, **broken})
    with pytest.raises(ConfigurationError, match=r"broken-urlfilter\.txt"):  # the driver of inject would find it, too
        run_job(InjectorJob, conf, split_files([Path(seeds)], 2), InjectParameters(now=1), title="InjectorJob")


@pytest.fixture
def _failing_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a plug-in that fails on every URL, as pip would."""
    folder = tmp_path / "site"
    info = folder / "no_url-1.dist-info"
    info.mkdir(parents=True)
    files = {
        "no_url.py": (
            "from nutch2py import contracts\n"
            "class NoURL(contracts.URLFilter):\n"
            "    def __init__(self, conf): pass\n"
            "    def filter(self, url): raise RuntimeError('no good')\n"
        ),
        f"{info.name}/METADATA": "Metadata-Version: 2.1\nName: no-url\nVersion: 1\n",
        f"{info.name}/entry_points.txt": "[nutch2py.urlfilter]\nurlfilter-none = no_url:NoURL\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    monkeypatch.syspath_prepend(folder)
    archive._libraries.cache_clear()
    plugins.registered.cache_clear()
    yield
    archive._libraries.cache_clear()
    plugins.registered.cache_clear()


@pytest.mark.usefixtures("_failing_filter")
def test_a_plugin_that_fails_on_too_many_pages_ends_the_job_with_7(
    hadoop_cluster: Cluster, site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its task: of so many pages it does not wait for the end."""
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("".join(f"{site}/{number}\n" for number in range(40)))
    package = tmp_path / "package.tar.gz"
    assert main(["package", str(package), "--conf", str(hadoop_cluster.conf_folder)]) == 0
    settings = {
        **crawl.SETTINGS,
        "mapreduce.package": str(package),
        "plugin.includes": "urlfilter-none|urlnormalizer-basic|scoring-opic",
        "plugin.failures.minimum": "1",
        "mapreduce.map.maxattempts": "1",
        "mapreduce.job.maps": "1",
    }
    settings = {**hadoop_cluster.settings, "storage.data.store": f"embedded:{tmp_path / 'yarn'}", **settings}
    options = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    assert main(["inject", str(seeds), "--conf", str(hadoop_cluster.conf_folder), *options]) == 7
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("nutch2py: plug-in urlfilter-none failed on ")
    assert "first: plug-in urlfilter-none failed on http://127.0.0.1" in told


@pytest.mark.parametrize("kind", [ConfigurationError, InputError, StoreError, IndexingError, PluginFailuresError])
def test_a_task_whose_log_is_lost_ends_the_job_with_its_exit_code(kind: type[NutchError]) -> None:
    runner = HadoopRunner.__new__(HadoopRunner)
    runner.exit_code = kind.exit_code
    assert type(runner.explain(OSError("the job failed"))) is kind


def test_an_application_that_yarn_has_forgotten_is_not_waited_for() -> None:
    """What Hadoop's client says when a ResourceManager came back without recovery, and there is no history server."""
    runner = HadoopRunner.__new__(HadoopRunner)
    runner.installation = Hadoop("hadoop", "yarn", "streaming.jar", "folder", wait=600.0)
    said = [
        b"INFO ipc.Client: Retrying connect to server: localhost/127.0.0.1:8032. Already tried 1 time(s)",
        b"INFO mapred.ClientServiceDelegate: Could not get Job info from RM for job job_1_0001. Redirecting to history",
        b"INFO ipc.Client: Retrying connect to server: 0.0.0.0/0.0.0.0:10020. Already tried 0 time(s)",
        b"INFO ipc.Client: Retrying connect to server: 0.0.0.0/0.0.0.0:10020. Already tried 1 time(s)",
    ]
    watched = runner._watched(iter(said))
    assert [next(watched), next(watched)] == said[:2]
    with pytest.raises(NutchError, match="YARN no longer knows the application"):
        next(watched)


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        ("SUCCEEDED", RunnerError, "application_1_1 has succeeded, but what it counted is not"),
        ("FAILED", OSError, "FAILED"),
    ],
)
def test_an_application_whose_master_has_ended_is_not_asked_for_at_a_history_server_that_is_not_there(
    status: str, kind: type[Exception], told: str
) -> None:
    runner = HadoopRunner.__new__(HadoopRunner)
    runner.installation = Hadoop("hadoop", "yarn", "streaming.jar", "folder", wait=600.0)
    runner.application = "application_1_1"
    said = [
        f"INFO mapred.X: Application state is completed. FinalApplicationStatus={status}",
        "INFO ipc.Client: Retrying connect to server: 0.0.0.0/0.0.0.0:10020. Already tried 0 time(s)",
    ]
    with pytest.raises(kind, match=told):
        list(runner._watched(line.encode() for line in said))


def test_a_job_that_is_told_to_end_does_not_wait_for_a_yarn_that_is_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its guard goes on trying, and the same command, run again, ends what it has left."""
    monkeypatch.setattr("nutch2py.mapreduce.yarn._GUARD_PATIENCE", 0.1)
    runner = HadoopRunner.__new__(HadoopRunner)
    runner.application = "application_1_1"
    guard = subprocess.Popen(["/bin/sleep", "300"])
    try:
        runner._await_guard(guard)
        assert guard.poll() is None
    finally:
        strike(guard)
    assert "application_1_1 is ended as soon as it does, or by the same command" in capsys.readouterr().err


def test_ctrl_c_ends_the_application_on_yarn(hadoop_cluster: Cluster, seeds: str, tmp_path: Path) -> None:
    conf = on_yarn(hadoop_cluster, tmp_path, {})
    options = [word for name in conf for word in ("-D", f"{name}={conf.get(name, '')}") if conf.origin(name) == "-D"]
    command = [sys.executable, "-c", HEEDING, "inject", seeds, "--conf", str(hadoop_cluster.conf_folder), *options]
    driver = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    wait_until(lambda: hadoop_cluster.tasks("InjectorJob", "mapper") or driver.poll() is not None)
    assert strike(driver, signal.SIGINT)
    assert driver.returncode == 130
    assert not hadoop_cluster.running()
    wait_until(lambda: not hadoop_cluster.tasks("InjectorJob", "mapper"))
    assert not hadoop_cluster.hadoop("fs", "-ls", "-C", "nutch2py/run_*").strip()


def test_a_dump_comes_back_byte_for_byte(hadoop_cluster: Cluster, tmp_path: Path) -> None:
    """Text of several lines with every character that could end one, and bytes that are no text."""
    conf, reference = on_yarn(hadoop_cluster, tmp_path, crawl.SETTINGS), inline(tmp_path, crawl.SETTINGS)
    odd = "a\rb\r\nc\td\x1brE\x1b[f\x85g\u2028h\0i \\r\r"
    pages = {
        f"http://h{number}.test/\x85{number}": {
            "title": f"{odd}\tlast\r",
            "text": odd * number,
            "content": odd.encode() + bytes(range(256)) + b"\r" * number + b"\n\n",
            "metadata": {"m\r": b"\xff\r\x00", "plain": b"\ttext\r\n"},
            "outlinks": {"http://h.test/\x85": odd},
            "headers": {"X\r": "y\r\n\tz"},
        }
        for number in range(40)
    }
    for each in (conf, reference):
        rows.put(each, pages)
        each.set("mapreduce.job.maps", 3)
    shown = dict.fromkeys(("content", "headers", "links", "text"), True)
    dump(conf, tmp_path / "out-yarn", DumpParameters(shown=shown))
    dump(reference, tmp_path / "out-inline", DumpParameters(shown=shown))
    parts = [
        sorted(path.read_bytes() for path in (tmp_path / name).glob("part-*")) for name in ("out-yarn", "out-inline")
    ]
    assert parts[0] == parts[1]
    assert len(parts[0]) > 1


def test_seeds_on_hdfs_are_read(hadoop_cluster: Cluster, seeds: str, tmp_path: Path) -> None:
    hadoop_cluster.hadoop("fs", "-mkdir", "-p", "/seeds")
    hadoop_cluster.hadoop("fs", "-put", seeds, "/seeds/list.txt")
    conf = on_yarn(hadoop_cluster, tmp_path, {**crawl.SETTINGS, "mapreduce.runner": "inline"})
    assert crawl.inject(conf, "hdfs:///seeds").count("injector", "urls_new") == 9
    with pytest.raises(InputError, match="cannot read hdfs:///nowhere"):
        crawl.inject(conf, "hdfs:///nowhere")


def test_packages_of_earlier_versions_can_be_taken_off_hdfs(
    hadoop_cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = f"/{tmp_path.name}"
    conf = hadoop_cluster.configuration({"mapreduce.hadoop.folder": folder})
    kept = Hadoop.find(conf).ship(hadoop_cluster.package, archive.read_manifest(hadoop_cluster.package))
    (tmp_path / "old").write_text("")
    for name in ("nutch2py-0.0.9-0123456789abcdef.tar.gz", "run_FetcherJob.me.20260101.120000.1", "notes.txt"):
        hadoop_cluster.hadoop("fs", "-put", str(tmp_path / "old"), f"{folder}/{name}")
    hadoop_cluster.hadoop("fs", "-touch", "-m", "-t", "20260101:120000", f"{folder}/*")
    being_prepared = f"{folder}/run_FetcherJob.me.20261122.120000.2"
    hadoop_cluster.hadoop("fs", "-put", str(tmp_path / "old"), being_prepared)
    assert clean_packages(conf) == 0
    left = hadoop_cluster.hadoop("fs", "-ls", "-C", folder).split()
    assert set(left) == {kept, being_prepared, f"{folder}/notes.txt"}
    told = capsys.readouterr().out
    assert "package: 1 of the last 60 minutes stay" in told
    assert "package: 2 deleted" in told
