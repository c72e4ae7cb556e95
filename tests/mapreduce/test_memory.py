"""A process that runs job after job holds what one job needs, and not as much in every arena of the C library."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys

import pytest

from nutch2py.support import process_memory
from tests.conftest import ROOT

# a large piece is freed, by which glibc raises its limits; then threads hold a lot at the same time, and free all
_WORK = """
import sys, threading
from pathlib import Path
from nutch2py.support.process_memory import limit_malloc_memory
if sys.argv[1] == "little":
    limit_malloc_memory()
for _ in range(3):
    bytearray(30 << 20)
together = threading.Barrier(8)
def work():
    held = [b"x" * 200_000 for _ in range(100)]
    together.wait()
    del held
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("Anonymous:")))
"""


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
_JOB = """
import sys, tempfile
from pathlib import Path
from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.driver import run_job
from nutch2py.support.process_memory import limit_malloc_memory
from nutch2py.mapreduce.input_splits import FileSplit
from nutch2py.support.reporting import Reporter, use_reporter
from tests.mapreduce.tinyjobs import WordJob
conf = Configuration.load()
conf.set("mapreduce.runner", sys.argv[1])
with tempfile.TemporaryDirectory() as folder, use_reporter(Reporter()):
    path = Path(folder, "input")
    path.write_text("a b")
    result = run_job(WordJob, conf, [FileSplit(str(path), 0, 3, 0)], title="WordJob", reducers=1)
assert len(result.output) == 2
print(limit_malloc_memory.cache_info().currsize == 1)
"""


def kilobytes(way: str) -> int:
    return int(subprocess.run([sys.executable, "-c", _WORK, way], stdout=subprocess.PIPE, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
def test_memory_freed_by_threads_is_returned() -> None:
    assert kilobytes("little") < kilobytes("as it is") / 2


def test_trimming_is_enabled_only_for_inline_jobs() -> None:
    for runner, asked in (("local", False), ("inline", True)):
        done = subprocess.run(
            [sys.executable, "-c", _JOB, runner], stdout=subprocess.PIPE, check=True, cwd=ROOT, env=ENVIRONMENT
        )
        assert done.stdout.strip() == str(asked).encode()


_REPEATED = """
import gc, sys, tempfile
from pathlib import Path
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.runtime.gc_tuning import relaxed_gc
from nutch2py.mapreduce.driver import run_job
from nutch2py.mapreduce.input_splits import FileSplit
from nutch2py.support.reporting import Reporter, use_reporter
from tests.mapreduce.tinyjobs import WordJob
conf, fails = Configuration.load(), sys.argv[1] == "fails"
with tempfile.TemporaryDirectory() as folder, use_reporter(Reporter()):
    path = Path(folder, "input")
    path.write_text("a b")
    for number in range(60):
        try:
            run_job(WordJob, conf, [FileSplit(str(path / "none" if fails else path), 0, 3, 0)], title="WordJob")
        except Exception:
            assert fails
        with relaxed_gc():
            pass
        if number == 5:
            before = len(gc.get_objects())
print(len(gc.get_objects()) - before)
"""


@pytest.mark.parametrize("ends", ["well", "fails"])
def test_repeated_jobs_between_freezes_leave_bounded_objects(ends: str) -> None:
    """Each job leaves about 1,100 objects in cycles, and each fetch moves them to the oldest generation."""
    done = subprocess.run(
        [sys.executable, "-c", _REPEATED, ends], stdout=subprocess.PIPE, check=True, cwd=ROOT, env=ENVIRONMENT
    )
    assert int(done.stdout.split()[-1]) < 35_000


@pytest.mark.usefixtures("_unfrozen")
def test_settings_of_program_are_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that has disabled or frozen the collector keeps its objects."""
    made = process_memory.MemoryRelease()
    collected: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda *_: collected.append("collected"))
    monkeypatch.setattr(process_memory, "trim_malloc", lambda: collected.append("trimmed"))
    sizes = iter([100_000, 100_500, 200_000, 100_000, 110_000, 300_000, 400_000])
    monkeypatch.setattr(gc, "get_objects", lambda generation: range(next(sizes)))
    for _ in range(4):  # the second by its growth is not, the third is
        made.release()
    assert collected == ["trimmed", "collected"]
    gc.disable()
    try:
        made.release()
    finally:
        gc.enable()
    thresholds = gc.get_threshold()
    gc.set_threshold(0)
    try:
        made.release()
    finally:
        gc.set_threshold(*thresholds)
    assert collected == ["trimmed", "collected"]


def test_free_memory_is_trimmed_at_most_once_in_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = process_memory.MemoryRelease()
    now, trims = [1_000.0], []
    monkeypatch.setattr(process_memory.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(process_memory, "trim_malloc", lambda: trims.append(now[0]))
    for seconds in (0, 1, 3, 2, 4, 30):
        now[0] += seconds
        made.release()
    assert trims == [1_000.0, 1_006.0, 1_040.0]
