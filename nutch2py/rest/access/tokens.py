"""Who asks: tokens with roles, from a file that holds only their checksums."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
import threading
import time
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.rest.state_dir import file_lock, validate_name

_PREFIX = "n2p_"
_RATE_PREFIX = "rate="
_MAX_RATE = 1_000_000
_MTIME_GRACE_NS = 2_000_000_000
"""Nanoseconds after which a changed file has another time."""


class Role(IntEnum):
    """What a token may do; each role may what those below it may. Search asks for one if ``search.keys.required``."""

    ANONYMOUS = 0
    SEARCH = 1
    READ = 2
    RUN = 3
    ADMIN = 4

    @classmethod
    def from_name(cls, name: str) -> Role:
        """Return a role by its name."""
        found = {"search": cls.SEARCH, "read": cls.READ, "run": cls.RUN, "admin": cls.ADMIN}.get(name)
        if found is None:
            raise InputError(f"{name!r:.50} is no role: write search, read, run or admin")
        return found


class Caller(NamedTuple):
    """Who asks, with which role, and how often: ``rate`` in requests a second, 0 any number, None as all."""

    name: str
    role: Role
    rate: float | None = None


class TokenStore:
    """The file of ``rest.tokens.file``, read again when it has changed; without one there are no tokens.

    A token is looked up by its checksum: how long that takes tells nothing of the tokens that there are.
    """

    def __init__(self, conf: Configuration) -> None:
        named = conf.get_trimmed("rest.tokens.file")
        self.path: Path | None = conf.absolute(named) if named else None
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._callers: dict[str, Caller] = {}
        if self.path is not None:
            self._load()

    def find_caller(self, authorization: str) -> Caller | None:
        """Return whose token stands in a header ``Authorization`` (Bearer, or Basic with it as the password)."""
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
        assert self.path is not None
        with self._lock:
            try:
                found = self.path.stat()
                stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
                if stamp != self._stamp:
                    self._callers = _parse_file(self.path)
                    # what was changed just now can be changed once more at the same time, as clocks of files have it
                    self._stamp = stamp if time.time_ns() - found.st_mtime_ns > _MTIME_GRACE_NS else None
            except OSError as error:
                raise ConfigurationError(
                    f"cannot read the tokens in {self.path}: {error.strerror}: make one with nutch2py token NAME, "
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
            raise ConfigurationError(f"{path} line {number} is no token: write name, role and checksum")
        try:
            callers[parts[2]] = Caller(parts[0], Role.from_name(parts[1]), _parse_rate(parts[3:]))
        except InputError as error:
            raise ConfigurationError(f"{path} line {number}: {error}") from error
    return callers


def _parse_rate(words: list[str]) -> float | None:
    """Return the rate among the last words of a line."""
    given = next((word.removeprefix(_RATE_PREFIX) for word in words if word.startswith(_RATE_PREFIX)), None)
    return None if given is None else parse_rate(given)


def parse_rate(given: str) -> float:
    """Return a number of requests a second; raise InputError for what is none."""
    try:
        rate = float(given)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= _MAX_RATE:  # nan is neither
        raise InputError(f"{given!r:.50} is no number of requests a second: write 5, 0.5, or 0 for any number")
    return rate


def _digest(token: str) -> str:
    """Return the checksum of a token. Tokens are of 256 random bits, so that a slow one would add nothing."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def add_token(conf: Configuration, name: str, role: Role, rate: float | None = None) -> str:
    """Put a new token into the file, in the place of one of the same name; return it: it stands nowhere else."""
    validate_name(name, "token")
    path = _token_file(conf)
    token = _PREFIX + secrets.token_urlsafe(32)
    line = f"{name} {role.name.lower()} {_digest(token)} {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}"
    _replace_lines(path, name, [line if rate is None else f"{line} {_RATE_PREFIX}{rate:g}"])
    return token


def remove_token(conf: Configuration, name: str) -> None:
    """Take a token out of the file; raise InputError when there is none of that name."""
    if not _replace_lines(_token_file(conf), name, []):
        raise InputError(f"there is no token {name}")


def _token_file(conf: Configuration) -> Path:
    named = conf.get_trimmed("rest.tokens.file")
    if not named:
        raise ConfigurationError(
            f"rest.tokens.file is not set: name the file of tokens, in {conf.site_file} or with -D"
        )
    return conf.absolute(named)


def _replace_lines(path: Path, name: str, lines: list[str]) -> bool:
    """Replace the lines of a name; tell whether there were any."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path.with_name(f"{path.name}.lock")):
            before = path.read_text("utf-8").splitlines() if path.exists() else []
            kept = [line for line in before if line.split()[:1] != [name]]
            part = path.with_name(f"{path.name}.part")
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
                file.writelines(f"{line}\n" for line in [*kept, *lines])
            part.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return len(kept) < len(before)
