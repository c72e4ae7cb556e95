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
from nutch2py.mapreduce.memory import keep_little
if sys.argv[1] == "little":
    keep_little()
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
from nutch2py.conf import Configuration
from nutch2py.mapreduce.driver import run_job
from nutch2py.mapreduce.memory import keep_little
from nutch2py.mapreduce.splits import FileSplit
from nutch2py.reporting import Reporter, reporting_to
from tests.mapreduce.tinyjobs import WordJob
conf = Configuration.load()
conf.set("mapreduce.runner", sys.argv[1])
with tempfile.TemporaryDirectory() as folder, reporting_to(Reporter()):
    path = Path(folder, "input")
    path.write_text("a b")
    result = run_job(WordJob, conf, [FileSplit(str(path), 0, 3, 0)], title="WordJob", reducers=1)
assert len(result.output) == 2
print(keep_little.cache_info().currsize == 1)
"""


def kilobytes(way: str) -> int:
    return int(subprocess.run([sys.executable, "-c", _WORK, way], stdout=subprocess.PIPE, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
def test_what_threads_have_freed_goes_back() -> None:
    assert kilobytes("little") < kilobytes("as it is") / 2


def test_inline_jobs_ask_for_it_and_others_leave_the_process_alone() -> None:
    for runner, asked in (("local", False), ("inline", True)):
        done = subprocess.run(
            [sys.executable, "-c", _JOB, runner], stdout=subprocess.PIPE, check=True, cwd=ROOT, env=ENVIRONMENT
        )
        assert done.stdout.strip() == str(asked).encode()
