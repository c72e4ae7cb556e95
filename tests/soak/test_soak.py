"""Soak test in its short form: a few real rounds, and the detection of each kind of leak."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.site.server import Reply
from tests.soak.memory_chart import write_csv, write_svg
from tests.soak.memory_verdict import Row, judge, judge_in_process, slope
from tests.soak.small_site import SMALL_PROGRAM, SMALL_SETTINGS, SmallSite
from tests.soak.soak_run import Soak
from tests.soak.web import HOSTILE_TRICKS, SHARES, Web

QUICK = {
    "length-short", "redirect-dots", "html-adoption", "type-none", "robots-delay-long", "charset-mixed", "missing",
    "head-endless", "deeper", "modified-long",
}  # fmt: skip
"""Tricks that cost next to nothing."""
TRICKS = [trick for trick in HOSTILE_TRICKS if trick.name in QUICK]
ROW = Row(1, 1.0, 30.0, 1000, 900, 50.0, 10.0, 150.0, 40.0, 9, 3, 0, 0, 180.0, 120.0, 300.0, 60, 5.0)
ENDED: dict[str, Any] = {"tricks": {"silent": {"exception": 3}}, "open": [], "lost": [], "good": 100, "rows": 500}


def rows(count: int = 30, **climb: float) -> list[Row]:
    """Return rounds that are alike but for what climbs, by so much at each."""
    return [
        replace(ROW, number=n, **{name: getattr(ROW, name) + n * by for name, by in climb.items()})  # type: ignore[arg-type]
        for n in range(1, count + 1)
    ]


def failures(given: list[Row], **ended: Any) -> list[str]:
    return judge(given, {**ENDED, **ended}, 1024).failures


def test_short_soak_of_real_crawl_passes(tmp_path: Path) -> None:
    assert len(TRICKS) >= 8
    soak, reported = Soak(Web(7, 150, TRICKS), tmp_path / "crawl", 60, {"fetcher.threads.fetch": 20}), []
    soak.run(lambda done: done < 3, lambda row, counters: reported.append(counters))
    assert [row.number for row in soak.rows] == [1, 2, 3]
    for row, counters in zip(soak.rows, reported, strict=True):
        assert 0 < row.pages <= row.generated == counters["generated"] <= 60
        assert sum(counters["parsed"].values()) >= row.pages
        assert row.memory > 20
        assert row.peak_together >= row.peak_crawler >= row.memory - 1
        assert row.peak_child > 1
    assert soak.rows[0].table_megabytes < soak.rows[-1].table_megabytes
    assert soak.requests > soak.hostile > 0
    assert soak.ended["good"] > 0
    climbs = [failure for failure in judge(soak.rows, soak.ended, 1024).failures if "climb" not in failure]
    assert climbs == []  # three rounds are too few to detect growth of memory


def test_leaking_process_is_detected(tmp_path: Path) -> None:
    soak = Soak(Web(1, 10, TRICKS), tmp_path, 10, program="tests.soak.leaky")
    soak.run(lambda done: done < 6, lambda row, counters: None)
    verdict = judge(soak.rows, soak.ended, 1024)
    assert verdict.slopes["memory at rest"] == pytest.approx(30, rel=0.2)
    assert [failure.split(" climb")[0].split(" are left")[0] for failure in verdict.failures] == [
        "memory at rest", "peak of the crawler", "handles", "temporary files",
    ]  # fmt: skip


def test_flat_series_passes() -> None:
    assert failures(rows()) == []
    assert failures(rows(table_megabytes=40, index_megabytes=10, mapped=5)) == []
    uneven = rows()
    for number, row in enumerate(uneven):
        row.memory += 15 * (number % 3)
        row.peak_crawler += 200 * (number % 7 == 0)
    assert failures(uneven) == []


@pytest.mark.parametrize(
    ("climbs", "message"),
    [
        ({"memory": 8.0}, "memory at rest climbs by 8.00 MB"),
        ({"memory": 1.5}, "memory at rest"),
        ({"peak_crawler": 5.0}, "peak of the crawler"),
        ({"handles": 1}, "handles climb"),
        ({"threads": 1}, "threads climb"),
        ({"temporary_files": 1}, "temporary files are left"),
        ({"children": 1}, "processes are left"),
        ({"peak_child": 40.0}, "a child has held 1320 MB"),
    ],
)
def test_growing_or_leftover_series_fails(climbs: dict[str, float], message: str) -> None:
    found = failures(rows(**climbs))
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    ("ended", "message"),
    [
        ({"open": ["http://h1.example/"]}, "1 pages were to be fetched"),
        ({"lost": ["http://h1.example/ exception"] * 2}, "2 honest pages are not there"),
        ({"tricks": {}}, "no hostile answer"),
    ],
)
def test_unfinished_run_fails(ended: dict[str, Any], message: str) -> None:
    (failure,) = failures(rows(), **ended)
    assert message in failure


def test_too_few_rounds_are_inconclusive() -> None:
    assert "too few" in failures(rows(1))[0]
    assert slope([1.0]) == 0
    assert slope([1.0, 2.0, 90.0, 4.0, 5.0]) == pytest.approx(1.0)


def test_table_and_chart_are_written(tmp_path: Path) -> None:
    given = rows(4, memory=2)
    write_csv(given, tmp_path / "soak.csv")
    write_svg(given, tmp_path / "soak.svg")
    with (tmp_path / "soak.csv").open(encoding="utf-8") as source:
        read = list(csv.DictReader(source))
    assert [each["memory"] for each in read] == ["152.0", "154.0", "156.0", "158.0"]
    lines = [element for element in ET.parse(tmp_path / "soak.svg").iter() if element.tag.endswith("polyline")]
    assert len(lines) > 5
    assert all(len((line.get("points") or "").split()) == 4 for line in lines)


def test_seed_determines_web_and_its_shares() -> None:
    web, again, other = Web(3, 3000), Web.of(Web(3, 3000).to_json()), Web(4, 3000)
    kinds = [web.place(number).kind for number in range(3000)]
    assert kinds == [again.place(number).kind for number in range(3000)]
    assert kinds != [other.place(number).kind for number in range(3000)]
    for kind, share in SHARES.items():
        assert abs(kinds.count(kind) / 3000 - share) < 0.02
    honest = next(web.name(n) for n in range(3000) if kinds[n] == "honest" and web.is_good(web.name(n), "/"))
    first, second = web.answer(honest, "/", 80), again.answer(honest, "/", 80)
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert first.body == second.body != b""
    assert first.status == 200


def test_equal_rounds_in_one_process_accumulate_no_objects(tmp_path: Path) -> None:
    """Without collection after jobs, a round leaves some 4,600 objects in reference cycles."""
    objects: list[int] = []
    soak = Soak(SmallSite(1, 6), tmp_path, 6, SMALL_SETTINGS, SMALL_PROGRAM)
    soak.run(lambda done: done < 12, lambda row, counters: objects.append(counters["objects"]))
    assert [row.pages for row in soak.rows] == [6] * 12
    assert max(objects[9:]) < objects[2] + 30_000


def test_growth_over_twentieth_round_fails() -> None:
    assert judge_in_process(rows(300)).failures == []
    assert judge_in_process(rows(300, memory=0.09)).failures == []
    (failure,) = judge_in_process(rows(300, memory=0.2)).failures
    assert failure == "memory at rest grows from 154.0 MB at round 20 to 209.6"
    assert len(judge_in_process(rows(300, handles=1, threads=1)).failures) == 2
    assert "too few" in judge_in_process(rows(20)).failures[0]
