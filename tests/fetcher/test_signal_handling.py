"""Signals during a fetch arrive between steps of the event loop, where exceptions are not lost."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from nutch2py.fetcher.runtime.signal_handling import signals_between_steps


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    def stop(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    before = signal.signal(request.param, stop)
    yield request.param
    signal.signal(request.param, before)


def _run(steps: list[str], number: int, times: int) -> None:
    async def crawl() -> None:
        try:
            for _ in range(times):
                os.kill(os.getpid(), number)
                time.sleep(0.01)  # the step continues, as in a function that libcurl calls
            steps.append("whole")
        except (KeyboardInterrupt, SystemExit):
            steps.append("cut")
        await asyncio.sleep(60)
        steps.append("went on")

    loop = asyncio.new_event_loop()
    try:
        with signals_between_steps(loop):
            loop.run_until_complete(crawl())
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def test_signal_stops_loop_after_current_step(number: int) -> None:
    steps: list[str] = []
    handler = signal.getsignal(number)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        _run(steps, number, 1)
    assert steps == ["whole"]
    assert signal.getsignal(number) is handler


def test_second_signal_stops_immediately(number: int) -> None:
    steps: list[str] = []
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        _run(steps, number, 2)
    assert steps == ["cut"]


def test_signal_in_last_step_is_handled(number: int) -> None:
    loop = asyncio.new_event_loop()

    async def last_step() -> None:
        os.kill(os.getpid(), number)

    try:
        with pytest.raises((KeyboardInterrupt, SystemExit)), signals_between_steps(loop):
            loop.run_until_complete(last_step())
    finally:
        loop.close()


def test_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop = asyncio.new_event_loop()
    try:
        with signals_between_steps(loop):
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        loop.close()
        signal.signal(signal.SIGINT, before)
