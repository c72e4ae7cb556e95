"""The trials themselves, with a small Solr without Java: silent for longer than the timeout, and restarted.

Trials with real servers take as long as configured: ``scripts/test outages``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.jobs import crawl
from tests.jobs.stages import Stages, make_stages
from tests.outages import small_solr
from tests.outages.outage_trials import run
from tests.outages.retry_subjects import Subject, Trial


class SmallSolr(Subject):
    """A process that serves :mod:`tests.outages.small_solr`."""

    def __init__(self, folder: Path) -> None:
        self.file, self.port = folder / "documents.json", 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, str(small_solr.__file__), str(self.port), str(self.file)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self._process.stdout.close()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        self.start()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def trial(self, stages: Stages, folder: Path) -> Trial:
        stage, after = stages("index")
        folder.mkdir()
        made = stage.copy(folder / "crawl")
        made.settings |= {
            "solr.server.url": f"http://127.0.0.1:{self.port}/solr/nutch",
            "solr.schema.check": "false",
            "solr.commit.size": "1",
        }
        self.file.unlink(missing_ok=True)
        prefix = "document "
        expected = {name.removeprefix(prefix) for name, found in after.items() if name.startswith(prefix) and found}
        return Trial(made, ["index", "-all"], self._ids, expected)

    def _ids(self) -> Any:
        return set(json.loads(self.file.read_text())) if self.file.exists() else set()


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    with crawl.changing_site() as site:
        yield make_stages(site, tmp_path_factory.mktemp("outages"))


@pytest.mark.parametrize(
    ("way", "seconds", "first_line"),
    [
        ("kill", 4, "does not respond (connection refused): trying for 600 s"),
        ("stop", 11, "has not responded for 10 s"),
    ],
)
def test_job_waits_for_unavailable_service_and_succeeds(
    stages: Stages, tmp_path: Path, way: str, seconds: float, first_line: str
) -> None:
    subject = SmallSolr(tmp_path)
    subject.start()
    try:
        outcome = run(subject, stages, way, seconds, tmp_path)
    finally:
        subject.kill()
    assert (outcome.code, outcome.right) == (0, True), outcome
    first, last = outcome.said
    assert first_line in first
    assert "responds again, after" in last
