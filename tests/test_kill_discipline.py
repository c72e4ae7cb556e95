"""Kills that hit nothing fail their test, and every test kills by the one way that notices."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys

import pytest

from tests.counted_kills import Kills, strike
from tests.import_graph import trees
from tests.processes import wait_until

SLEEPER = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(600)"]


def sleeper() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(SLEEPER, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


def ended() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", ""])
    wait_until(lambda: process.poll() is not None)
    return process


@pytest.mark.parametrize("group", [False, True])
def test_kill_running_process_counts_hit(group: bool) -> None:
    with Kills("a sleeper") as kills:
        assert kills.kill(sleeper(), group=group)
    assert (kills.hits, kills.misses) == (1, 0)


def test_strike_sends_other_signals_by_process_id() -> None:
    process = sleeper()
    assert strike(process, signal.SIGTERM)
    assert process.returncode == -signal.SIGTERM
    process = sleeper()
    assert strike(process.pid)
    assert process.wait() == -signal.SIGKILL
    assert not strike(process.pid)


def test_kill_ended_process_fails_test() -> None:
    with pytest.raises(AssertionError, match="0 kills hit, 1 did not"), Kills("nothing") as kills:
        assert not kills.kill(ended())


def test_kill_after_job_finished_counts_miss() -> None:
    with pytest.raises(AssertionError, match="0 kills hit"), Kills("too late") as kills:
        assert not kills.kill(sleeper(), finished=lambda: True)


def test_moments_cover_run_and_move_earlier_after_miss() -> None:
    with Kills("all hit", 10) as kills:
        found = [(moment, kills.count(True))[0] for moment in kills.moments()]
    assert [int(moment * 10) for moment in found] == list(range(10))
    found = []
    with Kills("the run is half as long as measured", 4) as kills:
        for moment in kills.moments():
            found.append(moment)
            kills.count(moment < 0.5)
    assert kills.hits == 4
    assert sum(moment < 0.5 for moment in found) == 4


def test_kill_without_any_hit_gives_up() -> None:
    kills = Kills("never", 4)
    assert len([kills.count(False) for _ in kills.moments()]) == 8
    with pytest.raises(AssertionError, match="0 kills hit, 8 did not"), kills:
        pass


def test_tests_kill_only_through_kills() -> None:
    ours = ("kills.kill", "killed.kill")  # Kills.kill and what calls it
    found = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in trees("tests").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("kill", "killpg", "send_signal")
        if not ast.unparse(node).endswith(ours)
    ]
    listed = [
        # of the browser, and of the task that has one: whether another exists, or none is left, is checked
        *["tests.browser.test_hostile_pages: task.kill"],
        "tests.browser.test_hostile_pages: os.kill",
        *["tests.browser.test_browser_start: task.send_signal", "tests.browser.test_browser_start: task.kill"],
        *["tests.fetcher.test_signal_handling: os.kill"] * 3,  # the process itself; the end of its loop is checked
        "tests.indexer.test_score_updates: os.kill",  # the process itself, at a step; its exit code is checked
        *["tests.kill.points: os.killpg", *["tests.kill.points: os.kill"] * 3],  # which note where they strike
        "tests.kill.test_harness: os.kill",  # of the process itself, which takes it
        "tests.control_room.test_actions: os.kill",  # of a crawl, which is seen to end
        "tests.counted_kills: os.killpg",
        "tests.counted_kills: os.kill",
        "tests.mapreduce.test_hadoop_settings: process.send_signal",  # which is to have no effect
        *["tests.mapreduce.tinyjobs: os.kill"] * 2,  # a task of itself and of its parent
        "tests.outages.retry_subjects: self._proxy.kill",
        "tests.outages.retry_subjects: os.kill",  # of servers, which are asked after it
        *["tests.outages.test_outages: self._process.kill", "tests.outages.test_outages: os.kill"],
        "tests.outages.test_outages: subject.kill",
        *["tests.outages.test_proxy: proxy.kill"] * 2,
        "tests.outages.outage_trials: subject.kill",
        "tests.crawl_loop.test_crawl_command: process.send_signal",  # at a page under way; its exit code is checked
        *["tests.processes: os.killpg", "tests.processes: process.kill"],  # of what should have ended: its module fails
        *["tests.scrapy_projects.test_hostile_projects: spider.send_signal"] * 2,
        "tests.scrapy_projects.test_tutorial: spider.send_signal",  # at a page that is under way: its server knows
        *["tests.search.test_search_worker: os.kill"] * 6,  # of the worker: its answers or its replacement are checked
        "tests.server.test_foreign_origin: process.kill",  # a relay, which keeps nothing
        "tests.server.test_serve: process.send_signal",  # of the server, its exit code and last line are checked
        "tests.server.test_serve: process.kill",
        "tests.soak.soak_run: process.kill",  # that of a process which may have ended
        "tests.test_crawl_process: os.kill",  # the process itself, which continues
        "tests.test_image: server.send_signal",  # of a server that is only asked to end
        "tests.test_parent_exit: os.kill",  # of a parent whose child has to end by itself
        "tests.test_scripts: os.kill",  # of a script, its exit code is checked
        "tests.test_services: crawl.send_signal",  # at a page that is under way: its server knows
    ]
    assert sorted(found) == sorted(listed)
