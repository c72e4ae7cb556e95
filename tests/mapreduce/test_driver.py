"""The driver and its runners inline and local."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, NutchError, RunnerError, StoreError
from nutch2py.mapreduce.driver import JobResult, merge_counters, run_job, runner_name
from nutch2py.mapreduce.input_splits import FileSplit, Split
from nutch2py.mapreduce.task_progress import ProgressMonitor, TaskChannel
from nutch2py.support.retry import ServiceRetry
from tests.conftest import ROOT
from tests.counted_kills import strike
from tests.mapreduce.tinyjobs import FailingJob, KilledJob, OneFailsJob, OrderJob, OrphanJob, ParentJob, WordJob
from tests.processes import alive, wait_until

RUNNERS = ["inline", "local"]


@pytest.fixture(autouse=True)
def _tasks_find_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., list[Split]]:
    """Give splits: one for each text."""

    def make(*texts: str) -> list[Split]:
        found: list[Split] = []
        for number, text in enumerate(texts):
            path = tmp_path / f"input-{number}"
            path.write_text(text)
            found.append(FileSplit(str(path), 0, path.stat().st_size, number))
        return found

    return make


Lines = Callable[..., list[Split]]


def run_words(conf: Configuration, runner: str, splits: list[Split], reducers: int = 1) -> JobResult:
    conf.set("mapreduce.runner", runner)
    return run_job(WordJob, conf, splits, title="WordJob", reducers=reducers)


@pytest.mark.parametrize("runner", RUNNERS)
def test_each_split_has_a_map_task_and_counters_are_summed(conf: Configuration, lines: Lines, runner: str) -> None:
    result = run_words(conf, runner, lines("a b\na\n", "c\n", "a c\nb\n", "", "d"))
    assert {word: count for word, (count, _) in result.output} == {"a": 3, "b": 2, "c": 2, "d": 1}
    assert result.count("words", "map_splits") == 5
    assert result.count("words", "lines") == 6
    assert result.count("words", "reduce_tasks") == 1
    assert result.count("words", "nothing") == 0


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("reducers", [1, 2, 5])
def test_reduce_tasks_match_setting(conf: Configuration, lines: Lines, runner: str, reducers: int) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    result = run_words(conf, runner, lines(words, words), reducers)
    assert result.count("words", "reduce_tasks") == reducers
    assert sorted(word for word, _ in result.output) == sorted(words.split())
    assert {count for _, (count, _) in result.output} == {2}


def test_tasks_are_forked_from_one_server_that_ends_with_job(
    conf: Configuration, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf.set("mapreduce.runner", "local")
    monkeypatch.setenv("TINY", "höher")
    tasks = dict(run_job(ParentJob, conf, lines("a", "b", "c"), title="ParentJob").output)
    (nursery,) = tasks["reduce"]
    assert nursery != os.getpid()
    assert tasks["map"] == [[nursery, "höher", Path.cwd().as_posix(), ""]] * 3
    assert not alive(nursery)


def test_killed_fork_server_ends_job(conf: Configuration, lines: Lines, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    conf.set("mapreduce.runner", "local")
    conf.set("tiny.folder", str(tmp_path / "tasks"))
    with pytest.raises(RunnerError):
        run_job(OrphanJob, conf, lines("a", "b"), title="OrphanJob")
    wait_until(lambda: not any(alive(int(path.name)) for path in (tmp_path / "tasks").iterdir()))


def test_fewer_keys_than_reduce_tasks_works(conf: Configuration, lines: Lines) -> None:
    assert run_words(conf, "inline", lines("only only"), reducers=4).output[0][1][0] == 2


def test_job_without_pairs_works(conf: Configuration, lines: Lines) -> None:
    assert run_words(conf, "local", lines("", "")).output == []


def test_job_without_splits_does_not_run(conf: Configuration) -> None:
    assert run_words(conf, "inline", []).counters == {}


@pytest.mark.parametrize("runner", RUNNERS)
def test_values_are_sorted_and_keys_kept_whole(conf: Configuration, lines: Lines, runner: str) -> None:
    conf.set("mapreduce.runner", runner)
    splits = lines("b=2\na=9\nkT=y\n=lone\n", "b=1\na=10\nb=\nkT=xT1\nk=z\n")
    result = run_job(OrderJob, conf, splits, title="OrderJob", reducers=3)
    assert dict(result.output) == {
        "": ["lone"],
        "a": ["10", "9"],
        "b": ["", "1", "2"],
        "k\t": ["x\t1", "y"],
        "k": ["z"],
    }


@pytest.mark.parametrize("runner", RUNNERS)
def test_nutch_error_of_task_reaches_driver(conf: Configuration, lines: Lines, runner: str) -> None:
    conf.set("mapreduce.runner", runner)
    conf.set("tiny.failure", "store")
    with pytest.raises(StoreError, match=r"^the table is on fire: put it out$"):
        run_job(FailingJob, conf, lines("a", "b"), title="FailingJob")


def test_other_task_error_is_reported_with_traceback(conf: Configuration, lines: Lines) -> None:
    conf.set("mapreduce.runner", "local")
    with pytest.raises(NutchError, match="ValueError: that is not right") as caught:
        run_job(FailingJob, conf, lines("a", "b"), title="FailingJob")
    assert "tinyjobs.py" in "".join(caught.value.__notes__)


def test_other_error_inline_is_raised_unchanged(conf: Configuration, lines: Lines) -> None:
    with pytest.raises(ValueError, match="that is not right"):
        run_job(FailingJob, conf, lines("a"), title="FailingJob")


@pytest.mark.parametrize("runner", RUNNERS)
def test_log_lines_of_tasks_are_printed_by_driver(
    conf: Configuration, lines: Lines, runner: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run_words(conf, runner, lines("a\nb\n", "c\n"))
    assert sorted(capfd.readouterr().out.splitlines()) == ["split 0 has 2 lines", "split 1 has 1 lines"]


@pytest.mark.parametrize("runner", RUNNERS)
def test_output_is_written_to_folder(conf: Configuration, lines: Lines, tmp_path: Path, runner: str) -> None:
    conf.set("mapreduce.runner", runner)
    result = run_job(WordJob, conf, lines("a b a"), title="WordJob", output_dir=tmp_path / "out")
    assert result.output == []
    parts = [path.read_text() for path in (tmp_path / "out").glob("part-*")]
    assert sorted(line.partition(",")[0] for line in "".join(parts).splitlines()) == ["a\t[2", "b\t[1"]


def test_temp_dir_is_left_empty(
    conf: Configuration, lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    locks = set(Path("/tmp").glob("wrapper.lock.run_WordJob.*"))  # where mrjob would have them, whatever TMPDIR is
    run_words(conf, "local", lines("a"))
    assert list(scratch.iterdir()) == []
    assert set(Path("/tmp").glob("wrapper.lock.run_WordJob.*")) == locks


def test_mrjob_imports_without_removed_modules(tmp_path: Path) -> None:
    """distutils is gone since Python 3.12, pipes since 3.13; tasks are processes that have neither, too."""
    for name in ("pipes", "distutils"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError({name!r})")
    (tmp_path / "seeds").write_text("http://a.test/\n")
    store = f"storage.data.store=embedded:{tmp_path / 'crawldata'}"
    command = [sys.executable, "-m", "nutch2py.cli", "inject", str(tmp_path / "seeds"), "-r", "local", "-D", store]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "total number of new rows: 1" in done.stdout


def test_mrjob_shims_are_removed_after_import() -> None:
    code = (
        "import nutch2py.mapreduce.runners.local_runners, sys; "
        "print({'pipes', 'distutils', 'pyspark'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_unknown_runner_is_rejected(conf: Configuration) -> None:
    conf.set("mapreduce.runner", "abacus")
    with pytest.raises(ConfigurationError, match="choose one of inline, local, hadoop, spark"):
        runner_name(conf)


def test_counters_of_runs_are_merged() -> None:
    total = merge_counters([JobResult({"g": {"a": 1}}), JobResult({"g": {"a": 2, "b": 3}}, [("k", 1)])])
    assert total.counters == {"g": {"a": 3, "b": 3}}
    assert total.output == [("k", 1)]


_DRIVER = """
import sys
from pathlib import Path
from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.driver import run_job
from nutch2py.mapreduce.input_splits import FileSplit
from tests.mapreduce.tinyjobs import SlowJob

