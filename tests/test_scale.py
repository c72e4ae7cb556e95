"""The model of large clusters: against what was measured, against itself, and the pages made of it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.__main__ import main
from bench.measuring import Cost, Measurement
from bench.scaling import calibrating
from bench.scaling.__main__ import NODES, ROWS, results, tables
from bench.scaling.hosts import fetching, host_sizes
from bench.scaling.jobs import JOBS
from bench.scaling.model import Cluster, Crawl, makespan, outcome, region_shares, stops_scaling, work
from bench.scaling.parameters import PARAMETERS, values
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "scale.md"
FACTOR = 2.0
HBASE = [
    # job, rows, of the batch, CPU seconds with the servers': docs/measurements, jobs over a table in HBase
    ("inject", 20_000, 20_000, 5.8),
    ("inject", 100_000, 100_000, 14.5),
    ("inject", 500_000, 500_000, 70.7),
    ("generate", 20_000, 1_000, 2.5),
    ("generate", 100_000, 10_000, 7.6),
    ("generate", 500_000, 1_000, 24.2),
    ("generate, one reducer", 500_000, 1_000, 24.2),
    ("updatedb", 100_000, 10_000, 11.9),
    # the same work side by side with Nutch, another day
    ("fetch", 10_000, 10_000, 12.4),
    ("parse", 10_000, 10_000, 21.4),
    ("updatedb", 10_000, 10_000, 17.9),
    ("readdb -stats", 100_000, 10_000, 4.4),
]
EMBEDDED = [
    # the tasks' part alone, as there are no servers: docs/measurements
    ("inject", 1_000_000, 1_000_000, 43.3),
    ("generate", 1_000_000, 100_000, 26.3),
    ("updatedb", 100_000, 100_000, 37.0),
    ("updatedb", 1_000_000, 1_000_000, 384.1),
]


def crawl(rows: int, batch: int) -> Crawl:
    return Crawl(rows=rows, batch=batch / rows, due=1.0, fetched=1.0)


def off_by(found: float, measured: float) -> float:
    return max(found / measured, measured / found)


@pytest.mark.parametrize(("job", "rows", "batch", "cpu"), HBASE)
def test_model_matches_measured_jobs_over_hbase(job: str, rows: int, batch: int, cpu: float) -> None:
    parameters = values()
    phases = JOBS[job](crawl(rows, batch), Cluster(nodes=1), parameters)
    assert off_by(work(phases, parameters), cpu) <= FACTOR


@pytest.mark.parametrize(("job", "rows", "batch", "cpu"), EMBEDDED)
def test_model_matches_measured_jobs_over_million_rows(job: str, rows: int, batch: int, cpu: float) -> None:
    parameters = values()
    phases = JOBS[job](crawl(rows, batch), Cluster(nodes=1), parameters)
    assert off_by(sum(phase.task for phase in phases), cpu) <= FACTOR


@pytest.mark.parametrize(("pages", "cpu"), [(100_000, 35.6 - 24.3), (1_000_000, 77.5 - 24.3)])
def test_model_matches_measured_pagerank_mapreduce(pages: int, cpu: float) -> None:
    """Apart from what its tasks take to start."""
    phases = JOBS["pagerank"](crawl(pages, 1), Cluster(nodes=1), values())
    assert off_by(sum(phase.task for phase in phases), cpu) <= FACTOR


def test_model_matches_measured_generate_on_single_node() -> None:
    """200,000 rows, with the start of its tasks: 44.9 CPU seconds, of which 4.5 each were two JVMs of the client."""
    cluster, parameters = Cluster(nodes=1, cores=2, slots=2), values()
    found = outcome(JOBS["generate"](crawl(200_000, 20_000), cluster, parameters), cluster, parameters, 1)
    assert off_by(found.cpu + 9.0, 44.9) <= FACTOR


@pytest.mark.parametrize("job", JOBS)
def test_cost_grows_with_rows_and_not_with_nodes(job: str) -> None:
    """But for the start of more tasks, and the chance by which hosts meet."""
    parameters = values()
    found = {
        (rows, nodes): outcome(
            JOBS[job](Crawl(rows=rows), Cluster(nodes=nodes), parameters), Cluster(nodes=nodes), parameters, 1
        )
        for rows in (10_000_000, 100_000_000, 1_000_000_000)
        for nodes in (1, 10, 100)
    }
    for nodes in (1, 10, 100):
        cpu = [found[rows, nodes].cpu for rows in (10_000_000, 100_000_000, 1_000_000_000)]
        assert cpu == sorted(cpu)
        clock = [found[rows, nodes].seconds for rows in (10_000_000, 100_000_000, 1_000_000_000)]
        assert clock[0] <= 1.1 * clock[1] <= 1.21 * clock[2]
    for rows in (10_000_000, 100_000_000, 1_000_000_000):
        one, ten, hundred = (found[rows, nodes].seconds for nodes in (1, 10, 100))
        assert ten <= 1.25 * one
        assert hundred <= 1.25 * ten


def test_single_reducer_limits_scaling_and_buckets_do_not() -> None:
    found = results([1_000_000_000, 10_000_000_000], [1, 10, 100], values())
    for each in found["crawls"]:
        before, now = each["jobs"]["generate, one reducer"], each["jobs"]["generate"]
        assert before["nodes"][100]["binds"] == "the one reducer of generate"
        assert before["stops_scaling"] == 1
        assert now["stops_scaling"] >= 10
        assert now["nodes"][100]["seconds"] < before["nodes"][100]["seconds"] / 5


def test_few_gateways_limit_scaling() -> None:
    parameters, rows = values(), Crawl(rows=1_000_000_000)
    few, many = Cluster(nodes=100, gateways=1), Cluster(nodes=100)
    one = outcome(JOBS["readdb -stats"](rows, few, parameters), few, parameters, 1)
    all_of_them = outcome(JOBS["readdb -stats"](rows, many, parameters), many, parameters, 1)
    assert one.binds.startswith("gateways")
    assert one.seconds > 4 * all_of_them.seconds


class TestParts:
    @given(st.lists(st.floats(0.01, 100), max_size=60), st.integers(1, 20))
    def test_tasks_fill_slots(self, durations: list[float], slots: int) -> None:
        found = makespan(durations, slots)
        assert found >= max([sum(durations) / slots, *durations], default=0.0) - 1e-6
        assert found <= sum(durations) / slots + max(durations, default=0.0) + 1e-6

    def test_regions_are_half_full_to_full(self) -> None:
        shares = region_shares(200, seed=1)
        assert sum(shares) == pytest.approx(1)
        assert max(shares) <= 2 * min(shares)
        assert shares == region_shares(200, seed=1)

    def test_hosts_of_batch_are_modelled(self) -> None:
        sizes = host_sizes(100_000, 1_000, 500, seed=1)
        assert sizes.sum() == pytest.approx(100_000, rel=0.01)
        assert (sizes.min(), sizes.max()) == (pytest.approx(20, rel=1), 500)

    def test_fetch_time_is_bounded_by_largest_host(self) -> None:
        sizes = host_sizes(100_000, 1_000, 500, seed=1)
        tasks = partial(fetching, sizes, 20, page=0.001, answer=0.1, threads=500, seed=1)
        assert tasks(20, delay=5.0).seconds == 2_500
        hasty = tasks(20, delay=0.0)
        assert hasty.seconds == hasty.tasks < 10
        assert 5.0 < tasks(1, delay=0.0).seconds / hasty.seconds <= 20.0

    @pytest.mark.parametrize(
        ("seconds", "nodes"), [({1: 100, 10: 10, 100: 1}, 100), ({1: 100, 10: 10, 100: 8}, 10), ({1: 9, 10: 9}, 1)]
    )
    def test_scaling_limit_is_found(self, seconds: dict[int, float], nodes: int) -> None:
        assert stops_scaling(seconds) == nodes


class TestModelParameters:
    def test_every_parameter_names_its_source(self) -> None:
        for name, parameter in PARAMETERS.items():
            assert parameter.value > 0, name
            assert len(parameter.source) > 15, name

    def test_parameters_of_another_machine_are_accepted(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        given = tmp_path / "given.json"
        given.write_text('{"start.job": 99}')
        assert main(["scale", "--with", str(given), "--parameters"]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| start.job ")]
        assert line == "| start.job | 99 a Hadoop job | given |"
        for wrong in ('{"start.jobs": 1}', "[1]", "{", '{"start.job": "x"}'):
            given.write_text(wrong)
            assert main(["scale", "--with", str(given)]) == 2
        assert capsys.readouterr().err.count("\n") == 4

    def test_parameters_scale_with_machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two sizes of each job, so that what every run costs is none of it; half of the speed here."""
        costs = {"inject": 2 * 43.3e-6, "generate": 2 * 26.0e-6, "updatedb": 2 * 369.6e-6}
        for name, cost in costs.items():

            def measure(rows: int, folder: Path, runner: str, cost: float = cost) -> list[Measurement]:
                assert folder.is_dir()
                return [Measurement("", rows, Cost(cpu=7.0 + rows * cost, wall=0, memory=0, largest=0))]

            monkeypatch.setattr(getattr(calibrating, name), "measure", measure)
        written = tmp_path / "parameters.json"
        assert main(["scale", "10000000", "--nodes", "1", "--calibrate", str(written)]) == 0
        found = json.loads(written.read_text())
        assert found["generate.task"] == pytest.approx(2 * PARAMETERS["generate.task"].value)
        assert found["row.bytes"] == PARAMETERS["row.bytes"].value


def test_scale_command_prints_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["scale", "10000000", "--nodes", "1", "10", "--gateways", "1", "--region-gb", "5"]
    assert main([*arguments, "--json", str(tmp_path / "found.json")]) == 0
    printed = capsys.readouterr().out
    assert main(arguments) == 0
    assert capsys.readouterr().out == printed  # the same seed
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["cluster"]["gateways"] == 1
    assert found["crawls"][0]["table"]["regions"] == 6
    assert set(found["crawls"][0]["jobs"]) == set(JOBS)
    assert printed.startswith("10,000,000 rows, 20 GB in 6 regions, batches of 100,000:\n\n| job | 1 node | 10 nodes |")


def test_scale_page_matches_command_output() -> None:
    assert tables(results(ROWS, NODES, values())).strip() in PAGE.read_text(encoding="utf-8")
