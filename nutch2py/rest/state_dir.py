"""State directory of the server: JSON files that survive a restart, readable by their owner only."""

from __future__ import annotations

import contextlib
import re
import stat
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Generic, TypeVar

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.rest.http_error import HttpError, not_found
from nutch2py.support.atomic_files import replace_file

T = TypeVar("T")
STALE_SECONDS = 3600.0
"""Age in seconds of an incomplete file or folder after which its server counts as killed."""
_NO_KEYS: Mapping[str, str] = MappingProxyType({})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def state_dir(conf: Configuration) -> Path:
    """Return ``rest.folder`` without creating it; raise ConfigurationError when it is world-writable."""
    folder = conf.absolute(conf.get_trimmed("rest.folder", "rest"))
    with contextlib.suppress(OSError):
        if folder.stat().st_mode & stat.S_IWOTH:
            raise ConfigurationError(f"{folder} is world-writable: chmod o-w it, or set rest.folder to another folder")
    return folder


def ensure_private_dir(folder: Path) -> Path:
    """Create a folder that only its owner can access, unless it exists; return it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def validate_name(name: str, item_name: str) -> str:
    """Return a name that is safe as a file name; raise InputError for any other."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r:.100} is not a valid {item_name} name: use up to 64 letters, digits, '_', '-' and '.'"
        )
    return name


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON, or bytes as they are, atomically. Raises OSError."""
    with replace_file(path, mode=0o600) as file:
        file.write(value if isinstance(value, bytes) else msgspec.json.encode(value))


def read_json(path: Path, kind: type[T], old_keys: Mapping[str, str] = _NO_KEYS) -> T | None:
    """Return a value that :func:`write_json` wrote; None for a missing or damaged file.

    ``old_keys``: keys of files that older versions wrote, with their present names.
    """
    try:
        data = path.read_bytes()
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.ValidationError:
            if not old_keys:
                return None
            stored = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
            renamed = {old_keys.get(name, name): value for name, value in stored.items()}
            return msgspec.json.decode(msgspec.json.encode(renamed), type=kind)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None


class JsonStore(Generic[T]):
    """Values by id, one file each, in a folder of the state directory. Item names are for messages."""

    max_items = 1000
    old_keys: Mapping[str, str] = _NO_KEYS
    """See :func:`read_json`."""

    def __init__(self, directory: Path, item_type: type[T], item_name: str, plural_name: str) -> None:
        self.directory, self._type, self._item_name, self._plural_name = directory, item_type, item_name, plural_name

    def ids(self) -> list[str]:
        """Return the ids."""
        return sorted(path.stem for path in self.directory.glob("[!.]*.json") if _NAME.fullmatch(path.stem))

    def all(self) -> list[T]:
        """Return all values in order of their ids."""
        return [value for each in self.ids() if (value := self._read(each)) is not None]

    def exists(self, each: str) -> bool:
        """Return whether a value has this id."""
        return self._path(each).exists()

    def get(self, each: str) -> T:
        """Return a value; raise HttpError when no value has this id."""
        value = self._read(each)
        if value is None:
            raise not_found(f"{self._item_name} {each}")
        return value

    def _read(self, each: str) -> T | None:
        return read_json(self._path(each), self._type, self.old_keys)

    def put(self, each: str, value: T) -> None:
        """Store or replace a value; raise HttpError when the store is full."""
        path = self._path(each)
        ensure_private_dir(self.directory)
        self._remove_stale_parts()
        if not path.exists() and len(self.ids()) >= self.max_items:
            raise HttpError(
                HTTPStatus.CONFLICT, f"too many {self._plural_name}: {self.max_items:,} are stored; delete some"
            )
        write_json(path, value)

    def _remove_stale_parts(self) -> None:
        """Delete incomplete files of killed servers."""
        for part in self.directory.glob(".*.json.*"):
            with contextlib.suppress(OSError):
                if time.time() - part.stat().st_mtime > STALE_SECONDS:
                    part.unlink()

    def delete(self, each: str) -> None:
        """Delete a value; raise HttpError when no value has this id."""
        self.get(each)
        self._path(each).unlink(missing_ok=True)

    def _path(self, each: str) -> Path:
        return self.directory / f"{validate_name(each, self._item_name)}.json"
