"""The kill harness in the suite: every kind of fault once, the mutations' texts, and what it is made of."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import ClassVar

import pytest

from tests.kill.__main__ import main
from tests.kill.faults import JOBS, KINDS, Options, draw, kinds
from tests.kill.invariants import INVARIANTS, Violation
from tests.kill.mutations import MUTATIONS, Mutation, mutate
from tests.kill.points import FOLDER, POINTS
from tests.kill.run import Harness, run
from tests.kill.schedule import Report
from tests.kill.schedule_choice import JOBS_OF_A_CRAWL, SEED, cheapest
from tests.kill.site import ROUNDS, Plan
from tests.test_docs import DOCS

EMBEDDED = [kind.name for kind in kinds(Options())]


def test_every_fault_kind_recovers() -> None:
    """All over one site, in the round after it has changed; replay: scripts/test kill --seed suite --only N."""
    inline, local = Options(), Options(runner="local")
    numbers = cheapest(inline, {*EMBEDDED, *JOBS}, {2})
    others = [(local, number) for number in cheapest(local, {kind.name for kind in kinds(local)} - set(EMBEDDED), {2})]
    messages: list[str] = []
    summary = run(SEED, inline, numbers, say=messages.append, shared=1000, whole=0, others=others)
    assert not summary.failed, "\n".join(messages)
    assert sum(summary.hit.values()) > len([*numbers, *others]) / 2, "\n".join(messages)


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=lambda mutation: mutation.name)
def test_mutation_text_matches_code(mutation: object, tmp_path: Path) -> None:
    mutate(mutation, tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=lambda mutation: mutation.name)
def test_mutation_counts_as_caught_by_its_own_invariants_only(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crash for another reason, as on a full disk, is another defect; the next schedules run."""
    assert mutation.violates
    assert {*mutation.violates} < INVARIANTS.keys()
    reports = [Violation(name, f"{name} is violated") for name in INVARIANTS if name not in mutation.violates]
    reports.append(Violation(mutation.violates[-1], "at last"))
    ran: list[int] = []

    def schedule(self: Harness, shop: object, servers: object, whole: object, number: int, without: object) -> Report:
        ran.append(number)
        return Report(wrong=[reports[min(len(ran), len(reports)) - 1]])

    monkeypatch.setattr(Harness, "_schedule", schedule)
    monkeypatch.setattr(Harness, "_undisturbed", lambda *_: nullcontext(object()))
    monkeypatch.setattr("tests.kill.__main__.mutate", lambda *_: None)
    for most, code in ((len(ran) + 12, 1), (200, 0)):
        ran.clear()
        monkeypatch.setattr(sys, "argv", ["tests.kill", "--mutation", mutation.name, "--schedules", str(most)])
        assert main() == code
        output = capsys.readouterr().out
        assert output.count("another defect") == len(ran) - (code == 0)
        assert ("NOT caught" in output) == (code == 1)
    assert len(ran) == len(reports)
    assert f"by the invariant {mutation.violates[-1]} (" in output


def test_schedules_cover_every_kind_and_job() -> None:
    for options in (Options(), Options(runner="local"), Options("hbase", index="solr")):
        drawn = [draw("s", number, options, JOBS_OF_A_CRAWL, frozenset()) for number in range(60)]
        found = Counter(fault.kind for faults in drawn for fault in faults)
        assert set(found) == {kind.name for kind in kinds(options)}
        assert {JOBS_OF_A_CRAWL[fault.command] for faults in drawn for fault in faults} == set(JOBS)
        assert drawn == [draw("s", number, options, JOBS_OF_A_CRAWL, frozenset()) for number in range(60)]


def test_site_changes_by_plan_and_is_deterministic() -> None:
    plan, again = Plan("1 0"), Plan("1 0")
    answers = [[plan.answer(f"/p{n}", r) for n in range(plan.count)] for r in range(1, ROUNDS + 1)]
    assert answers == [[again.answer(f"/p{n}", r) for n in range(plan.count)] for r in range(1, ROUNDS + 1)]
    first, second = answers[0], answers[1]
    lost = [n for n in range(plan.count) if set(first[n].links) - set(second[n].links)]
    assert len(lost) > 3
    assert any(a.status == 200 and b.status >= 300 for a, b in zip(first, second, strict=True))
    assert len({tuple(Plan(f"s {n}").hosts) for n in range(20)}) == 3


def test_strike_points_exist_in_code() -> None:
    import importlib

    for module, found in POINTS.items():
        for owner, method, _ in found:
            assert callable(getattr(getattr(importlib.import_module(module), owner), method))


def test_reliability_page_lists_every_kind_and_mutation() -> None:
    text = (DOCS / "reliability.md").read_text(encoding="utf-8")
    assert not [name for name in (*KINDS, *MUTATIONS) if not re.search(rf"^\| `{name}`", text, re.MULTILINE)]


def test_ctrl_c_prints_results_of_finished_schedules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And ends what was started; the real process of a schedule, so that a terminal's Ctrl-C would not reach it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["tests.kill", "--schedules", "3"])
    started: list[subprocess.Popen[bytes]] = []

    def schedule(self: Harness, shop: object, servers: object, whole: object, number: int, without: object) -> Report:
        if number == 0:
            return Report([("group", True), ("disk", False)])
        environment = {**os.environ, FOLDER: f"{self.folder}/schedule-1/strikes/1"}
        started.append(subprocess.Popen(["sleep", "300"], env=environment, start_new_session=True))
        raise KeyboardInterrupt

    monkeypatch.setattr(Harness, "_schedule", schedule)
    monkeypatch.setattr(Harness, "_undisturbed", lambda *_: nullcontext(object()))
    assert main() == 130
    output = capsys.readouterr().out
    assert re.search(r"^group +1 +1 +1$", output, re.MULTILINE)
    assert re.search(r"^disk +1 +0 +0$", output, re.MULTILINE)
    assert "interrupted after 1 schedules, 0 failed" in output
    assert started[0].wait(60) == -9
    assert not [*tmp_path.iterdir()]


def test_sigterm_lets_drivers_end_applications_before_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["tests.kill", "--schedules", "1", "--runner", "hadoop"])
    driver: subprocess.Popen[bytes] | None = None
    ended: list[int | None] = []

    class Servers:
        missing: ClassVar[dict[str, str]] = {}

        def __init__(self, options: object, folder: Path, stack: ExitStack, started: object = None) -> None:
            stack.callback(lambda: ended.append(driver.poll() if driver is not None else None))

    def schedule(self: Harness, *_: object) -> Report:
        nonlocal driver
        code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(143)); print(); signal.pause()"
        command = [sys.executable, "-c", code, "nutch2py.cli"]
        environment = {**os.environ, FOLDER: f"{self.folder}/schedule-0/strikes/1", "PYTHONUNBUFFERED": "1"}
        driver = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)
        assert driver.stdout is not None
        driver.stdout.readline()
        driver.stdout.close()
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
        return Report()

    monkeypatch.setattr("tests.kill.run.RealServers", Servers)
    monkeypatch.setattr(Harness, "_maker", lambda *_: None)
    monkeypatch.setattr(Harness, "_schedule", schedule)
    monkeypatch.setattr(Harness, "_undisturbed", lambda *_: nullcontext(object()))
    assert main() == 143
    assert ended == [143]
