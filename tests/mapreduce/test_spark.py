"""Jobs on a real Spark, on this machine's cores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.mapreduce.driver import run_job
from nutch2py.mapreduce.input_splits import FileSplit
from tests.conftest import ROOT
from tests.counted_kills import strike
from tests.jobs import crawl
from tests.mapreduce.tinyjobs import FailingJob, OrderJob, WordJob
from tests.processes import alive, commands, wait_until
from tests.services import needs_spark

SPARK = {"mapreduce.runner": "spark", "mapreduce.spark.master": "local[2]"}


@pytest.fixture(autouse=True)
def _tasks_find_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def splits(folder: Path, *texts: str) -> list[FileSplit]:
    found = []
    for number, text in enumerate(texts):
        (folder / f"input-{number}").write_text(text)
        found.append(FileSplit(str(folder / f"input-{number}"), 0, len(text), number))
    return found


@needs_spark
def test_spark_job_splits_counters_log_and_output_work(
    conf: Configuration, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in SPARK.items():
        conf.set(name, value)
    result = run_job(WordJob, conf, splits(tmp_path, "a b\na\n", "c\n", "a c\nb\n"), title="WordJob", reducers=3)
    assert {word: count for word, (count, _) in result.output} == {"a": 3, "b": 2, "c": 2}
    assert result.count("words", "map_splits") == 3
    assert result.count("words", "lines") == 5
    assert sorted(capfd.readouterr().out.splitlines()) == [
        f"split {n} has {lines} lines" for n, lines in enumerate((2, 1, 2))
    ]


@needs_spark
def test_spark_values_are_sorted_within_key(conf: Configuration, tmp_path: Path) -> None:
    for name, value in SPARK.items():
        conf.set(name, value)
    found = run_job(OrderJob, conf, splits(tmp_path, "b=2\na=9\nkT=y\n", "b=1\na=10\nkT=xT1\n"), title="OrderJob")
    assert dict(found.output) == {"a": ["10", "9"], "b": ["1", "2"], "k\t": ["x\t1", "y"]}


@needs_spark
def test_spark_task_errors_reach_driver(conf: Configuration, tmp_path: Path) -> None:
    for name, value in {**SPARK, "tiny.failure": "store"}.items():
        conf.set(name, value)
    with pytest.raises(StoreError, match=r"^the table is on fire: put it out$"):
        run_job(FailingJob, conf, splits(tmp_path, "a"), title="FailingJob")


@needs_spark
def test_spark_crawl_round_gives_same_table(tmp_path: Path) -> None:
    with crawl.site() as site:
        seeds = tmp_path / "seeds.txt"
        seeds.write_text("".join(f"{site}/{number}\n" for number in range(9)))
        settings = {**crawl.SETTINGS, "mapreduce.job.maps": "2", "mapreduce.job.reduces": "2"}
        tables = []
        for name, runner in (("inline", {}), ("spark", SPARK)):
            store = {"storage.data.store": f"embedded:{tmp_path / name}"}
            conf = Configuration.load(overrides={**settings, **store, **runner})
            crawl.rounds(conf, str(seeds), 1)
            tables.append(crawl.table(conf))
    assert tables[0] == tables[1]


_DRIVER = """
import sys
from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.driver import run_job
from nutch2py.mapreduce.input_splits import FileSplit
from tests.mapreduce.tinyjobs import SlowJob

settings = {"mapreduce.runner": "spark", "mapreduce.spark.master": "local[2]", "tiny.folder": sys.argv[1]}
run_job(SlowJob, Configuration.load(overrides=settings), [FileSplit("/none", 0, 0, 0)], title=SlowJob.__name__)
"""


@needs_spark
def test_killed_spark_driver_ends_application_and_leaves_no_files(
    conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, scratch, elsewhere = tmp_path / "tasks", tmp_path / "scratch", _files_of_spark()
    folder.mkdir()
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    driver = subprocess.Popen([sys.executable, "-c", _DRIVER, str(folder)], env=environment, cwd=ROOT)
    wait_until(lambda: any(folder.iterdir()) or driver.poll() is not None)
    assert driver.poll() is None
    (task,) = (int(path.name) for path in folder.iterdir())
    assert strike(driver)
    wait_until(lambda: not alive(task))
    wait_until(lambda: not any(str(scratch).encode() in b" ".join(words) for _, words in commands()))  # Spark, too
    assert len(list(scratch.iterdir())) == 1
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    run_job(WordJob, conf, splits(tmp_path, "a"), title="WordJob")
    assert list(scratch.iterdir()) == []
    assert _files_of_spark() <= elsewhere


def _files_of_spark() -> set[Path]:
    return {path for name in ("spark-*", "blockmgr-*", "liblz4-*") for path in Path("/tmp").glob(name)}


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_cluster_master_is_rejected(conf: Configuration, tmp_path: Path, master: str) -> None:
    conf.set("mapreduce.runner", "spark")
    conf.set("mapreduce.spark.master", master)
    with pytest.raises(ConfigurationError, match="for a cluster use -r hadoop"):
        run_job(WordJob, conf, splits(tmp_path, "a"), title="WordJob")


def test_invalid_spark_home_is_named_in_error(
    conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    conf.set("mapreduce.runner", "spark")
    with pytest.raises(ConfigurationError, match="SPARK_HOME is"):
        run_job(WordJob, conf, splits(tmp_path, "a"), title="WordJob")


def test_unsupported_python_is_rejected(conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr("sys.version_info", (3, 13, 0, "final", 0))
    conf.set("mapreduce.runner", "spark")
    with pytest.raises(ConfigurationError, match=r"with Python 3\.11 or 3\.12, and this is Python 3\.13"):
        run_job(WordJob, conf, splits(tmp_path, "a"), title="WordJob")
