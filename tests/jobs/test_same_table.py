"""However a crawl is run, it ends in the same table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from tests.jobs import crawl


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with crawl.site() as url:
        yield url


@pytest.fixture(scope="module")
def reference(site: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """The table of a crawl that ran inline, through batch lists."""
    return crawled(tmp_path_factory.mktemp("reference"), site, {})


def crawled(folder: Path, site: str, settings: dict[str, str]) -> dict[str, dict[str, bytes]]:
    """Crawl the site with some properties set; return the table."""
    seeds = folder / "seeds.txt"
    seeds.write_text(f"{site}/0\n{site}/7\tnutch.score=2\n")
    store = {"storage.data.store": f"embedded:{folder / 'crawldata'}"}
    conf = Configuration.load(overrides={**crawl.SETTINGS, **store, **settings})
    crawl.rounds(conf, str(seeds))
    return crawl.table(conf)


def test_reference_crawl_has_every_row_kind(reference: dict[str, dict[str, bytes]]) -> None:
    statuses = {cells.get("f:st", b"")[-1:] for cells in reference.values()}
    assert {b"\x01", b"\x02", b"\x03", b"\x05"} <= statuses
    assert len(reference) > 40


@pytest.mark.parametrize(
    "settings",
    [
        {"storage.batch.list": "false"},
        {"mapreduce.runner": "local"},
        {"mapreduce.runner": "local", "storage.batch.list": "false", "mapreduce.job.reduces": "3"},
        {"mapreduce.job.maps": "4", "mapreduce.job.reduces": "3"},
        {"gora.buffer.write.limit": "1"},
    ],
    ids=["no list", "local", "local, no list, 3 reduces", "4 maps, 3 reduces", "row by row"],
)
def test_every_runner_and_task_count_gives_same_table(
    reference: dict[str, dict[str, bytes]], site: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    assert crawled(tmp_path, site, settings) == reference


def test_repeated_jobs_change_nothing(reference: dict[str, dict[str, bytes]], site: str, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{site}/0\n{site}/7\tnutch.score=2\n")
    conf = Configuration.load(overrides={**crawl.SETTINGS, "storage.data.store": f"embedded:{tmp_path / 'crawldata'}"})
    crawl.inject(conf, str(seeds))
    for number in (1, 2, 3, 4):
        batch = f"test-{number}"
        crawl.inject(conf, str(seeds))
        crawl.generate(conf, top_n=20, batch_id=batch)
        for job in (crawl.fetch, crawl.fetch, crawl.parse, crawl.parse, crawl.updatedb, crawl.updatedb):
            job(conf, batch)
    assert crawl.table(conf) == reference
