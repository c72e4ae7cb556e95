"""Tests wait for conditions: those that sleep, or compare a duration by the clock with a limit, say why here."""

from __future__ import annotations

import ast
from collections import Counter

from tests.import_graph import trees

SLEEPS = {
    "tests.processes": "wait_until itself",
    # what lasts, or is silent, for a time is the subject
    "tests.browser.test_filtering_proxy": "wait_until in an event loop",
    "tests.fetcher.test_dns": "wait_until in an event loop",
    "tests.fetcher.test_politeness": "no message comes in half a second",
    "tests.fetcher.test_scrapy_hostile_addons": "add-ons that block",
    "tests.fetcher.test_signal_handling": "a step that lasts",
    "tests.jobs.test_job_lock": "the store is unavailable for longer than a lease",
    "tests.mapreduce.tinyjobs": "tasks that last; they import nothing else of the tests on a cluster",
    "tests.site.name_server": "responses that are late",
    "tests.site.server": "responses that are late or come in pieces",
    "tests.site.hostile.server": "responses that come in pieces",
    "tests.table.test_hbase_failures": "gateways that are unavailable, and readers that are silent, for a time",
    "tests.jobs.test_hbase_crawl": "a server that is unavailable for a time",
    "tests.outages.outage_trials": "services that are unavailable for a time",
    # moments of a kill or signal within work that shows nothing outside
    "tests.indexer.test_embedded_processes": "a moment of a commit; the pace of a reader",
    "tests.jobs.test_killed_jobs": "lets go of the table between two looks",
    "tests.jobs.test_signals": "responses in the buffers of the kernel",
    "tests.jobs.test_signals_large_pages": "a moment of a job",
    "tests.kill.kill_moments": "moments of jobs",
    "tests.table.test_embedded_crash": "a moment of a write",
    # programs of their own, with deadlines of their own
    "tests.jobs.concurrent_commands": "a shorter deadline than wait_until",
    "tests.rest.test_quotas": "a job that lasts until the test ends it",
    "tests.kill.crawl": "waits as long as a command may run",
    "tests.kill.points": "within a command that is killed",
    "tests.kill.schedule": "reports what is late, and does not fail",
    "tests.mapreduce.test_yarn_kills": "asks YARN, in a thread, as long as its test runs",
    "tests.soak.soak_run": "the pace of a site that changes",
}
"""Modules of tests that sleep, and for what; all others wait with :func:`tests.processes.wait_until`."""
DURATIONS = {
    "tests.jobs.test_signals_large_pages": "the shortest of several, against minutes that the page would take",
}
"""Modules that compare durations by the clock, and why neither processor time nor a count says it."""
_CLOCKS = {"monotonic", "perf_counter", "time"}


def _is_call_of(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def sleeps(tree: ast.AST) -> bool:
    """Return whether a module calls ``sleep``; ``sleep(0)`` only yields to other tasks."""
    return any(
        isinstance(node, ast.Call)
        and _is_call_of(node, {"sleep"})
        and not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
        for node in ast.walk(tree)
    )


def _is_duration(node: ast.AST) -> bool:
    """Return whether an expression subtracts something from the time of a clock."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_call_of(node.left, _CLOCKS)


def compares_durations(tree: ast.AST) -> bool:
    """Return whether a module asserts that a duration by the clock is below a limit, at once or under a name.

    A deadline, ``time.monotonic() < until``, is none; nor is a lower bound, which no busy machine breaks.
    """
    nodes = list(ast.walk(tree))
    if not any(_is_call_of(node, _CLOCKS) for node in nodes):
        return False
    named = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _is_duration(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    kept = named | {
        node.func.value.id
        for node in nodes
        if isinstance(node, ast.Call)
        and _is_call_of(node, {"append"})
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and any(isinstance(argument, ast.Name) and argument.id in named for argument in node.args)
    }

    def is_upper_bound(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.Lt | ast.LtE)
            and any(
                _is_duration(part) or (isinstance(part, ast.Name) and part.id in kept) for part in ast.walk(node.left)
            )
        )

    return any(is_upper_bound(part) for node in nodes if isinstance(node, ast.Assert) for part in ast.walk(node))


def test_checks_find_sleeps_and_durations() -> None:
    found = Counter[str]()
    for code in (
        "time.sleep(0.1)", "await asyncio.sleep(step)", "await asyncio.sleep(0)",
        "assert time.monotonic() - began < 5", "took = time.perf_counter() - began\nassert took <= 5",
        "took = time.time() - began\nslow.append(took)\nassert min(slow) < 5",
        "assert time.monotonic() < until", "assert time.process_time() - began < 5",
        "assert time.monotonic() - began >= 5",
    ):  # fmt: skip
        tree = ast.parse(code)
        found.update({"sleeps": sleeps(tree), "durations": compares_durations(tree)})
    assert found == {"sleeps": 2, "durations": 3}


def test_only_listed_modules_sleep() -> None:
    assert sorted(name for name, tree in trees("tests").items() if sleeps(tree)) == sorted(SLEEPS)


def test_only_listed_modules_compare_durations() -> None:
    assert sorted(name for name, tree in trees("tests").items() if compares_durations(tree)) == sorted(DURATIONS)
