"""The folder of the server: what it has to know after a restart. Only its owner can read it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from nutch2py.conf import Configuration
from nutch2py.errors import InputError

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def state_folder(conf: Configuration) -> Path:
    """Return ``rest.folder``; nothing is made."""
    return conf.absolute(conf.get_trimmed("rest.folder", "rest"))


def made(folder: Path) -> Path:
    """Return a folder, which is made if need be, for its owner alone."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}: name another in rest.folder") from error
    return folder


def checked_name(name: str, what: str) -> str:
    """Return what can be the name of a file and nothing else; raise InputError for any other."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise InputError(f"{name!r:.100} is no name of a {what}: use up to 64 letters, digits, '_', '-' and '.'")
    return name


def write(path: Path, value: object) -> None:
    """Write a value as JSON: all of it or nothing is there."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
        file.write(value if isinstance(value, bytes) else msgspec.json.encode(value))
    part.replace(path)


def read(path: Path, kind: type[T]) -> T | None:
    """Return what :func:`write` wrote; None when nothing is there, or it is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Let nobody else into the block: no other thread, no other process."""
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