conf = Configuration.load(overrides={"mapreduce.runner": "local", "tiny.folder": sys.argv[1]})
run_job(SlowJob, conf, [FileSplit("/none", 0, 0, 0), FileSplit("/none", 0, 0, 1)], title=SlowJob.__name__)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_tasks_end_with_their_driver(tmp_path: Path, number: signal.Signals, code: int) -> None:
    folder, scratch = tmp_path / "tasks", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    driver = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(folder)], env={**os.environ, "TMPDIR": str(scratch)}, cwd=ROOT
    )
    wait_until(lambda: any(folder.iterdir()))
    tasks = [int(path.name) for path in folder.iterdir()]
    assert strike(driver, number)
    assert driver.returncode == code
    wait_until(lambda: not any(alive(task) for task in tasks))
    if number == signal.SIGTERM:
        assert not list(scratch.glob("nutch2py-job-*"))


def test_files_of_killed_driver_are_removed_by_next_job(
    conf: Configuration, lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, scratch = tmp_path / "tasks", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    command, environment = [sys.executable, "-c", _DRIVER, str(folder)], {**os.environ, "TMPDIR": str(scratch)}
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    (scratch / "nutch2py-job-notes").touch()  # no folder
    (scratch / "of others").mkdir()
    (scratch / "nutch2py-job-link").symlink_to(scratch / "of others")

    def folders_of_jobs() -> list[Path]:
        return [path for path in scratch.glob("nutch2py-job-*/") if not path.is_symlink()]

    with subprocess.Popen(command, env=environment, cwd=ROOT) as killed:
        wait_until(lambda: len(list(folder.iterdir())) == 2)
        (left,) = folders_of_jobs()
        assert strike(killed)
    with subprocess.Popen(command, env=environment, cwd=ROOT) as living:
        wait_until(lambda: len(list(folder.iterdir())) == 4)
        assert not left.exists()  # the second driver took it away
        (kept,) = folders_of_jobs()
        run_words(conf, "inline", lines("a"))
        assert kept.exists()
        assert strike(living, signal.SIGTERM)
    assert {path.name for path in scratch.iterdir()} == {"nutch2py-job-link", "nutch2py-job-notes", "of others"}


def test_signal_to_driver_and_tasks_ends_all(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    driver = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(tmp_path / "tasks")], cwd=ROOT, start_new_session=True
    )
    wait_until(lambda: any((tmp_path / "tasks").iterdir()))
    assert strike(driver, signal.SIGTERM, group=True)
    assert driver.returncode in (143, 255)  # stopped by the signal, or after a task that ended first
    wait_until(lambda: not any(alive(int(path.name)) for path in (tmp_path / "tasks").iterdir()))


