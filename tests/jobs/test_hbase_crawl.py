"""A crawl in a real HBase equals the embedded crawl's table, in Nutch 2.4's format, despite killed processes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import happybase
import pytest

from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from tests.counted_kills import Kills
from tests.jobs import crawl
from tests.jobs.stages import JOBS, Stages, make_stages, on_hbase, state
from tests.table import strict


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    with crawl.changing_site() as site:
        yield make_stages(site, tmp_path_factory.mktemp("hbase"))


def test_every_job_on_hbase_equals_embedded(before: Stages, hbase: Any, tmp_path: Path) -> None:
    for job, words in JOBS.items():
        stage, expected = before(job)
        copy = on_hbase(stage, hbase, tmp_path / job)
        copy.run(words)
        assert state(copy.conf) == expected, job


def test_hbase_crawl_has_nutch_format(before: Stages, hbase: Any, tmp_path: Path) -> None:
    """A table written wholly here, read with happybase alone by a decoder of the format."""
    stage, _ = before("inject")
    copy = on_hbase(stage, hbase, tmp_path / "whole")
    crawl.rounds(copy.conf, str(stage.seeds))
    table = happybase.Connection("127.0.0.1", hbase.port("gateway")).table(open_store(copy.conf, WebPage).name)
    rows = list(table.scan())
    assert len(rows) > 40
    for row, cells in rows:
        strict.check(row, cells)
    families = {name.rstrip(b":") for name in table.families()}
    assert families == {b"f", b"h", b"il", b"mk", b"mtdt", b"ol", b"p", b"s", b"stm"}
    assert {options["max_versions"] for options in table.families().values()} == {1}
    assert {options["bloom_filter_type"] for options in table.families().values()} == {b"ROW"}


@pytest.mark.parametrize("part", ["gateway", "master"])
@pytest.mark.parametrize("job", JOBS)
def test_killed_hbase_server_during_job_is_recovered(
    job: str, part: str, before: Stages, hbase: Any, tmp_path: Path
) -> None:
    stage, expected = before(job)
    whole = on_hbase(stage, hbase, tmp_path / "undisturbed").run(JOBS[job])
    with Kills(f"{part} under {job}", least=0.2) as kills:
        for number, moment in enumerate(kills.moments()):
            copy = on_hbase(stage, hbase, tmp_path / f"disturbed-{number}")
            process = copy.start(JOBS[job])
            with suppress(subprocess.TimeoutExpired):
                process.wait(moment * whole / 2)  # until the server is dead, more time passes
            hbase.crash(part)
            kills.count(process.poll() is None)
            time.sleep(0.5)
            hbase.start()
            if process.wait(timeout=240) != 0:
                assert "Traceback" not in copy.said, copy.said
                copy.run(JOBS[job])
            assert state(copy.conf) == expected
