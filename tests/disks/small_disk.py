"""Small file systems: a tmpfs, and ext4 and XFS in a file behind a loop device. They need root."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

PAGE = 4096
_FILLER = ".filler"
_MEGABYTES = {"tmpfs": 64, "ext4": 64, "xfs": 300}
_MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
}
KINDS = ("tmpfs", "ext4", "xfs")


class SmallDisk:
    """A mounted file system of the given kind; a context manager that unmounts it. ``folder`` is its root."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self._image = folder.with_name(f"{folder.name}.image")

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=True)
        size = _MEGABYTES[self.kind] << 20
        if self.kind == "tmpfs":
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs"]
        else:
            with self._image.open("wb") as image:
                image.truncate(size)
            subprocess.run([*_MAKE[self.kind], str(self._image)], check=True, capture_output=True)
            command = ["mount", "-o", "loop", str(self._image)]
        subprocess.run([*command, str(self.folder)], check=True, capture_output=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)
        self._image.unlink(missing_ok=True)

    @property
    def free_pages(self) -> int:
        """Number of free pages."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize // PAGE

    def leave_free(self, pages: int) -> None:
        """Fill the disk so that only ``pages`` pages are free."""
        os.sync()  # XFS and ext4 count what they have not allocated yet
        with (self.folder / _FILLER).open("wb") as filler:
            step = self.free_pages - pages
            while step > 0 and (surplus := self.free_pages - pages) > 0:
                step = min(step, surplus)
                try:
                    os.posix_fallocate(filler.fileno(), os.fstat(filler.fileno()).st_size, step * PAGE)
                except OSError as error:  # the file's own blocks of metadata and reserved blocks count, too
                    if error.errno != errno.ENOSPC:
                        raise
                    step //= 2

    def free(self) -> None:
        """Give the space back."""
        (self.folder / _FILLER).unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete everything."""
        for path in self.folder.iterdir():
            if path.name == "lost+found":
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


@cache
def can_mount(kind: str, scratch: Path) -> bool:
    """Return whether this user can make and mount a file system of the kind."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        return False
    if kind in _MAKE and shutil.which(_MAKE[kind][0]) is None:
        return False
    try:
        with SmallDisk(kind, scratch / f"tried-{kind}"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