def test_failed_task_ends_other_tasks(conf: Configuration, lines: Lines, tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    conf.set("mapreduce.runner", "local")
    conf.set("tiny.folder", str(folder))
    with pytest.raises(StoreError):
        run_job(OneFailsJob, conf, lines("a", "b"), title="OneFailsJob")
    (task,) = (int(path.name) for path in folder.iterdir())
    wait_until(lambda: not alive(task))


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("-9", "a map task was killed by SIGKILL: most likely the machine, .* was out of memory .* -r inline"),
        ("-11", "a map task was killed by SIGSEGV, after the message: Fatal Python error: it rains: give .*"),
        ("7", "a map task ended with exit code 7, after the message: Fatal Python error: it rains: run the"),
    ],
)
def test_task_ending_without_message_is_named(
    conf: Configuration, lines: Lines, tmp_path: Path, ending: str, message: str
) -> None:
    for name, value in {"mapreduce.runner": "local", "tiny.folder": str(tmp_path), "tiny.ending": ending}.items():
        conf.set(name, value)
    with pytest.raises(RunnerError, match=message):
        run_job(KilledJob, conf, lines("a", "b"), title="KilledJob")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_progress_is_shown_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monitor = ProgressMonitor(tmp_path, "ParserJob", 200)
    first, second = (TaskChannel(str(tmp_path), name, lambda _: None) for name in "ab")
    first.advance(30)
    second.advance(20)
    first.close()
    second.close()
    monitor._started -= 10
    with monitor:
        wait_until(lambda: "rows/s" in screen.getvalue())
    assert "ParserJob: 50 of 200 rows (25 %), " in screen.getvalue()
    assert " s left" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")


