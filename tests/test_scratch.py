"""Folders for temporary use: those of killed processes go with the next one, whenever they were killed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nutch2py import scratch
from nutch2py.scratch import Scratch, scratch_folder, sweep
from tests.conftest import ROOT
from tests.kills import strike
from tests.processes import wait_until

KILLED_AT = """
import os, shutil, sys
from nutch2py import scratch

calls = int(sys.argv[1])
scratch.tempfile.gettempdir()  # Python tries, once, whether the place can be written

def counted(call):
    def counting(*arguments, **options):
        global calls
        calls -= 1
        if calls < 0:
            os.kill(os.getpid(), 9)
        return call(*arguments, **options)
    return counting

scratch.tempfile.mkdtemp = counted(scratch.tempfile.mkdtemp)
for module, names in ((scratch.fcntl, ["flock"]), (os, ["open", "unlink", "rmdir", "close", "mkdir", "lstat"])):
    for name in names:
        setattr(module, name, counted(getattr(module, name)))
with scratch.scratch_folder("job") as folder:
    for name in ("driver", "channel/rows-1", "step/0/output"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"kept")
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_killed_at_any_call_of_the_system_it_is_swept(place: Path) -> None:
    """Also between the making of the folder and its lock, and while it is deleted."""
    left = 0
    for calls in range(200):
        command = [sys.executable, "-c", KILLED_AT, str(calls)]
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, "TMPDIR": str(place)}, check=False).returncode
        left += any(place.iterdir())
        sweep(place)
        assert not list(place.iterdir()), f"killed before call {calls}"
        if code == 0:
            break
        assert code == -9
    assert left > 8
    assert calls > left


def test_one_that_is_held_stays_and_goes_with_its_block(place: Path) -> None:
    with scratch_folder("input") as first, scratch_folder("job") as second:
        sweep(place)
        assert first.is_dir()
        assert second.is_dir()
    assert not list(place.iterdir())


def test_one_that_is_swept_before_it_is_locked_is_made_anew(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    lock = scratch._lock

    def late(path: Path) -> int | None:
        made.append(path)
        if len(made) == 1:
            sweep(place)
        return lock(path)

    monkeypatch.setattr(scratch, "_lock", late)
    held = Scratch("job")
    assert held.path == made[1]
    assert held.path.is_dir()
    held.remove()
    assert not list(place.iterdir())


def test_many_at_once_never_take_each_others(place: Path) -> None:
    missing: list[Path] = []

    def work() -> None:
        for _ in range(50):
            with scratch_folder("lines") as folder:
                (folder / "file").write_bytes(b"")
                if not (folder / "file").exists():
                    missing.append(folder)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not missing
    assert not list(place.iterdir())


def test_one_of_a_killed_process_goes_with_the_next_of_another_kind(place: Path) -> None:
    code = "import sys, time; from nutch2py.scratch import Scratch; Scratch('browser'); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "TMPDIR": str(place)}) as killed:
        wait_until(lambda: any(place.iterdir()))
        assert strike(killed)
    with scratch_folder("job") as folder:
        assert list(place.iterdir()) == [folder]
