"""Commands on small disks in the short form: some sizes of some commands, on tmpfs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import StoreError
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from tests.disks.disk_sweep import COMMANDS, Sweep, draw_sizes, find_trouble
from tests.disks.small_disk import SmallDisk, can_mount
from tests.jobs import crawl

SIZES = [("inject", 12), ("inject", 80), ("createtable", 3), ("updatehostdb", 9), ("index", 20), ("fetch", 6)]
"""Commands and free pages on tmpfs; what ext4 and XFS need differs between kernels (``scripts/test disks``)."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disks")


@pytest.fixture(scope="module")
def site() -> Iterator[crawl.Site]:
    with crawl.changing_site() as served:
        yield served


def test_full_disk_ends_command_with_promised_exit_code(folder: Path, site: crawl.Site) -> None:
    if not can_mount("tmpfs", folder):
        pytest.skip("no tmpfs can be mounted here")
    with SmallDisk("tmpfs", folder / "tmpfs") as disk:
        sweep = Sweep(folder / "stages", disk, site)
        if not (folder / "stages" / "before-end").exists():
            sweep.make_stages()
        for number, (name, free) in enumerate(SIZES):
            outcome = sweep.run(name, free, number % 2 == 0)
            assert outcome.trouble == "", outcome
            assert outcome.code in (4, 5), outcome


def test_table_creation_never_ends_with_signal(folder: Path) -> None:
    """At each number of free pages: LMDB's lock file is sparse, and a page of it without space raises SIGBUS."""
    if not can_mount("tmpfs", folder):
        pytest.skip("no tmpfs can be mounted here")
    with SmallDisk("tmpfs", folder / "made") as disk:
        ends = set()
        for free in range(40):
            disk.clear()
            disk.leave_free(free)
            child = os.fork()
            if child == 0:
                code = 9
                try:
                    conf = Configuration()
                    conf.set("storage.embedded.map.size", str(1 << 28))
                    store = open_store(conf, WebPage, f"embedded:{disk.folder}/crawl")
                    store.create()
                    assert store.get("none") is None
                    code = 0
                except StoreError as error:
                    code = 4 if "no space left" in str(error) else 5
                finally:
                    os._exit(code)
            ends.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert ends == {0, 4}


def test_lock_file_is_allocated(tmp_path: Path) -> None:
    store = open_store(Configuration(), WebPage, f"embedded:{tmp_path}")
    store.create()
    files = [*tmp_path.rglob("lock.mdb")]
    assert len(files) == 2
    for file in files:
        found = file.stat()
        assert found.st_blocks * 512 >= found.st_size
    store.close()
    with files[0].open("r+b") as lock:  # as an earlier version has left it
        lock.truncate(0)
        lock.truncate(32896)
    assert store.get("none") is None
    assert files[0].stat().st_blocks * 512 >= files[0].stat().st_size
    store.close()


def test_sizes_cover_need_of_command() -> None:
    import random

    sizes = [*draw_sizes(100, 50, random.Random(1))]
    assert len(sizes) == 50
    assert sizes == sorted(sizes)
    assert sizes[0] < 3
    assert sizes[-1] > 100
    assert {command.stage for command in COMMANDS.values()} >= {"inject", "index", "end"}


@pytest.mark.parametrize(
    ("code", "said", "trouble"),
    [
        (0, "", ""),
        (4, "nutch2py: no space is left for x", ""),
        (-7, "", "signal 7"),
        (4, "", "0 lines"),
        (5, "nutch2py: a\nnutch2py: b", "2 lines"),
        (255, "nutch2py: x", "exit code 255"),
        (4, "Traceback (most recent call last)\nnutch2py: x", "a stack trace"),
        (0, "thread panicked at", "a stack trace"),
    ],
)
def test_silent_or_wrong_ends_are_found(code: int, said: str, trouble: str) -> None:
    assert trouble in find_trouble(code, said)
    assert bool(trouble) == bool(find_trouble(code, said))
