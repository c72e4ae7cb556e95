"""Resolves host names with the crawl's hosts file, then with the system resolver."""

from __future__ import annotations

import socket
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.support.bounded_cache import bounded_cache


class HostsFile:
    """A hosts file in the format of ``/etc/hosts``: an address and its names per line, ``#`` starts a comment."""

    def __init__(self, addresses: dict[str, list[str]]) -> None:
        self._addresses = addresses

    @classmethod
    def read(cls, path: Path) -> HostsFile:
        """Read the file; raise ConfigurationError if it cannot be read or a line is malformed."""
        addresses: dict[str, list[str]] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot read the hosts file {path}: {error}: correct http.hosts.file") from error
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) < 2 or not _is_ip_address(words[0]):
                raise ConfigurationError(f"{path}, line {number}: {line.strip()!r} is not an address and its names")
            for name in words[1:]:
                addresses.setdefault(name.lower().removesuffix("."), []).append(words[0])
        return cls(addresses)

    @classmethod
    def from_conf(cls, conf: Configuration) -> HostsFile:
        """Read the file in ``http.hosts.file``; return an empty table if the property is empty."""
        name = conf.get_trimmed("http.hosts.file")
        if not name:
            return cls({})
        path = conf.resource(name) or Path(name)
        return cls.read(path)

    def lookup(self, host: str) -> list[str] | None:
        """Return the addresses of a host in the order of the file, None if the file does not contain it."""
        return self._addresses.get(host.lower().removesuffix("."))


def _is_ip_address(text: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, text)
        except OSError:
            continue
        return True
    return False


class HostResolver:
    """Resolve names to their first address. Results and failures are cached for the life of the object."""

    def __init__(self, hosts: HostsFile, size: int = 65_536) -> None:
        self._hosts = hosts
        self.resolve = bounded_cache(size)(self.resolve_uncached)

    def resolve_uncached(self, host: str) -> str | None:
        """Return the address, None if the name cannot be resolved."""
        host = host.strip("[]")
        found = self._hosts.lookup(host)
        if found:
            return found[0]
        try:
            return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
        except (OSError, UnicodeError):
            return None
