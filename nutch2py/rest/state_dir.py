"""The folder of the server: what it has to know after a restart. Only its owner can read it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.rest.http_error import HttpError, not_found

T = TypeVar("T")
STALE_SECONDS = 3600.0
"""Seconds after which what has not become whole is what a killed server began to make."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def state_dir(conf: Configuration) -> Path:
    """Return ``rest.folder``; nothing is made. Raises ConfigurationError when anybody could put things into it."""
    folder = conf.absolute(conf.get_trimmed("rest.folder", "rest"))
    with contextlib.suppress(OSError):
        if folder.stat().st_mode & stat.S_IWOTH:
            raise ConfigurationError(f"anybody can write in {folder}: chmod o-w it, or name another in rest.folder")
    return folder


def ensure_private_dir(folder: Path) -> Path:
    """Return a folder, which is made if need be, for its owner alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def validate_name(name: str, what: str) -> str:
    """Return what can be the name of a file and nothing else; raise InputError for any other."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r:.100} is no name of a {what}: use up to 64 letters, digits, '_', '-' and '.'")
    return name


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON: all of it or nothing is there."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
            file.write(value if isinstance(value, bytes) else msgspec.json.encode(value))
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def read_json(path: Path, kind: type[T]) -> T | None:
    """Return what :func:`write_json` wrote; None when nothing is there, or it is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None


class JsonStore(Generic[T]):
    """Values under their ids, a file each, in a folder of the server. ``what``, ``many``: the words for one and all."""

    max_items = 1000

    def __init__(self, directory: Path, item_type: type[T], item_name: str, plural_name: str) -> None:
        self.directory, self._type, self._item_name, self._plural_name = directory, item_type, item_name, plural_name

    def ids(self) -> list[str]:
        """Return the ids."""
        return sorted(path.stem for path in self.directory.glob("[!.]*.json") if _NAME.fullmatch(path.stem))

    def all(self) -> list[T]:
        """Return all values, in the order of their ids."""
        return [found for each in self.ids() if (found := read_json(self._path(each), self._type)) is not None]

    def exists(self, each: str) -> bool:
        """Tell whether there is one of this id."""
        return self._path(each).exists()

    def get(self, each: str) -> T:
        """Return a value; Refusal when there is none of this id."""
        found = read_json(self._path(each), self._type)
        if found is None:
            raise not_found(f"{self._item_name} {each}")
        return found

    def put(self, each: str, value: T) -> None:
        """Store a value, in the place of one of this id; Refusal when there are too many."""
        path = self._path(each)
        ensure_private_dir(self.directory)
        self._remove_stale_parts()
        if not path.exists() and len(self.ids()) >= self.max_items:
            raise HttpError(HTTPStatus.CONFLICT, f"there are {self.max_items:,} {self._plural_name}: delete some")
        write_json(path, value)

    def _remove_stale_parts(self) -> None:
        """Delete what servers that were killed had begun to write."""
        for part in self.directory.glob(".*.json.*"):
            with contextlib.suppress(OSError):
                if time.time() - part.stat().st_mtime > STALE_SECONDS:
                    part.unlink()

    def delete(self, each: str) -> None:
        """Delete a value; Refusal when there is none of this id."""
        self.get(each)
        self._path(each).unlink(missing_ok=True)

    def _path(self, each: str) -> Path:
        return self.directory / f"{validate_name(each, self._item_name)}.json"


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Let nobody else into the block: no other thread, no other process."""
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
