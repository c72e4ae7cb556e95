"""Disks that fail: a file system that fills up, and a library between program and system that lets fsync fail."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.preloaded_library import compiled

_PAGE = 4096
_FILLER = "filler"
_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
static int failing(void) {
  const char *flag = getenv("NUTCH2PY_FSYNC_FAILS");
  if (!flag || access(flag, F_OK) != 0) return 0;
  errno = EIO;
  return 1;
}
int fsync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return failing() ? -1 : real(fd);
}
int fdatasync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return failing() ? -1 : real(fd);
}
int msync(void *start, size_t length, int flags) {
  int (*real)(void *, size_t, int) = (int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "msync");
  return failing() ? -1 : real(start, length, flags);
}
"""


def fsync_library(folder: Path) -> Path | None:
    """Compile the library; None where there is no C compiler. Writes fail while the file of its variable exists."""
    return compiled(_LIBRARY, folder / "fsync.so")


@cache
def can_mount(folder: Path) -> bool:
    """Return whether this user may mount a tmpfs."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        return False
    where = folder / "mount"
    where.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(where)], capture_output=True, check=False).returncode:
        return False
    subprocess.run(["umount", str(where)], check=True)
    return True


class SmallDisk:
    """A folder on a file system of its own that has ``free`` pages left; a context manager that puts it back.

    What the folder holds at the end is kept.
    """

    def __init__(self, folder: Path, free: int) -> None:
        self.folder, self.free = folder, free
        self._kept = folder.with_name(f"{folder.name}.kept")

    def __enter__(self) -> None:
        shutil.copytree(self.folder, self._kept)
        used = sum(path.stat().st_size // _PAGE + 2 for path in [*self._kept.rglob("*"), self._kept])
        size = f"size={(used + 64) * _PAGE}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(self.folder)], check=True)
        shutil.copytree(self._kept, self.folder, dirs_exist_ok=True)
        left = os.statvfs(self.folder).f_bavail
        (self.folder / _FILLER).write_bytes(bytes(max(0, left - self.free) * _PAGE))

    def __exit__(self, *_: object) -> None:
        (self.folder / _FILLER).unlink()
        shutil.rmtree(self._kept)
        shutil.copytree(self.folder, self._kept)
        subprocess.run(["umount", "-l", str(self.folder)], check=True)
        shutil.rmtree(self.folder)
        self._kept.rename(self.folder)
