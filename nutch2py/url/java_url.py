"""URLs as ``java.net.URL`` reads them: the reading on which Nutch's row keys, links and error texts rest.

Nothing is escaped, lower-cased (but the protocol) or checked beyond its form and its length; that is the normalizers'
work. All of it takes time that grows with the length of the URL, no more: the URLs are those of strangers. Other
readers of URLs (WHATWG, RFC 3986) part some URLs at other places, and so would give other row keys.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import NamedTuple

from nutch2py.url.url_length import MAX_LENGTH, check_length

DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}
KNOWN_PROTOCOLS = frozenset({"http", "https", "ftp", "file", "mailto", "jar"})
"""Protocols that Java has a handler for; all others are malformed URLs to Nutch, as ``javascript:`` and ``tel:``."""

_SPACE = "".join(map(chr, range(33)))  # what Java trims from both ends
_PROTOCOL = re.compile(r"[^\W\d_](?:[^\W_]++|[.+\-]++)*+")
_PORT = re.compile(r"[+-]?[0-9]+")
_PORT_DIGITS = 10  # of an int of Java's, without zeros before it
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SIMPLE = re.compile(r"(https?)://([A-Za-z0-9._\-]+)(?::([0-9]{1,9}))?(/[^?#\x00-\x20]*)?(?:\?([^#\x00-\x20]*))?")


class JavaURL(NamedTuple):
    """The parts of a URL. ``port`` is -1 and ``query``, ``ref``, ``userinfo`` are None where the URL has none."""

    protocol: str
    host: str
    port: int
    path: str
    query: str | None
    ref: str | None
    userinfo: str | None
    authority: str | None

    @property
    def file(self) -> str:
        """The path and, after a question mark, the query."""
        return self.path if self.query is None else f"{self.path}?{self.query}"

    @property
    def default_port(self) -> int:
        """The port of the protocol, -1 where it has none."""
        return DEFAULT_PORTS.get(self.protocol, -1)

    def __str__(self) -> str:
        """Return the URL as ``URL.toExternalForm`` writes it: no slashes where there is no authority."""
        authority = f"//{self.authority}" if self.authority else ""
        ref = "" if self.ref is None else f"#{self.ref}"
        return f"{self.protocol}:{authority}{self.file}{ref}"


def compose_url(protocol: str, host: str, port: int, file: str) -> str:
    """Write a URL of its parts; ``port`` -1 leaves the port out, an IPv6 address gets its brackets."""
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    authority = host if port == -1 else f"{host}:{port}"
    return f"{protocol}://{authority}{file}" if authority else f"{protocol}:{file}"


def parse_url(url: str) -> JavaURL:
    """Part an absolute URL; raise ValueError with the text of Java's MalformedURLException when it is none."""
    if len(url) > MAX_LENGTH:
        check_length(url)
    match = _SIMPLE.fullmatch(url)
    if match is not None:
        protocol, host, port, path, query = match.groups()
        authority = host if port is None else f"{host}:{port}"
        return JavaURL(protocol, host, -1 if port is None else int(port), path or "", query, None, None, authority)
    return _parse(None, url)


def parse_relative(base: JavaURL, href: str) -> JavaURL:
    """Part ``href``, taken as relative to ``base``, as ``new URL(base, href)`` does; ValueError when malformed."""
    if len(href) > MAX_LENGTH:
        check_length(href)
    return _parse(base, href)


def _parse(context: JavaURL | None, original: str) -> JavaURL:
    spec = original.strip(_SPACE)
    if spec[:4].lower() == "url:":
        spec = spec[4:]
    protocol: str | None = None
    if not spec.startswith("#"):
        head, colon, rest = spec.partition(":")
        if colon and "/" not in head and _PROTOCOL.fullmatch(head):
            protocol, spec = head.lower(), rest
    parts = JavaURL(protocol or "", "", -1, "", None, None, None, None)
    relative = False
    # "http:g" is relative to an http page, as in RFC 2396 5.2.3
    if context is not None and (protocol is None or (protocol == context.protocol and context.path.startswith("/"))):
        protocol, relative, parts = context.protocol, True, context._replace(query=None, ref=None)
    if protocol is None:
        raise ValueError(f"no protocol: {original}")
    if protocol not in KNOWN_PROTOCOLS:
        raise ValueError(f"unknown protocol: {protocol}")
    spec, mark, ref = spec.partition("#")
    if relative and context is not None and not spec:
        parts = parts._replace(query=context.query, ref=context.ref)
    if mark:
        parts = parts._replace(ref=ref)
    return _parse_mailto(parts, spec) if protocol == "mailto" else _parse_hierarchy(parts, spec, relative)


def _parse_mailto(parts: JavaURL, spec: str) -> JavaURL:
    if not spec.strip():
        raise ValueError("No email address")
    path, mark, query = spec.rpartition("?")
    return parts._replace(path=path, query=query, ref=None) if mark else parts._replace(path=spec, ref=None)


