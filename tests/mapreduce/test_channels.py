"""Reports of tasks of one process to their driver, one task after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py import Crawl
from tests.jobs.crawl import properties


def test_rows_of_every_task_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of tasks that reuse the same memory address: the last one has no rows."""
    monkeypatch.setattr("nutch2py.mapreduce.table_job.id", lambda _: 7, raising=False)
    seeds = [f"http://h{number}.test/" for number in range(40)]
    with Crawl(f"embedded:{tmp_path / 'crawldata'}", {**properties(), "mapreduce.job.reduces": 3}) as crawl:
        crawl.inject(seeds)
        crawl.generate(batch_id="b")
        done = {each.job: each.rows for each in crawl.jobs()}
    assert done == {"inject": 40, "generate": 40}
