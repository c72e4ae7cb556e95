"""Every job, killed with SIGKILL all over its run and run again: all ends as if it had never been killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore, BatchState
from nutch2py.table.embedded.storage.table_files import acquire, release
from tests.counted_kills import Kills
from tests.jobs import crawl
from tests.jobs.stages import BATCH, JOBS, SCORES, Crawl, Stages, State, make_stages, state

KILLS = int(os.environ.get("NUTCH2PY_KILLS", "6"))
"""Kills of each job on each runner that have to hit."""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    with crawl.changing_site() as site:
        yield make_stages(site, tmp_path_factory.mktemp("kill"))


@pytest.mark.parametrize("runner", ["inline", "local"])
@pytest.mark.parametrize("job", [*JOBS, *SCORES])
def test_killed_job_is_completed_by_rerun(job: str, runner: str, before: Stages, tmp_path: Path) -> None:
    start, expected = before(job)
    words = (JOBS | SCORES)[job]
    whole = start.copy(tmp_path / "crawldata-0").run(words, runner)
    with Kills(f"{job} on {runner}", KILLS) as kills:
        for number, moment in enumerate(kills.moments(), 1):
            killed = start.copy(tmp_path / f"crawldata-{number}")
            took = killed.kill(words, runner, kills, moment * whole)
            if took is None:
                killed.run(words, runner)
            else:
                whole = min(whole, took)
            assert state(killed.conf) == expected, f"kill {number} of {job} on {runner}"
            shutil.rmtree(killed.folder)


@contextmanager
def held_within_its_writes(killed: Crawl, process: subprocess.Popen[bytes], before: State) -> Iterator[None]:
    """Hold an updatedb that is beyond its commit point at the lock of writers, when it has changed some rows.

    Nothing is to be hoped for of the moment, however slow or fast the machine is.
    """
    files = acquire(killed.folder / "webpage", 1 << 30, "the table")

    def is_within() -> bool:
        return process.poll() is not None or (is_committed(killed.conf) and crawl.table(killed.conf) != before)

    try:
        while True:
            with files.write_transaction():
                if is_within():
                    yield
                    return
            time.sleep(0.001)  # one group of rows is written, or two
    finally:
        release(files)


def is_committed(conf: Configuration) -> bool:
    """Return whether updatedb is beyond its commit point and not finished."""
    found = BatchListStore(conf).get_record(BATCH)
    return found is not None and found.state == BatchState.APPLYING


@pytest.mark.parametrize("moment", ["before the commit point", "after it"])
def test_update_killed_after_commit_is_finished_by_other_job(moment: str, before: Stages, tmp_path: Path) -> None:
    """Inject touches the rows that the update changes: killed after its commit point, the update comes first."""
    start, _ = before("updatedb")
    unchanged = crawl.table(start.conf)
    seeds = tmp_path / "seeds.txt"
    site = start.seeds.read_text().splitlines()[0].rpartition("/")[0]
    seeds.write_text("".join(f"{site}/{number}\tnutch.score=3\n" for number in range(crawl.PAGES)))
    update, others = JOBS["updatedb"], [["inject", str(seeds)], JOBS["updatedb"], [*JOBS["generate"][:-1], "test-3"]]

    def end(folder: str, *jobs: list[str]) -> State:
        crawled = start.copy(tmp_path / folder)
        for words in jobs:
            crawled.run(words)
        return state(crawled.conf)

    if moment == "after it":
        expected = end("whole", update, *others)
        assert expected != end("other", *others)
    else:
        expected = end("whole", *others)
    with Kills(f"updatedb {moment}, then others", 2) as kills:
        for number, _ in enumerate(kills.moments()):
            killed = start.copy(tmp_path / f"killed-{number}")
            process = killed.start(update)
            if moment == "after it":
                with held_within_its_writes(killed, process, unchanged):
                    kills.kill(process, group=True, finished=lambda killed=killed: not is_committed(killed.conf))
            else:
                kills.kill(process, group=True, finished=lambda killed=killed: is_committed(killed.conf))
            for words in others:
                killed.run(words)
            assert state(killed.conf) == expected
