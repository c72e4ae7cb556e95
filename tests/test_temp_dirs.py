"""Folders for temporary use: those of killed processes go with the next one, whenever they were killed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nutch2py.support import temp_dirs
from nutch2py.support.temp_dirs import TempDir, remove_stale_dirs, temp_dir
from tests.conftest import ROOT
from tests.counted_kills import strike
from tests.processes import wait_until

KILLED_AT = """
import os, shutil, sys
from nutch2py.support import temp_dirs

calls = int(sys.argv[1])
temp_dirs.tempfile.gettempdir()  # Python tries, once, whether the place can be written

def counted(call):
    def counting(*arguments, **options):
        global calls
        calls -= 1
        if calls < 0:
            os.kill(os.getpid(), 9)
        return call(*arguments, **options)
    return counting

temp_dirs.tempfile.mkdtemp = counted(temp_dirs.tempfile.mkdtemp)
for module, names in ((temp_dirs.fcntl, ["flock"]), (os, ["open", "unlink", "rmdir", "close", "mkdir", "lstat"])):
    for name in names:
        setattr(module, name, counted(getattr(module, name)))
with temp_dirs.temp_dir("job") as folder:
    for name in ("driver", "channel/rows-1", "step/0/output"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"kept")
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_temp_dir_of_process_killed_at_any_syscall_is_removed(place: Path) -> None:
    """Also between the making of the folder and its lock, and while it is deleted."""
    left = 0
    for calls in range(200):
        command = [sys.executable, "-c", KILLED_AT, str(calls)]
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, "TMPDIR": str(place)}, check=False).returncode
        left += any(place.iterdir())
        remove_stale_dirs(place)
        assert not list(place.iterdir()), f"killed before call {calls}"
        if code == 0:
            break
        assert code == -9
    assert left > 8
    assert calls > left


def test_held_temp_dir_is_kept_until_block_ends(place: Path) -> None:
    with temp_dir("input") as first, temp_dir("job") as second:
        remove_stale_dirs(place)
        assert first.is_dir()
        assert second.is_dir()
    assert not list(place.iterdir())


def test_temp_dir_removed_before_locking_is_recreated(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    lock = temp_dirs.lock_dir

    def late(path: Path) -> int | None:
        made.append(path)
        if len(made) == 1:
            remove_stale_dirs(place)
        return lock(path)

    monkeypatch.setattr(temp_dirs, "lock_dir", late)
    held = TempDir("job")
    assert held.path == made[1]
    assert held.path.is_dir()
    held.remove()
    assert not list(place.iterdir())


def test_concurrent_processes_keep_their_temp_dirs(place: Path) -> None:
    missing: list[Path] = []

    def work() -> None:
        for _ in range(50):
            with temp_dir("lines") as folder:
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


def test_temp_dir_of_killed_process_is_removed_by_other_kind(place: Path) -> None:
    code = "import sys, time; from nutch2py.support.temp_dirs import TempDir; TempDir('browser'); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "TMPDIR": str(place)}) as killed:
        wait_until(lambda: any(place.iterdir()))
        assert strike(killed)
    with temp_dir("job") as folder:
        assert list(place.iterdir()) == [folder]
