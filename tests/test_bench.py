"""The measurements: what they run, and what they make of it. No time is asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import inject, pagerank, updatedb
from bench.__main__ import main, subcommands
from bench.measuring import CommandError, Cost, Measurement, Nutch, run
from bench.report import table
from nutch2py.conf import Configuration
from nutch2py.jobs.batchlist import BatchLists
from nutch2py.jobs.pagerank import pagerank as rank
from nutch2py.table import Query, open_store
from nutch2py.url.parts import host_of
from nutch2py.webpage import Mark, WebPage
from tests.conftest import ROOT

PYTHON = sys.executable


def rows(folder: Path) -> int:
    conf = Configuration.load(overrides=Nutch(folder).settings)
    return sum(1 for _ in open_store(conf, WebPage).scan(Query.of({WebPage.markers})))


class TestMeasuring:
    def test_cpu_time_of_children_and_their_children_counts(self) -> None:
        burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
        nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}], check=True)"
        assert run([PYTHON, "-c", nested]).cpu >= 0.3

    def test_memory_of_a_process_and_its_child_at_once(self) -> None:
        hold = "import time; held = b'x' * 60_000_000; time.sleep(0.6)"
        both = (
            f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {hold!r}]); {hold}; child.wait()"
        )
        cost = run([PYTHON, "-c", both])
        assert 120_000_000 < cost.memory < 240_000_000
        assert 60_000_000 < cost.largest < 120_000_000

    def test_a_command_that_fails_says_why(self) -> None:
        with pytest.raises(CommandError, match=r"(?s)ended with 3.*no luck"):
            run([PYTHON, "-c", "print('no luck'); raise SystemExit(3)"])
        assert run([PYTHON, "-c", "raise SystemExit(3)"], allowed=(0, 3)).cpu > 0


class TestReport:
    COST = Cost(cpu=2.0, wall=4.0, memory=50_000_000, largest=60_000_000)

    def test_text_and_markdown_have_the_same_cells(self) -> None:
        measured = [
            Measurement("small", 1000, self.COST, "rows"),
            Measurement("large", 10_000, Cost(10.0, 10.0, 1, 1), "rows", aim=12.0),
        ]
        markdown = table(measured, markdown=True).splitlines()
        assert markdown[2] == "| small | 1,000 rows | 2.0 |  | 500 | 2,000.0 µs = 1.00 | 50 | 60 | 4.0 |"
        assert markdown[3] == "| large | 10,000 rows | 10.0 | 12 | 1,000 | 1,000.0 µs = 0.50 | 0 | 0 | 10.0 |"
        assert table(measured).splitlines()[1].split()[:3] == ["small", "1,000", "rows"]


class TestSeeds:
    def test_they_are_the_same_each_time_and_all_different(self) -> None:
        lines = list(inject.seed_lines(5000))
        assert lines == list(inject.seed_lines(5000))
        assert len(set(lines)) == 5000
        assert len({host_of(line.strip()) for line in lines}) == 50

    def test_every_one_becomes_a_row(self, tmp_path: Path) -> None:
        inject.measure(1000, tmp_path, "inline")
        assert rows(tmp_path) == 1000


class TestTheTableOfUpdatedb:
    def test_it_is_a_batch_as_the_parser_job_leaves_it(self, conf: Configuration) -> None:
        updatedb.build(conf, 400)
        assert BatchLists(conf).complete(updatedb.BATCH)
        found = list(open_store(conf, WebPage).scan(Query.of({WebPage.outlinks, WebPage.markers})))
        assert len(found) == 400
        assert {len(page.outlinks) for _, page in found} == {updatedb.LINKS}
        assert {page.markers[Mark.PARSE] for _, page in found} == {updatedb.BATCH}

    def test_the_job_takes_it(self, tmp_path: Path) -> None:
        (measured,) = updatedb.measure(400, tmp_path, "inline")
        assert measured.records == 400 * 21
        assert rows(tmp_path) > 400


def test_bare_scipy_ranks_the_pages_as_the_job_does(conf: Configuration, tmp_path: Path) -> None:
    conf.set("pagerank.model", "classic")
    pagerank.build(conf, 400, tmp_path / "edges")
    result = rank(conf)
    assert (result.pages, result.links) == (400, 400 * pagerank.LINKS)
    found = [page.page_rank for _, page in open_store(conf, WebPage).scan(Query.of({WebPage.page_rank}))]
    assert list(pagerank.bare(tmp_path / "edges")) == pytest.approx(found, abs=1e-6)


def test_the_jobs_of_a_crawl_can_be_measured() -> None:
    assert {"inject", "generate", "updatedb"} <= set(subcommands())


def test_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["generate", "200", "400", "--markdown", "--folder", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| generate 20 of 200 | 200 rows | ")
    assert lines[3].startswith("| generate 40 of 400 | 400 rows | ")
    assert list(tmp_path.iterdir()) == []


def test_the_script_names_what_can_be_measured() -> None:
    done = subprocess.run([ROOT / "scripts" / "bench", "--help"], capture_output=True, text=True, check=True)
    assert "updatedb: a batch of ROWS parsed pages with 20 links each" in done.stdout
