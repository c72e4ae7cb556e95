"""Start of every job: a mistyped name creates nothing, and a missing table is named with its exit code."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.job_context import open_job
from nutch2py.jobs.locking.lock_scopes import INJECT
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.records.webpage import DerivedRow, Host, Mark, WebPage
from nutch2py.table import open_store
from tests.jobs.concurrent_commands import holders
from tests.jobs.rows import marked, put

ON_A_BATCH = ["fetch", "parse", "updatedb", "index"]
ON_THE_TABLE = ["generate", "dedup", "clean", "pagerank", "updatehostdb", "readdb -stats", "readdb -batches"]


def run(conf: Configuration, words: str, *options: str) -> int:
    location = conf.get("storage.data.store")
    more = ["-D", f"storage.data.store={location}", "-D", "http.agent.name=test"]
    return main([*words.split(), *more, *options])


@pytest.mark.parametrize("words", [*ON_THE_TABLE, *(f"{job} some-batch" for job in ON_A_BATCH), "fetch -all"])
def test_missing_crawl_is_rejected_and_nothing_created(
    conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    put(conf, {"http://a.test/": {}})
    before = sorted(tmp_path.rglob("*"))
    assert run(conf, words, "-crawlId", "mistyped") == 4
    error = capsys.readouterr().err
    assert "there is no table mistyped_webpage at embedded:" in error
    assert "run nutch2py crawl or inject first, or correct -crawlId" in error
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("job", ON_A_BATCH)
def test_missing_batch_has_nothing_to_do(conf: Configuration, capsys: pytest.CaptureFixture[str], job: str) -> None:
    put(conf, {"http://a.test/": {"fetch_time": 1}})
    generate(conf, batch_id="there")
    assert run(conf, f"{job} mistyped") == 1
    assert "there is no batch mistyped to work on in webpage" in capsys.readouterr().err
    assert marked(conf, Mark.GENERATE, "there") == {"http://a.test/"}


def test_nutch_2_batch_is_found_by_marks(conf: Configuration) -> None:
    """It has no state in the derived table, which Nutch 2 knows nothing of."""
    put(conf, {"http://a.test/": {"marks": {Mark.GENERATE: "theirs"}}})
    assert not open_store(conf, DerivedRow).exists()
    updatedb(conf, "theirs")
    assert marked(conf, Mark.GENERATE) == set()


def test_only_written_tables_are_created(conf: Configuration) -> None:
    put(conf, {"http://a.test/": {}})
    assert run(conf, "dedup") == 0
    assert not open_store(conf, Host).exists()
    assert open_store(conf, WebPage).exists()


def test_job_stopped_between_tasks_releases_lock(conf: Configuration) -> None:
    """As when it writes what its tasks have found; the exit code is that of a task's end."""
    lists = BatchListStore(conf)

    def work() -> None:
        with open_job(conf, INJECT, creates_table=True):
            assert holders(lists)
            signal.raise_signal(signal.SIGTERM)
            pytest.fail("the job continues")

    with pytest.raises(SystemExit) as stop:
        work()
    assert stop.value.code == 143
    assert not holders(lists)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