def _parse_hierarchy(parts: JavaURL, spec: str, relative: bool) -> JavaURL:
    """Read authority, path and query over what the context gave (``URLStreamHandler.parseURL``)."""
    query_only = relative and spec.startswith("?")
    spec, mark, query = spec.partition("?")
    if mark:
        parts = parts._replace(query=query)
    path = parts.path
    if spec.startswith("//") and not spec.startswith("////"):
        authority, slash, rest = spec[2:].partition("/")
        spec = slash + rest
        userinfo, host, port = _parse_authority(authority)
        parts = parts._replace(authority=authority, userinfo=userinfo, host=host, port=port)
        if authority:
            path = ""
    if spec.startswith("/"):
        path = spec
    elif spec and path:
        folder = path[: path.rfind("/") + 1]
        slash = "/" if not folder and parts.authority is not None else ""
        path = _remove_dot_segments(folder + slash + spec)
    elif spec:
        path = ("/" if parts.authority is not None else "") + spec
    elif query_only:
        path = path[: max(path.rfind("/"), 0)] + "/"
    return parts._replace(path=path)


def _parse_authority(authority: str) -> tuple[str | None, str, int]:
    """Return user info, host and port; two ``@`` leave the host empty, as in Java."""
    userinfo: str | None = None
    host = authority
    if "@" in authority:
        userinfo, _, host = authority.partition("@")
        if "@" in host:
            return None, "", -1
    if host.startswith("["):
        end = host.find("]")
        literal, rest = host[: end + 1], host[end + 1 :]
        if end <= 2 or rest[:1] not in {"", ":"}:
            raise ValueError(f"Invalid authority field: {authority}")
        try:
            ipaddress.IPv6Address(literal[1:-1])
        except ValueError:
            raise ValueError(f"Invalid host: {literal}") from None
        return userinfo, literal, _parse_port(rest[1:])
    host, _, port = host.partition(":")
    control = _CONTROL.search(host)
    if control:
        raise ValueError(f"Illegal character found in host: control char (code={ord(control[0])})")
    return userinfo, host, _parse_port(port)


def _parse_port(port: str) -> int:
    if not port:
        return -1
    digits = port.lstrip("+-").lstrip("0") or "0"
    if not _PORT.fullmatch(port) or len(digits) > _PORT_DIGITS:
        raise ValueError(f'For input string: "{port}"')
    number = -int(digits) if port[0] == "-" else int(digits)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f'For input string: "{port}"')
    if number < -1:
        raise ValueError(f"Invalid port number :{port}")
    return number


def _remove_dot_segments(path: str) -> str:
    """Take ``.`` and ``..`` segments out of a joined path; a ``..`` with nothing before it stays, as in Java."""
    if "/." not in path:
        return path[2:] if path.startswith("./") and len(path) > 2 else path
    segments: list[str] = []
    *folders, name = _CURRENT_DIR_SEGMENTS.sub("/", path).split("/")
    for segment in folders:
        # Java never takes away what is before the first slash, nor a ".." at the begin of a rooted path; others it does
        if segment == ".." and len(segments) > 1 and (len(segments) > 2 or segments != ["", ".."]):
            segments.pop()
        else:
            segments.append(segment)
    path = "/".join([*segments, name])
    if path.endswith("/.."):
        # Java looks for the first "/..", not the last, and leaves it when nothing stands before it
        start = path.rfind("/", 0, path.find("/.."))
        path = path if start < 0 else path[: start + 1]
    if path.startswith("./") and len(path) > 2:
        path = path[2:]
    return path[:-1] if path.endswith("/.") else path


_CURRENT_DIR_SEGMENTS = re.compile(r"/(?:\./)+")
_ABSOLUTE = re.compile(r"https?://[A-Za-z0-9._\-]+(?::[0-9]{1,9})?(?:/[^#\x00-\x20]*)?(?:#[^\x00-\x20]*)?")
_PLAIN_PATH = re.compile(r"/?[\w\-~%]+(?:[/.][\w\-~%=,&+@!$]+)*/?(?:\?[^#\x00-\x20]*)?|/", re.ASCII)


def url_resolver(base: JavaURL) -> Callable[[str], str]:
    """Return :func:`resolve_url` for the links of a page: what ``base`` gives to all of them is put together once."""
    plain = bool(base.host) and base.path.startswith("/") and "/." not in base.path
    root = f"{base.protocol}://{base.authority}"
    folder = root + base.path[: base.path.rfind("/") + 1]

    def resolved(href: str) -> str:
        if len(href) > MAX_LENGTH:
            check_length(href)
        if ":" in href and _ABSOLUTE.fullmatch(href):
            return href
        if plain and _PLAIN_PATH.fullmatch(href):
            return root + href if href[0] == "/" else folder + href
        href = href.strip(_SPACE)
        if href.startswith("?"):
            _, slash, name = base.path.rpartition("/")
            href = name + href if slash else href
        return str(parse_relative(base, href))

    return resolved


def resolve_url(base: str | JavaURL, href: str) -> str:
    """Return ``href`` made absolute against ``base``, as ``URLUtil.resolveURL`` does; ValueError when malformed.

    Unlike ``new URL(base, href)``, a href that is a query only keeps the last path segment of the base.
    """
    if len(href) > MAX_LENGTH:
        check_length(href)
    if _ABSOLUTE.fullmatch(href):
        return href
    return url_resolver(parse_url(base) if isinstance(base, str) else base)(href)
