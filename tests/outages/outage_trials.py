"""One trial: start a job, stop and restore its service, and compare the result."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from nutch2py.errors import LockedError
from tests.counted_kills import strike
from tests.jobs.stages import Stages
from tests.outages.retry_subjects import Subject, Trial
from tests.processes import wait_until

_LONGEST = 1200  # seconds after which a job that has its service back is given up
_TRIES = 8
WAYS = ("stop", "kill")


class Outcome(NamedTuple):
    """Result of a trial. ``away``: seconds until the service responded again; ``after``: from then to the job's end.

    ``code``: exit code of the job; ``again``: that of the same command repeated, None if not needed.
    ``right``: whether table or index equal those of an undisturbed run.
    """

    way: str
    seconds: float
    away: float
    after: float
    code: int
    again: int | None
    right: bool
    said: list[str]
    concurrent: tuple[int, ...] = ()
    """Exit codes of the concurrent job, which is run again when the first had excluded it."""

    @property
    def well(self) -> bool:
        """Whether nothing was lost."""
        return self.right and 0 in (self.code, self.again) and not any(self.concurrent[-1:])


def run(subject: Subject, stages: Stages, way: str, seconds: float, folder: Path) -> Outcome:
    """Try earlier moments until the job is active both when the service stops and when it returns."""
    for number, share in enumerate(_moments()):
        outcome = _try(subject, subject.trial(stages, folder / f"{way}-{seconds:g}-{number}"), way, seconds, share)
        if outcome is not None:
            return outcome
    raise AssertionError(f"the job ended {_TRIES} times before its service was missed")


def _try(subject: Subject, trial: Trial, way: str, seconds: float, share: float) -> Outcome | None:
    """Stop the service ``share`` seconds after the job is active; None if the job had finished."""
    with ExitStack() as running:
        process = running.enter_context(_running(trial))
        wait_until(lambda: trial.at_work() or process.poll() is not None)
        with suppress(subprocess.TimeoutExpired):
            process.wait(share)
        (subject.stop if way == "stop" else subject.kill)()
        gone = time.monotonic()
        second = running.enter_context(_running(trial.concurrent)) if trial.concurrent is not None else None
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            if not subject.needed:  # its own clients should miss it for the whole time
                time.sleep(max(0.0, gone + seconds - time.monotonic()))
        finally:
            early = process.poll()
            (subject.go_on if way == "stop" else subject.restart)()
        back = time.monotonic()
        if early == 0 and subject.needed:
            return None
        code = process.wait(_LONGEST)
        ended = time.monotonic()
        concurrent = [] if second is None else [second.wait(_LONGEST)]
    output = trial.crawl.said + (trial.concurrent.crawl.said if trial.concurrent is not None else "")
    said = [line for line in output.splitlines() if line.startswith(("WARN", "ERROR", "nutch2py", "error"))]
    again = None
    if code:
        with _running(trial) as retry:
            again = retry.wait(_LONGEST)
    if trial.concurrent is not None and concurrent[-1] == LockedError.exit_code:
        with _running(trial.concurrent) as retry:
            concurrent.append(retry.wait(_LONGEST))
    right = trial.left() == trial.expected
    return Outcome(way, seconds, back - gone, ended - back, code, again, right, said, tuple(concurrent))


@contextmanager
def _running(trial: Trial) -> Iterator[subprocess.Popen[bytes]]:
    """Start the job; kill it and its processes if the trial is abandoned."""
    process = trial.crawl.start(trial.words, trial.runner)
    try:
        yield process
    finally:
        strike(process, signal.SIGTERM)


def _moments() -> Iterator[float]:
    moment = 1.0
    for _ in range(_TRIES):
        yield moment
        moment *= 0.5
