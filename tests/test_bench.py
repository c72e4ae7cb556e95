"""The benchmarks: commands and results. No time is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import cycle, hosts, inject, pagerank, size, updatedb
from bench.__main__ import main, subcommands
from bench.measuring import CommandError, Cost, Measurement, Nutch, cpu_seconds, run
from bench.report import as_json, table
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.pagerank.pagerank_job import pagerank as rank
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.support.clock import now_ms
from nutch2py.table import TableQuery, open_store
from nutch2py.table.due_index import TimeSpan
from nutch2py.url.url_parts import host_of
from tests.conftest import ROOT

PYTHON = sys.executable


def rows(folder: Path) -> int:
    conf = Configuration.load(overrides=Nutch(folder).settings)
    return sum(1 for _ in open_store(conf, WebPage).scan(TableQuery.for_fields({WebPage.markers})))


class TestMeasuring:
    def test_cpu_time_of_nested_children_is_counted(self) -> None:
        burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
        nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}], check=True)"
        assert run([PYTHON, "-c", nested]).cpu >= 0.3

    def test_memory_of_process_and_child_is_summed(self) -> None:
        hold = "import time; held = b'x' * 60_000_000; time.sleep(0.6)"
        both = (
            f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {hold!r}]); {hold}; child.wait()"
        )
        cost = run([PYTHON, "-c", both])
        assert 120_000_000 < cost.memory < 240_000_000
        assert 60_000_000 < cost.largest < 120_000_000

    def test_failing_command_raises_with_its_output(self) -> None:
        with pytest.raises(CommandError, match=r"(?s)ended with 3.*no luck"):
            run([PYTHON, "-c", "print('no luck'); raise SystemExit(3)"])
        assert run([PYTHON, "-c", "raise SystemExit(3)"], allowed=(0, 3)).cpu > 0


class TestReport:
    COST = Cost(cpu=2.0, wall=4.0, memory=50_000_000, largest=60_000_000)

    def test_text_and_markdown_tables_have_same_cells(self) -> None:
        measured = [
            Measurement("small", 1000, self.COST, "rows"),
            Measurement("large", 10_000, Cost(10.0, 10.0, 1, 1), "rows", aim=12.0),
        ]
        markdown = table(measured, markdown=True).splitlines()
        assert markdown[2] == "| small | 1,000 rows | 2.0 |  | 500 | 2,000.0 µs = 1.00 | 50 | 60 | 4.0 |"
        assert markdown[3] == "| large | 10,000 rows | 10.0 | 12 | 1,000 | 1,000.0 µs = 0.50 | 0 | 0 | 10.0 |"
        assert table(measured).splitlines()[1].split()[:3] == ["small", "1,000", "rows"]

    def test_json_report_contains_measurements_and_environment(self) -> None:
        measured = [Measurement("small", 1000, self.COST, "rows", servers=0.5, calibration=0.12, disk=3_000_000)]
        found = json.loads(as_json(measured, ["inject", "1000"]))
        assert found["command"] == ["inject", "1000"]
        assert found["cores"] == os.cpu_count()
        (result,) = found["results"]
        assert (result["work"], result["cpu_seconds"], result["wall_seconds"]) == ("small", 2.0, 4.0)
        assert (result["servers_cpu_seconds"], result["calibration_cpu_seconds"]) == (0.5, 0.12)
        assert result["disk_bytes"] == 3_000_000
        assert table(measured).splitlines()[1].startswith("small (servers 0.5 s of it, calibration 0.12 s, disk 3 MB)")


class TestCycle:
    STUB = """#!/usr/bin/env bash
