"""Access tokens with roles, from a file that holds only their checksums."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import threading
import time
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.rest.state_dir import validate_name
from nutch2py.support.atomic_files import replace_file
from nutch2py.support.disk_errors import raise_disk_error
from nutch2py.support.file_locks import file_lock
from nutch2py.support.invariants import not_none

_PREFIX = "n2p_"
_RATE_PREFIX = "rate="
_MAX_RATE = 1_000_000
_MTIME_GRACE_NS = 2_000_000_000
"""Coarsest time stamp of file systems, in ns: a younger file can change again without a new time stamp."""


class Role(IntEnum):
    """Role of a token; each includes the roles below. Search requires one if ``search.keys.required`` is set."""

    ANONYMOUS = 0
    SEARCH = 1
    READ = 2
    RUN = 3
    ADMIN = 4

    @classmethod
    def from_name(cls, name: str) -> Role:
        """Return a role by its name."""
        role = {"search": cls.SEARCH, "read": cls.READ, "run": cls.RUN, "admin": cls.ADMIN}.get(name)
        if role is None:
            raise InputError(f"unknown role {name!r:.50}: use search, read, run or admin")
        return role


class Caller(NamedTuple):
    """A client. ``rate``: requests per second, 0 for unlimited, None for the default."""

    name: str
    role: Role
    rate: float | None = None


class TokenStore:
    """The tokens of ``rest.tokens.file``, reloaded when the file changes.

    Lookup is by checksum, so that its duration reveals nothing about the stored tokens.
    """

    def __init__(self, conf: Configuration) -> None:
        path = conf.get_trimmed("rest.tokens.file")
        self.path: Path | None = conf.absolute(path) if path else None
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._callers: dict[str, Caller] = {}
        if self.path is not None:
            self._load()

    def find_caller(self, authorization: str) -> Caller | None:
        """Return the caller of a header ``Authorization``: Bearer, or Basic with the token as the password."""
        scheme, _, rest = authorization.partition(" ")
        token = rest.strip()
        if scheme.lower() == "basic":
            try:
                token = base64.b64decode(token, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError, ValueError):
                return None
        elif scheme.lower() != "bearer":
            return None
        return self._load().get(_digest(token))

    def _load(self) -> dict[str, Caller]:
        path = not_none(self.path, "rest.tokens.file")
        with self._lock:
            try:
                status = path.stat()
                stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
                if stamp != self._stamp:
                    self._callers = _parse_file(path)
                    # a file changed just now can change again within the resolution of its time stamp
                    self._stamp = stamp if time.time_ns() - status.st_mtime_ns > _MTIME_GRACE_NS else None
            except OSError as error:
                raise ConfigurationError(
                    f"cannot read the tokens in {path}: {error.strerror}: create one with nutch2py token NAME, "
                    "or correct rest.tokens.file"
                ) from error
            return self._callers


def _parse_file(path: Path) -> dict[str, Caller]:
    callers = {}
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        parts = line.split()
        if not parts or line.startswith("#"):
            continue
        if len(parts) < 3 or len(parts[2]) != 64:
            raise ConfigurationError(f"{path} line {number} is not a token: expected name, role and checksum")
        try:
            callers[parts[2]] = Caller(parts[0], Role.from_name(parts[1]), _parse_rate(parts[3:]))
        except InputError as error:
            raise ConfigurationError(f"{path} line {number}: {error}") from error
    return callers


def _parse_rate(fields: list[str]) -> float | None:
    """Return the rate among the optional fields of a line."""
    text = next((field.removeprefix(_RATE_PREFIX) for field in fields if field.startswith(_RATE_PREFIX)), None)
    return None if text is None else parse_rate(text)


def parse_rate(text: str) -> float:
    """Return a rate in requests per second; raise InputError for an invalid one."""
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= _MAX_RATE:  # rejects NaN too
        raise InputError(f"{text!r:.50} is not a number of requests per second: use 5, 0.5, or 0 for no limit")
    return rate


def _digest(token: str) -> str:
    """Return the SHA-256 of a token. Tokens have 256 random bits: a slow hash would add nothing."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def add_token(conf: Configuration, name: str, role: Role, rate: float | None = None) -> str:
    """Create a token, replacing one of the same name; return it. It is stored nowhere in clear text."""
    validate_name(name, "token")
    path = _token_file(conf)
    token = _PREFIX + secrets.token_urlsafe(32)
    line = f"{name} {role.name.lower()} {_digest(token)} {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}"
    _replace_lines(path, name, [line if rate is None else f"{line} {_RATE_PREFIX}{rate:g}"])
    return token


def remove_token(conf: Configuration, name: str) -> None:
    """Delete a token; raise InputError when no token has this name."""
    if not _replace_lines(_token_file(conf), name, []):
        raise InputError(f"token {name} not found")


def _token_file(conf: Configuration) -> Path:
    path = conf.get_trimmed("rest.tokens.file")
    if not path:
        raise ConfigurationError(f"rest.tokens.file is not set: set it in {conf.site_file} or with -D")
    return conf.absolute(path)


def _replace_lines(path: Path, name: str, lines: list[str]) -> bool:
    """Replace the lines of a name; return whether there were any."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path.with_name(f"{path.name}.lock")):
            before = path.read_text("utf-8").splitlines() if path.exists() else []
            kept = [line for line in before if line.split()[:1] != [name]]
            with replace_file(path, mode=0o600) as file:
                file.writelines(f"{line}\n".encode() for line in [*kept, *lines])
    except OSError as error:
        raise_disk_error(error, path)
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return len(kept) < len(before)
