"""Jobs on a real YARN and HDFS; tests/mapreduce/test_yarn_crawl.py has a whole crawl, with HBase and Solr."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import (
    ConfigurationError,
    IndexingError,
    InputError,
    NutchError,
    PluginFailuresError,
    RunnerError,
    StoreError,
)
from nutch2py.jobs.inject.inject_job import InjectorJob, InjectParameters
from nutch2py.jobs.readdb.readdb_dump import DumpParameters, dump_table
from nutch2py.jobs.tools.cluster_package import clean_packages
from nutch2py.mapreduce.driver import run_job
from nutch2py.mapreduce.input_splits import split_files
from nutch2py.mapreduce.runners.hadoop import package_archive as archive
from nutch2py.mapreduce.runners.hadoop.hadoop_client import HadoopClient
from nutch2py.mapreduce.runners.hadoop.hadoop_runner import HadoopRunner
from nutch2py.plugins import loading
from tests.conftest import ROOT
from tests.counted_kills import strike
from tests.jobs import crawl, rows
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


def test_task_error_is_reported_and_client_files_are_read(hadoop_cluster: Cluster, seeds: str, tmp_path: Path) -> None:
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
            "from nutch2py import interfaces\n"
            "class NoURL(interfaces.URLFilter):\n"
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
    archive.required_libraries.cache_clear()
    loading.installed_plugins.cache_clear()
    yield
    archive.required_libraries.cache_clear()
    loading.installed_plugins.cache_clear()


@pytest.mark.usefixtures("_failing_filter")
def test_plugin_failures_over_limit_end_job_with_exit_code_7(
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
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("nutch2py: plug-in urlfilter-none failed on ")
    assert "first: plug-in urlfilter-none failed on http://127.0.0.1" in line


@pytest.mark.parametrize("kind", [ConfigurationError, InputError, StoreError, IndexingError, PluginFailuresError])
def test_task_with_lost_log_ends_job_with_its_exit_code(kind: type[NutchError]) -> None:
    runner = HadoopRunner.__new__(HadoopRunner)
    runner.exit_code = kind.exit_code
    assert type(runner.explain(OSError("the job failed"))) is kind


def test_application_forgotten_by_yarn_is_not_awaited() -> None:
    """Output of Hadoop's client after a ResourceManager restart without recovery and without a history server."""
    runner = HadoopRunner.__new__(HadoopRunner)
    runner.client = HadoopClient("hadoop", "yarn", "streaming.jar", "folder", wait_seconds=600.0)
    said = [
        b"INFO ipc.Client: Retrying connect to server: localhost/127.0.0.1:8032. Already tried 1 time(s)",
        b"INFO mapred.ClientServiceDelegate: Could not get Job info from RM for job job_1_0001. Redirecting to history",
        b"INFO ipc.Client: Retrying connect to server: 0.0.0.0/0.0.0.0:10020. Already tried 0 time(s)",
        b"INFO ipc.Client: Retrying connect to server: 0.0.0.0/0.0.0.0:10020. Already tried 1 time(s)",
    ]
    watched = runner._watch_output(iter(said))
    assert [next(watched), next(watched)] == said[:2]
    with pytest.raises(NutchError, match="YARN no longer knows the application"):
        next(watched)


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        ("SUCCEEDED", RunnerError, "application_1_1 has succeeded, but its counters are not"),
        ("FAILED", OSError, "FAILED"),
    ],
)
def test_finished_application_is_not_requested_from_missing_history_server(
    status: str, kind: type[Exception], message: str
) -> None:
    runner = HadoopRunner.__new__(HadoopRunner)
    runner.client = HadoopClient("hadoop", "yarn", "streaming.jar", "folder", wait_seconds=600.0)
    runner.application = "application_1_1"
    said = [
        f"INFO mapred.X: Application state is completed. FinalApplicationStatus={status}",
        "INFO ipc.Client: Retrying connect to server: 0.0.0.0/0.0.0.0:10020. Already tried 0 time(s)",
    ]
    with pytest.raises(kind, match=message):
        list(runner._watch_output(line.encode() for line in said))


def test_terminated_job_does_not_wait_for_unavailable_yarn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its watchdog keeps trying, and the same command, run again, ends the applications that it has left."""
    monkeypatch.setattr("nutch2py.mapreduce.runners.hadoop.hadoop_runner.GUARD_TIMEOUT", 0.1)
    runner = HadoopRunner.__new__(HadoopRunner)
    runner.application = "application_1_1"
    watchdog = subprocess.Popen(["/bin/sleep", "300"])
    try:
        runner._await_watchdog(watchdog)
        assert watchdog.poll() is None
    finally:
        strike(watchdog)
    assert "application_1_1 is ended as soon as it does, or by the same command" in capsys.readouterr().err


def test_ctrl_c_ends_application_on_yarn(hadoop_cluster: Cluster, seeds: str, tmp_path: Path) -> None:
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


def test_dump_on_yarn_equals_inline_dump(hadoop_cluster: Cluster, tmp_path: Path) -> None:
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
    dump_table(conf, tmp_path / "out-yarn", DumpParameters(sections=shown))
    dump_table(reference, tmp_path / "out-inline", DumpParameters(sections=shown))
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


def test_old_packages_are_deleted_from_hdfs(
    hadoop_cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = f"/{tmp_path.name}"
    conf = hadoop_cluster.configuration({"mapreduce.hadoop.folder": folder})
    old = ["nutch2py-0.0.9-0123456789abcdef.tar.gz", "run_FetcherJob.me.20260101.120000.1", "notes.txt"]
    recent = "run_FetcherJob.me.20261122.120000.2"
    files = [tmp_path / name for name in (*old, recent)]
    for path in files:
        path.write_text("")
    kept = HadoopClient.from_conf(conf).upload_package(files[0], archive.read_manifest(hadoop_cluster.package))
    hadoop_cluster.hadoop("fs", "-put", *map(str, files), folder)
    hadoop_cluster.hadoop("fs", "-touch", "-m", "-t", "20260101:120000", kept, *(f"{folder}/{name}" for name in old))
    assert clean_packages(conf) == 0
    left = hadoop_cluster.hadoop("fs", "-ls", "-C", folder).split()
    assert set(left) == {kept, f"{folder}/{recent}", f"{folder}/notes.txt"}
    output = capsys.readouterr().out
    assert "package: 1 of the last 60 minutes stay" in output
    assert "package: 2 deleted" in output