def test_log_progress_is_written_every_ten_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    monitor = ProgressMonitor(tmp_path, "ParserJob", None)
    channel = TaskChannel(str(tmp_path), "a", lambda _: None)
    channel.advance(1234)
    channel.close()
    monitor._show()
    assert log.getvalue() == ""
    monitor._started -= 11
    monitor._show()
    assert log.getvalue().startswith("ParserJob: 1,234 rows, ")
    assert log.getvalue().endswith(" rows/s\n")


def test_log_lines_are_passed_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monitor = ProgressMonitor(tmp_path, "FetcherJob", None)
    log = tmp_path / "log"
    log.write_bytes(b"fetching one\nfetch")
    monitor._relay_log()
    with log.open("ab") as file:
        file.write("ing zwölf\n".encode())
    monitor._relay_log()
    assert capsys.readouterr().out == "fetching one\nfetching zwölf\n"


def test_without_channel_progress_is_hadoop_status(capsys: pytest.CaptureFixture[str]) -> None:
    statuses: list[str] = []
    channel = TaskChannel("", "a", statuses.append)
    channel.advance(5)
    channel.log_line("fetching one")
    channel.report_error(StoreError("the table is unavailable: check it"))
    channel.close()
    assert statuses[-1] == "5 rows"
    assert capsys.readouterr().err.splitlines() == [
        "fetching one",
        'nutch2py.error {"kind":"StoreError","text":"the table is unavailable: check it","trace":""}',
    ]


def test_hanging_task_reports_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[str] = []
    ticks = iter([False, False, False, True])
    channel = TaskChannel("", "a", statuses.append)
    channel.close()
    statuses.clear()
    monkeypatch.setattr(channel._closed, "wait", lambda _: next(ticks))
    monkeypatch.setattr("nutch2py.mapreduce.task_progress.time.process_time", lambda: 7.0)
    channel._report_status()
    assert len(statuses) == 1  # the first tick; then neither rows nor processor time went on


def test_retry_of_unavailable_service_counts_as_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[str] = []
    channel = TaskChannel("", "a", statuses.append)
    channel.close()
    statuses.clear()
    outage = ServiceRetry("HBase at hbase://h", 600, "")
    tried = iter([True, True, True, False, False])

    def tick(_: float) -> bool:
        if (more := next(tried, None)) is None:
            return True
        return not outage.wait_before_retry("away", immediately=True) if more else False

    monkeypatch.setattr(channel._closed, "wait", tick)
    monkeypatch.setattr("nutch2py.mapreduce.task_progress.time.process_time", lambda: 7.0)
    channel._report_status()
    outage.succeeded()
    assert len(statuses) == 3


def test_note_counts_as_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[str] = []
    channel = TaskChannel("", "a", statuses.append)
    channel.close()
    statuses.clear()
    said = iter([True, True, True, False, False])

    def tick(_: float) -> bool:
        if (more := next(said, None)) is None:
            return True
        if more:
            channel.set_note("0.0 pages/s, 1 queues, 0 active")  # the same words each time
        return False

    monkeypatch.setattr(channel._closed, "wait", tick)
    monkeypatch.setattr("nutch2py.mapreduce.task_progress.time.process_time", lambda: 7.0)
    channel._report_status()
    assert statuses == ["0 rows, 0.0 pages/s, 1 queues, 0 active"] * 3  # then the task hangs
