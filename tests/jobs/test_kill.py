"""Every job, killed with SIGKILL at random moments and run again: the table ends as if it had never been killed."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs import crawl
from tests.jobs.stages import JOBS, Crawl, Stages, make_stages

KILLS = int(os.environ.get("NUTCH2PY_KILLS", "20"))


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    with crawl.site() as url:
        yield make_stages(url, tmp_path_factory.mktemp("kill"))


@pytest.mark.parametrize("runner", ["inline", "local"])
@pytest.mark.parametrize("job", JOBS)
def test_killed_and_run_again(job: str, runner: str, before: Stages, tmp_path: Path) -> None:
    start, expected = before(job)
    chance = random.Random(f"{job} {runner}")

    def fresh(number: int) -> Crawl:
        folder = tmp_path / f"crawldata-{number}"
        shutil.copytree(start.folder, folder)
        return Crawl(folder, start.seeds)

    whole = fresh(0).run(JOBS[job], runner)
    for number in range(1, KILLS // 2 + 1):
        killed = fresh(number)
        killed.kill(JOBS[job], runner, chance.uniform(0.1, 1.05) * whole)
        killed.run(JOBS[job], runner)
        assert crawl.table(killed.conf) == expected, f"kill {number} of {job} on {runner}"
        shutil.rmtree(killed.folder)
