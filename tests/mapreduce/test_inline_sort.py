"""inline and local sort small map output in memory and large output with sort(1): in the same order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.mapreduce.runners import local_runners
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from tests.jobs.crawl import table
from tests.jobs.rows import fetchlist


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    """Seeds in no order, many of them repeated with other scores: the last counts, which needs a stable sort."""
    chance = random.Random(7)
    file = tmp_path / "seeds.txt"
    names = ["é", "zz", "a b", "%7E", "~", "A", "aa/", "a", "\u4e2d\u6587", "p.html"]
    lines = [
        f"http://h{chance.randrange(9)}.example/{chance.choice(names)}\tnutch.score={chance.randrange(50)}\n"
        for _ in range(800)
    ]
    file.write_text("".join(lines), encoding="utf-8")
    return file


def crawled(conf: Configuration, seeds: Path, folder: Path) -> tuple[object, object]:
    conf = conf.copy()
    conf.set("storage.data.store", f"embedded:{folder}")
    conf.set("mapreduce.job.reduces", "3")
    inject(conf, str(seeds))
    generate(conf, top_n=40, batch_id="b")
    assert open_store(conf, WebPage).exists()
    return table(conf), fetchlist(conf, "b")


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_external_sort_gives_same_tables(
    conf: Configuration, seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    conf.set("mapreduce.runner", runner)
    in_memory = crawled(conf, seeds, tmp_path / "memory")
    monkeypatch.setattr(local_runners, "MAX_IN_MEMORY_SORT", 0)
    assert crawled(conf, seeds, tmp_path / "sorted") == in_memory


def test_missing_sort_command_sorts_in_memory(
    conf: Configuration, seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_memory = crawled(conf, seeds, tmp_path / "memory")
    monkeypatch.setattr(local_runners, "MAX_IN_MEMORY_SORT", 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert crawled(conf, seeds, tmp_path / "no-sort") == in_memory
