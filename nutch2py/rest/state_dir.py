"""State directory of the server: JSON files that survive a restart, readable by their owner only."""

from __future__ import annotations

import contextlib
import re
import stat
import time
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import AbstractContextManager
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.rest.http_error import HttpError, not_found
from nutch2py.support.atomic_files import replace_file
from nutch2py.support.file_locks import file_lock

T = TypeVar("T")
STALE_SECONDS = 3600.0
"""Age in seconds of an incomplete file or folder after which its server counts as killed."""
_ENVELOPE_BYTES = 4096  # of an item, around what its request had
_MAX_PAGE_BYTES = 8 << 20
"""Approximate limit of the files that a page of a list reads; a client continues after its last id."""
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


class StoreQuota(NamedTuple):
    """Limits of what the server stores of one kind: number of items, bytes of all, bytes of one."""

    items: int = 1000
    total_bytes: int = 64 << 20
    item_bytes: int = 1 << 20

    @classmethod
    def from_conf(cls, conf: Configuration) -> StoreQuota:
        """Return the limits of a configuration."""
        body_bytes = conf.get_int("rest.body.max.bytes", 1 << 20)  # an item arrives in a body, but a PUT adds to it
        return cls(conf.get_int("rest.stored.items", 1000), conf.get_int("rest.stored.bytes", 64 << 20), body_bytes)


_DEFAULT_QUOTA = StoreQuota()


class JsonStore(Generic[T]):
    """Values by id, one file each, in a folder of the state directory, within a quota. Item names are for messages."""

    old_keys: Mapping[str, str] = _NO_KEYS
    """See :func:`read_json`."""

    def __init__(
        self, directory: Path, item_type: type[T], item_name: str, plural_name: str, quota: StoreQuota = _DEFAULT_QUOTA
    ) -> None:
        self.directory, self._type, self._item_name, self._plural_name = directory, item_type, item_name, plural_name
        self._quota = quota

    def ids(self) -> list[str]:
        """Return the ids."""
        return sorted(path.stem for path in self.directory.glob("[!.]*.json") if _NAME.fullmatch(path.stem))

    def all(self) -> list[T]:
        """Return all values in order of their ids."""
        return [value for each in self.ids() if (value := self._read(each)) is not None]

    def page(self, after: str, limit: int) -> list[T]:
        """Return at most ``limit`` values with ids after ``after``, in order; fewer when they are large."""
        ids, values, size = self.ids(), list[T](), 0
        for each in ids[bisect_right(ids, after) :]:
            with contextlib.suppress(OSError):
                size += self._path(each).stat().st_size
            if values and (len(values) >= limit or size > _MAX_PAGE_BYTES):
                break
            if (value := self._read(each)) is not None:
                values.append(value)
        return values

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

    def lock(self) -> AbstractContextManager[int]:
        """Lock the store against writes of other threads and servers."""
        return file_lock(ensure_private_dir(self.directory) / ".lock")

    def put(self, each: str, value: T) -> None:
        """Store or replace a value; raise HttpError when the quota is exceeded."""
        path = self._path(each)
        with self.lock():  # concurrent requests must not exceed the quota together
            self.put_locked(path.stem, value)

    def put_locked(self, each: str, value: T) -> None:
        """Store or replace a value within :meth:`lock`; raise HttpError when the quota is exceeded."""
        path, data = self._path(each), msgspec.json.encode(value)
        self._remove_stale_parts()
        ids = self.ids()
        if len(data) > self._quota.item_bytes + _ENVELOPE_BYTES:
            message = f"a {self._item_name} has at most {self._quota.item_bytes:,} bytes (rest.body.max.bytes)"
            raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        if each not in ids and len(ids) >= self._quota.items:
            message = f"too many {self._plural_name}: {len(ids):,} are stored (rest.stored.items); delete some"
            raise HttpError(HTTPStatus.CONFLICT, message)
        stored = 0
        for name in ids:
            with contextlib.suppress(OSError):
                stored += 0 if name == each else self._path(name).stat().st_size
        if stored + len(data) > self._quota.total_bytes:
            message = f"the {self._plural_name} would exceed {self._quota.total_bytes:,} bytes (rest.stored.bytes)"
            raise HttpError(HTTPStatus.INSUFFICIENT_STORAGE, f"{message}; delete some")
        write_json(path, data)

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
