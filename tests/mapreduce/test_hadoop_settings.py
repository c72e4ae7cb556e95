"""Settings of a job on a cluster: location of Hadoop, its options, and rejected values."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError, LockedError, NutchError, RunnerError, StoreError
from nutch2py.jobs.index.index_job import IndexerJob, IndexParameters
from nutch2py.mapreduce.driver import check_store_reachable, run_job
from nutch2py.mapreduce.input_splits import FileSplit
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.mapreduce.runners import client_watchdog
from nutch2py.mapreduce.runners.hadoop import package_archive as archive
from nutch2py.mapreduce.runners.hadoop import yarn_applications
from nutch2py.mapreduce.runners.hadoop.hadoop_client import HadoopClient, download_input
from nutch2py.mapreduce.runners.hadoop.hadoop_errors import explain_error
from nutch2py.mapreduce.runners.hadoop.hadoop_runner import job_label, job_tag, summarize_tasks, write_job_properties
from nutch2py.mapreduce.runners.hadoop.yarn_applications import find_unfinished_applications
from tests.mapreduce.tinyjobs import WordJob
from tests.processes import alive, wait_until


def installation(folder: Path, *jars: str) -> Path:
    for name in ("bin/hadoop", "bin/yarn", *jars):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    return folder


@pytest.fixture(autouse=True)
def _no_hadoop_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_hadoop_home_is_found_by_property_environment_or_path(
    conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = "share/hadoop/tools/lib/hadoop-streaming-3.4.2.jar"
    for name in ("property", "environment", "path"):
        installation(tmp_path / name, jar, jar.replace("3.4.2", "3.4.2-sources"))
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    assert HadoopClient.from_conf(conf).hadoop_command == str(tmp_path / "path" / "bin" / "hadoop")
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "environment"))
    assert HadoopClient.from_conf(conf).yarn_command == str(tmp_path / "environment" / "bin" / "yarn")
    conf.set("mapreduce.hadoop.home", str(tmp_path / "property"))
    conf.set("mapreduce.hadoop.folder", "hdfs:///crawls/")
    found = HadoopClient.from_conf(conf)
    assert found.streaming_jar == str(tmp_path / "property" / jar)
    assert found.hdfs_dir == "hdfs:///crawls"


def test_missing_hadoop_error_names_property(conf: Configuration, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no hadoop on the PATH: set HADOOP_HOME"):
        HadoopClient.from_conf(conf)
    conf.set("mapreduce.hadoop.home", str(tmp_path))
    with pytest.raises(ConfigurationError, match="bin/hadoop does not exist"):
        HadoopClient.from_conf(conf)


def test_missing_streaming_jar_error_names_property(conf: Configuration, tmp_path: Path) -> None:
    conf.set("mapreduce.hadoop.home", str(installation(tmp_path / "hadoop")))
    with pytest.raises(ConfigurationError, match=r"name it with the property mapreduce\.streaming\.jar"):
        HadoopClient.from_conf(conf)
    conf.set("mapreduce.streaming.jar", str(tmp_path / "none.jar"))
    with pytest.raises(ConfigurationError, match="which is no file"):
        HadoopClient.from_conf(conf)


def test_hadoop_properties_are_written_to_private_file(conf: Configuration, tmp_path: Path) -> None:
    for name, value in {
        "mapreduce.job.queuename": "crawl & search",
        "mapreduce.job.tags": "night",
        "mapreduce.runner": "hadoop",
        "mapreduce.job.maps": "7",
        "yarn.app.mapreduce.am.resource.mb": "900",
        "solr.auth.password": "hush",
        "storage.crawl.id": "web",
    }.items():
        conf.set(name, value)
    path = tmp_path / "job.xml"
    label = job_label(conf, "DbUpdaterJob: writing", "1600000001-1001")
    write_job_properties(path, conf, label, "tag-1")
    written = {p.findtext("name"): p.findtext("value") for p in ET.parse(path).iter("property")}
    assert written.pop("mapreduce.job.name") == "nutch2py web DbUpdaterJob writing 1600000001-1001"
    assert written == {
        "mapreduce.job.queuename": "crawl & search",
        "mapreduce.job.tags": "night,tag-1",
        "ipc.client.connect.max.retries": "600",
        "mapreduce.task.timeout": "600000",
        "yarn.app.mapreduce.am.scheduler.connection.wait.interval-ms": "600000",
        "yarn.resourcemanager.connect.max-wait.ms": "600000",
        "yarn.app.mapreduce.am.resource.mb": "900",
    }
    assert oct(path.stat().st_mode & 0o777) == "0o600"


def test_job_tag_identifies_job_batch_and_crawl(conf: Configuration) -> None:
    tags = {job_tag(conf, job_label(conf, "FetcherJob", batch)) for batch in ("", "1", "2")}
    conf.set("storage.crawl.id", "a")
    tags.add(job_tag(conf, job_label(conf, "FetcherJob", "2")))
    assert len(tags) == 4
    assert job_tag(conf.copy(), job_label(conf.copy(), "FetcherJob", "2")) in tags
    assert job_label(conf, "FetcherJob", "2") == "nutch2py a FetcherJob 2"


def test_embedded_table_on_cluster_is_rejected_unless_shared(conf: Configuration) -> None:
    with pytest.raises(ConfigurationError, match="cannot reach the table in embedded:"):
        check_store_reachable(conf, "hadoop", WordJob, JobParameters())
    check_store_reachable(conf, "local", WordJob, JobParameters())
    check_store_reachable(conf, "spark", WordJob, JobParameters())
    conf.set("storage.embedded.shared", "true")
    check_store_reachable(conf, "hadoop", WordJob, JobParameters())


def test_local_index_on_cluster_is_rejected(conf: Configuration) -> None:
    conf.set("storage.data.store", "hbase://127.0.0.1:9090")
    check_store_reachable(conf, "hadoop", WordJob, JobParameters())
    with pytest.raises(ConfigurationError, match="would write indexer-embedded to their own disks"):
        check_store_reachable(conf, "hadoop", IndexerJob, IndexParameters(batch_id="b"))
    conf.set("plugin.excludes", "indexer-embedded")
    check_store_reachable(conf, "hadoop", IndexerJob, IndexParameters(batch_id="b"))


def fake_installation(folder: Path, **answers: str) -> str:
    """Make a fake installation: a command runs the shell line of its first word, and succeeds without one."""
    cases = "".join(f"{word}) {line} ;;\n" for word, line in answers.items())
    home = installation(folder / "hadoop", "share/hadoop/tools/lib/hadoop-streaming-3.4.2.jar")
    for name in ("hadoop", "yarn"):
        (home / "bin" / name).write_text(f'#!/bin/sh\ncase "$1" in\n{cases}esac\n')
    return str(home)


_OVER = "Container [pid=7,containerID=container_1] is running 9B beyond the 'PHYSICAL' memory limit. Current usage: x"


_PUT = "put: The DiskSpace quota of /user/me/nutch2py is exceeded: quota = 9 B = 9 B but diskspace consumed = 128 MB"


@pytest.mark.parametrize(
    ("client", "kind", "message"),
    [
        (f'echo "{_OVER}"', ConfigurationError, "raise mapreduce.map.memory.mb or mapreduce.reduce.memory.mb"),
        ("echo PipeMapRed.waitOutputThreads: subprocess failed with code 4", StoreError, r"a task failed \(.*table"),
        ("echo subprocess failed with code 137", RunnerError, "a task was killed by SIGKILL: most likely .* of memory"),
        ("echo ERROR streaming.StreamJob: it rains", RunnerError, "the job failed on YARN: .*it rains"),
        (
            "echo Job job_1_1 failed with state KILLED due to: by me; echo ERROR: no",
            RunnerError,
            "failed on YARN: by me",
        ),
        (
            "echo 'Error: o.a.Shuffle$ShuffleError: error in shuffle'",
            RunnerError,
            "a node was lost, .* run the command again",
        ),
        (
            "echo 'Cannot run program \"python3.11\": error=2'",
            ConfigurationError,
            "the nodes have no python3.11: install",
        ),
        (
            "echo 26-11-23 04:05 ERROR s.Job: o.a.YarnException: submitted by user me to unknown queue: x",
            ConfigurationError,
            "the job failed on YARN: submitted by user me to unknown queue: x: set mapreduce.job.queue",
        ),
        (f"echo '{_PUT}' >&2", RunnerError, "is exceeded: .* free space on HDFS"),
        ("echo ERROR: JAVA_HOME is not set and could not be found. >&2", ConfigurationError, "install a JDK that"),
    ],
)
def test_client_output_is_reduced_to_one_line(
    conf: Configuration, tmp_path: Path, client: str, kind: type[NutchError], message: str
) -> None:
    conf.set("mapreduce.runner", "hadoop")
    conf.set("mapreduce.package", "none")
    conf.set("storage.embedded.shared", "true")
    conf.set("mapreduce.hadoop.home", fake_installation(tmp_path, jar=f"{client}; exit 1"))
    with pytest.raises(kind, match=message):
        run_job(WordJob, conf, [FileSplit("/none", 0, 0, 0, b"")], title="WordJob")


_SUBMITTED = "echo Submitted application application_1_1"
_BEGUN = f"{_SUBMITTED}; echo ' map 0% reduce 0%'"


@pytest.mark.parametrize(
    ("client", "containers", "message"),
    [
        (_SUBMITTED, 0, "application_1_1 has waited for 0.1 s for YARN to start it: the queue is full"),
        (_BEGUN, 1, "application_1_1 has waited for 0.1 s for a container for its tasks"),
        (_BEGUN, 2, None),
        (f"{_BEGUN}; echo ' map 50% reduce 0%'", 1, None),
    ],
)
def test_waiting_application_reports_reason(
    conf: Configuration,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    client: str,
    containers: int,
    message: str | None,
) -> None:
    for name, value in {"runner": "hadoop", "package": "none"}.items():
        conf.set(f"mapreduce.{name}", value)
    conf.set("storage.embedded.shared", "true")
    monkeypatch.setattr("nutch2py.mapreduce.runners.hadoop.yarn_queue.MAX_QUIET_WAIT", 0.1)
    monkeypatch.setattr("nutch2py.mapreduce.runners.hadoop.hadoop_client.LOG_RETRY_DELAY", 0.0)
    asked = tmp_path / "asked"
    waits = f"i=0; until [ -e {asked} ] || [ $i = 30 ]; do /bin/sleep 0.1; i=$((i+1)); done; /bin/sleep 0.3"
    answers = {
        "application": f'if [ "$2" = -status ]; then echo " Diagnostics : the queue is full"; >{asked}; fi',
        "applicationattempt": "echo 'appattempt_1_1_000001  RUNNING'",
        "container": f"echo 'Total number of containers :{containers}'; >{asked}",
        "jar": f"{client}; {waits if message or containers == 2 else '/bin/sleep 0.5'}; exit 1",
    }
    conf.set("mapreduce.hadoop.home", fake_installation(tmp_path, **answers))
    with pytest.raises(RunnerError):
        run_job(WordJob, conf, [FileSplit("/none", 0, 0, 0, b"")], title="WordJob")
    said = [line for line in capsys.readouterr().err.splitlines() if "has waited" in line]
    assert [message in line for line in said] == [True] if message else not said


@pytest.mark.parametrize("at", ["application", "fs", "jar"])
def test_removed_installation_is_named_in_error(conf: Configuration, tmp_path: Path, at: str) -> None:
    """Between two of its commands, as one on a file system of another machine may."""
    conf.set("mapreduce.runner", "hadoop")
    conf.set("mapreduce.package", "none")
    conf.set("storage.embedded.shared", "true")
    home = fake_installation(tmp_path, **{at: f"/bin/rm -r {tmp_path}/hadoop; exit 1"})
    conf.set("mapreduce.hadoop.home", home)
    with pytest.raises(NutchError):
        run_job(WordJob, conf, [FileSplit("/none", 0, 0, 0, b"")], title="WordJob")
    with pytest.raises(ConfigurationError, match=r"cannot run jobs on Hadoop: .*: set HADOOP_HOME"):
        HadoopClient.from_conf(conf)
    gone = HadoopClient(f"{home}/bin/hadoop", f"{home}/bin/yarn", "streaming.jar", "folder")
    for ask in (gone.create_hdfs_dir, lambda: find_unfinished_applications(gone, "tag")):
        with pytest.raises(ConfigurationError, match=r"cannot run .* \(No such file or directory\): set HADOOP_HOME"):
            ask()
    assert gone.find_task_error("application_1_1") is None


def test_packages_are_kept_while_job_runs(conf: Configuration, tmp_path: Path) -> None:
    listed = r"printf 'Total: 1\napplication_1_0007\tnutch2py web FetcherJob 1-1\tMAPREDUCE\n'"
    conf.set("mapreduce.hadoop.home", fake_installation(tmp_path, application=listed, fs="exit 9"))
    manifest = archive.PackageManifest("1", "3.11", "linux", "", {}, {})
    with pytest.raises(LockedError, match="application_1_0007 is running and may need"):
        HadoopClient.from_conf(conf).clean_hdfs_dir(manifest)
    conf.set("mapreduce.hadoop.home", fake_installation(tmp_path, application="echo away >&2; exit 1"))
    with pytest.raises(RunnerError, match="cannot query YARN for running jobs: away"):
        HadoopClient.from_conf(conf).clean_hdfs_dir(manifest)


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        ("get: Permission denied: user=me, access=READ", InputError, "access=READ: check that"),
        ("get: /seeds: No such file or directory", InputError, "No such file"),
        ("get: Call From a to b failed on connection exception: refused", RunnerError, "check that HDFS"),
        ("java: not found", ConfigurationError, "JAVA_HOME"),
    ],
)
def test_unreadable_seeds_on_hdfs_are_reported(
    conf: Configuration, tmp_path: Path, said: str, kind: type[NutchError], message: str
) -> None:
    conf.set("service.wait.seconds", "0")
    conf.set("mapreduce.hadoop.home", fake_installation(tmp_path, fs=f"echo '{said}' >&2; exit 1"))
    with pytest.raises(kind, match=message), download_input(conf, "hdfs:///seeds"):
        pass


def test_task_counts_of_application_are_formatted() -> None:
    counters = {"Job Counters ": {"Launched map tasks": 4, "Launched reduce tasks": 1, "Failed map tasks": 1}, "x": {}}
    assert summarize_tasks(counters) == "4 map tasks, 1 reduce task, 1 of them failed and run again"
    assert summarize_tasks({"Job Counters ": {"Launched map tasks": 2}}) == "2 map tasks"


def test_watchdog_forwards_output_and_exit_code() -> None:
    command = [
        sys.executable,
        "-S",
        "-E",
        client_watchdog.__file__,
        "--",
        "/bin/sh",
        "-c",
        "echo one; echo two >&2; exit 3",
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.read().splitlines() == [b"one", b"two"]
    assert process.wait() == 3
    process.stdin.close()
    process.stdout.close()


def test_watchdog_reports_missing_client() -> None:
    command = [sys.executable, "-S", "-E", client_watchdog.__file__, "--", "/none/hadoop"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (127, b"")
    error = explain_error("the job failed on YARN", done.stdout.splitlines())
    assert isinstance(error, ConfigurationError)
    assert "cannot run /none/hadoop (No such file or directory): set HADOOP_HOME" in str(error)


@pytest.mark.parametrize("is_submitted", [True, False])
def test_watchdog_kills_client_and_application_on_closed_input(tmp_path: Path, is_submitted: bool) -> None:
    yarn = tmp_path / "yarn"
    listed = r"printf 'Total: 1\napplication_1_0007\tnutch2py web FetcherJob 1-1\tMAPREDUCE\n'"
    yarn.write_text(f'#!/bin/sh\necho "$1 $2 $3" >>{tmp_path}/asked\n[ "$2" = -kill ] || {listed}\n')
    submitted = "echo INFO Submitted application application_1_0007" if is_submitted else "echo INFO starting"
    yarn.chmod(0o755)
    client = f"{submitted}; echo $$; exec /bin/sleep 60"
    python = [sys.executable, "-S", "-E"]
    kill_command = [*python, yarn_applications.__file__, "tag", str(yarn)]
    command = [*python, client_watchdog.__file__, *kill_command, "--", "/bin/sh", "-c", client]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)  # is for the driver to decide
    process.stdin.close()
    assert process.wait() == 143
    process.stdout.close()
    wait_until(lambda: not alive(pid))
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["application -list -appTags"] * (not is_submitted) + ["application -kill application_1_0007"]