printf '%s|' "$@" >>calls; printf '%s\n' "$NUTCH_OPTS" >>calls
[ "$1" != generate ] || mkdir -p segments/20261123
"""

    def original(self, tmp_path: Path, version: str) -> cycle.Original:
        for name in ("bin", "lib"):
            (tmp_path / "built" / name).mkdir(parents=True)
        (tmp_path / "built" / "lib" / f"apache-nutch-{version}.jar").touch()
        command = tmp_path / "built" / "bin" / "nutch"
        command.write_text(self.STUB, encoding="utf-8")
        command.chmod(0o755)
        return cycle.Original(tmp_path / "built", tmp_path / "work")

    def test_comparison_alternates_ours_and_original_and_sums_each(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NUTCH2PY_BENCH_SERVERS", str(os.getpid()))
        turns: list[str] = []

        def program(name: str) -> Callable[[str], Cost | None]:
            def call(job: str) -> Cost | None:
                turns.append(f"{job} {name}")
                return None if (job, name) == ("invertlinks", "ours") else Cost(2.0, 3.0, 10, 20)

            return call

        found = cycle.in_turns(["ours", "theirs"], [program("ours"), program("theirs")], 500)
        assert turns[:4] == ["inject ours", "inject theirs", "generate ours", "generate theirs"]
        works = [each.work for each in found]
        assert "invertlinks, theirs" in works
        assert "invertlinks, ours" not in works
        assert works[-2:] == ["cycle, ours", "cycle, theirs"]
        assert all(each.calibration for each in found[:-2])
        ours = [each.cost.cpu for each in found if each.work.endswith("ours")]
        assert sum(ours[:-1]) == pytest.approx(ours[-1])
        assert (found[-2].cost.wall, found[-1].cost.wall) == (18.0, 21.0)

    @pytest.mark.parametrize("version", ["1.23", "2.4"])
    def test_original_runs_each_of_its_jobs(self, tmp_path: Path, version: str) -> None:
        original = self.original(tmp_path, version)
        assert original.name == f"Nutch {version[0]}"
        for job in ("inject", "generate", "fetch", "parse", "updatedb", "invertlinks", "index"):
            cost = original(job, tmp_path / "seeds", tmp_path / "hosts.txt")
            assert (cost is None) == (version == "2.4" and job == "invertlinks")
        calls = (tmp_path / "work" / "calls").read_text(encoding="utf-8").splitlines()
        assert all(call.endswith(f"-Djdk.net.hosts.file={tmp_path / 'hosts.txt'}") for call in calls)
        assert all("|-D|fetcher.server.delay=0|" in call for call in calls)
        fetch = calls[2].split("|")
        last = f"{tmp_path}/work/segments/20261123" if version == "1.23" else "1600000000-1"
        assert fetch[0] == "fetch"
        assert fetch[-4:-1] == [last, "-threads", "100"]

    def test_folder_without_nutch_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="has no bin/nutch"):
            cycle.Original(tmp_path, tmp_path / "work")

    def test_cpu_of_servers_is_counted(self) -> None:
        before = cpu_seconds([os.getpid()])
        run([PYTHON, "-c", "sum(i * i for i in range(3_000_000))"])
        assert cpu_seconds([os.getpid()]) > before
        assert cpu_seconds([]) == 0


class TestSeeds:
    def test_seeds_are_deterministic_and_distinct(self) -> None:
        lines = list(inject.seed_lines(5000))
        assert lines == list(inject.seed_lines(5000))
        assert len(set(lines)) == 5000
        assert len({host_of(line.strip()) for line in lines}) == 50

    def test_every_seed_becomes_a_row(self, tmp_path: Path) -> None:
        inject.measure(1000, tmp_path, "inline")
        assert rows(tmp_path) == 1000


class TestTheTableOfUpdatedb:
    def test_generated_table_equals_parsed_batch(self, conf: Configuration) -> None:
        updatedb.build(conf, 400)
        assert BatchListStore(conf).is_complete(updatedb.BATCH)
        found = list(open_store(conf, WebPage).scan(TableQuery.for_fields({WebPage.outlinks, WebPage.markers})))
        assert len(found) == 400
        assert {len(page.outlinks) for _, page in found} == {updatedb.LINKS}
        assert {page.markers[Mark.PARSE] for _, page in found} == {updatedb.BATCH}

    def test_updatedb_accepts_generated_table(self, tmp_path: Path) -> None:
        (measured,) = updatedb.measure(400, tmp_path, "inline")
        assert measured.records == 400 * 21
        assert rows(tmp_path) > 400


def test_generated_large_table_has_no_other_due_rows(conf: Configuration, tmp_path: Path) -> None:
    size.build(conf, 300)
    index = open_store(conf, WebPage).due_index()
    statistics, now = index.statistics(), now_ms()
    assert (statistics.total, statistics.status[CrawlStatus.FETCHED], len(statistics.scores) > 100) == (300, 300, True)
    assert index.count([TimeSpan(0, now)], 300) == 0
    assert index.count([TimeSpan(0, now + 31 * 86_400_000)], 300) == 300
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"x" * 10_000)
    assert 10_000 <= size.bytes_of(tmp_path / "folder") < 100_000


def test_scipy_pagerank_matches_pagerank_job(conf: Configuration, tmp_path: Path) -> None:
    conf.set("pagerank.model", "classic")
    pagerank.build(conf, 400, tmp_path / "edges")
    result = rank(conf)
    assert (result.pages, result.links) == (400, 400 * pagerank.LINKS)
    found = [page.page_rank for _, page in open_store(conf, WebPage).scan(TableQuery.for_fields({WebPage.page_rank}))]
    assert list(pagerank.bare(tmp_path / "edges")) == pytest.approx(found, abs=1e-6)


def test_each_crawl_job_can_be_measured() -> None:
    assert {"inject", "generate", "updatedb"} <= set(subcommands())


def test_command_line_prints_measurements(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["generate", "200", "400", "--markdown", "--folder", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| generate 20 of 200 | 200 rows | ")
    assert lines[3].startswith("| generate 40 of 400 | 400 rows | ")
    assert list(tmp_path.iterdir()) == []


def test_bench_script_lists_measurements() -> None:
    done = subprocess.run([ROOT / "scripts" / "bench", "--help"], capture_output=True, text=True, check=True)
    assert "updatedb: a batch of ROWS parsed pages with 20 links each" in done.stdout


def test_requests_of_many_hosts_are_counted_by_server_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "_HOSTS", 4)
    monkeypatch.setattr(hosts, "_SLOW_PAGES", 1)
    polite, slow, alone = hosts.measure(8, tmp_path, "inline")
    assert [each.records for each in (polite, slow, alone)] == [8, 4, 4]
    rates = [float(each.work.rpartition(": ")[2].removesuffix(" pages/s")) for each in (polite, slow, alone)]
    assert rates[0] <= 8  # two pages per host, a second between them
    assert max(rates[1:]) <= 4  # all concurrently, after a second
    assert polite.cost.cpu > 0
