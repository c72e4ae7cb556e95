"""A process that runs job after job holds what one job needs, and not as much in every arena of the C library."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

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
