"""Row keys: ``http://bar.foo.com:8983/to?a=b`` is the row ``com.foo.bar:http:8983/to?a=b``.

The host is reversed, so that the pages of a domain are adjacent in the table. The format is that of Nutch 2's
TableUtil: without user info and fragment, with the port if the URL has one, and without escaping or lower-casing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from nutch2py.url.java_url import parse_url
from nutch2py.url.url_length import MAX_LENGTH

_MAX_HEADS, _MAX_HEAD = 65_536, 300  # cached heads, and their maximum length: DNS has no longer names
_CLEAN_HEAD = re.compile(r"(https?)://([A-Za-z0-9\-_]+(?:\.[A-Za-z0-9\-_]+)*)(:[0-9]{1,9})?")
_KEY_HEAD = re.compile(r"(\[[^/]*\]|[^:/]*):([a-z][a-z0-9+.\-]*)(?::([0-9]+))?")

# "http://foo.com" -> "com.foo:http", and back: most URLs share their host with others
_reversed_heads: dict[str, str] = {}
_heads: dict[str, str] = {}


def reverse_host(host: str) -> str:
    """Return the host with its labels in reverse order, without empty labels (``a..b.com.`` is ``com.b.a``)."""
    labels = [label for label in host.split(".") if label]
    return ".".join(reversed(labels)) if labels else host


def unreverse_host(reversed_host: str) -> str:
    """Return the host of a key of the host table."""
    return reverse_host(reversed_host)


def reverse_url(url: str) -> str:
    """Return the row key of a URL; raise ValueError, with Java's message, if it is malformed."""
    slash = url.find("/", 8)  # after "https://"
    if len(url) > MAX_LENGTH:
        return _reverse(url, url)
    head = _reversed_heads.get(url[:slash] if slash > 0 else url)
    if head is not None:
        if slash < 0:
            return head
        if "#" not in url and url[-1] > " ":
            return head + url[slash:]
    return _reverse(url, url[:slash] if slash > 0 else url)


def reverse_urls(urls: Iterable[str]) -> list[str | None]:
    """Return the row keys of many URLs (see :func:`reverse_url`), None for malformed ones."""
    keys: list[str | None] = []
    known = _reversed_heads.get
    for url in urls:
        slash = url.find("/", 8)
        if slash > 0 and len(url) <= MAX_LENGTH and (head := known(url[:slash])) and "#" not in url and url[-1] > " ":
            keys.append(head + url[slash:])
            continue
        try:
            keys.append(reverse_url(url))
        except ValueError:
            keys.append(None)
    return keys


def _reverse(url: str, head: str) -> str:
    parsed = parse_url(url)
    host, file = parsed.host, parsed.file
    # Nutch 2 converts an IPv6 key back to "://["; the address is kept whole here, so that it is preserved
    reversed_host = host if host.startswith("[") else reverse_host(host)
    port = "" if parsed.port == -1 else f":{parsed.port}"
    reversed_head = f"{reversed_host}:{parsed.protocol}{port}"
    if len(head) <= _MAX_HEAD and _CLEAN_HEAD.fullmatch(head) and ":0" not in head:
        if len(_reversed_heads) >= _MAX_HEADS:
            _reversed_heads.clear()
        _reversed_heads[head] = reversed_head
    slash = "/" if file and not file.startswith("/") else ""
    return f"{reversed_head}{slash}{file}"


def unreverse_url(key: str) -> str:
    """Return the URL of a row key; raise ValueError if the key is invalid or too long."""
    if len(key) > MAX_LENGTH:
        raise ValueError(f"not a row key: {key[:_MAX_HEAD]!r}... has {len(key)} characters, the limit is {MAX_LENGTH}")
    slash = key.find("/")
    if slash < 0:
        slash = len(key)
    head = _heads.get(key[:slash])
    return (head if head is not None else _unreverse_head(key, key[:slash])) + key[slash:]


def url_or_key(key: str, unreverse: Callable[[str], str] = unreverse_url) -> str:
    """Return the URL of a row key, or the key itself if it is invalid."""
    try:
        return unreverse(key)
    except ValueError:
        return key


def _unreverse_head(key: str, reversed_head: str) -> str:
    match = _KEY_HEAD.fullmatch(reversed_head)
    if match is None:
        raise ValueError(f"not a row key: {key!r} (a key reads reversed.host:protocol:port/path)")
    reversed_host, protocol, port = match.groups()
    host = reversed_host if reversed_host.startswith("[") else reverse_host(reversed_host)
    head = f"{protocol}://{host}" if port is None else f"{protocol}://{host}:{port}"
    if len(head) <= _MAX_HEAD:
        if len(_heads) >= _MAX_HEADS:
            _heads.clear()
        _heads[reversed_head] = head
    return head


def reversed_host_of_key(key: str) -> str:
    """Return the reversed host of a row key, which is its row key in the host table."""
    end = key.find("]") if key.startswith("[") else -1
    return key[: end + 1] if end >= 0 else key.partition(":")[0]
