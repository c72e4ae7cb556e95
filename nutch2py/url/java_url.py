"""Parses URLs as ``java.net.URL`` does, which determines Nutch's row keys, links and error messages.

Nothing is escaped, lower-cased (except the protocol) or validated beyond syntax and length, which the normalizers do.
The links of pages are an exception: see :func:`url_resolver`.
All functions take linear time, since URLs are untrusted input. Other parsers (WHATWG, RFC 3986) split some URLs
differently, and would produce other row keys.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import NamedTuple

from nutch2py.url.browser_url import has_escaped_dots, resolve_as_browser
from nutch2py.url.url_length import MAX_LENGTH, check_length

DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}
KNOWN_PROTOCOLS = frozenset({"http", "https", "ftp", "file", "mailto", "jar"})
"""Protocols with a handler in Java; to Nutch all others, such as ``javascript:`` and ``tel:``, are malformed URLs."""

_SPACE = "".join(map(chr, range(33)))  # Java trims these from both ends
_PROTOCOL = re.compile(r"[^\W\d_](?:[^\W_]++|[.+\-]++)*+")
_PORT = re.compile(r"[+-]?[0-9]+")
_PORT_DIGITS = 10  # of a Java int without leading zeros
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SIMPLE = re.compile(r"(https?)://([A-Za-z0-9._\-]+)(?::([0-9]{1,9}))?(/[^?#\x00-\x20]*)?(?:\?([^#\x00-\x20]*))?")


class JavaURL(NamedTuple):
    """The parts of a URL. ``port`` is -1 and ``query``, ``ref``, ``userinfo`` are None if the URL has none."""

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
        """The path with the query."""
        return self.path if self.query is None else f"{self.path}?{self.query}"

    @property
    def default_port(self) -> int:
        """The default port of the protocol, -1 if it has none."""
        return DEFAULT_PORTS.get(self.protocol, -1)

    def __str__(self) -> str:
        """Return the URL as ``URL.toExternalForm`` does, without slashes if it has no authority."""
        authority = f"//{self.authority}" if self.authority else ""
        ref = "" if self.ref is None else f"#{self.ref}"
        return f"{self.protocol}:{authority}{self.file}{ref}"


def compose_url(protocol: str, host: str, port: int, file: str) -> str:
    """Return the URL of these parts; ``port`` -1 omits the port, an IPv6 address is put in brackets."""
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    authority = host if port == -1 else f"{host}:{port}"
    return f"{protocol}://{authority}{file}" if authority else f"{protocol}:{file}"


def parse_url(url: str) -> JavaURL:
    """Parse an absolute URL; raise ValueError with the message of Java's MalformedURLException if it is malformed."""
    if len(url) > MAX_LENGTH:
        check_length(url)
    match = _SIMPLE.fullmatch(url)
    if match is not None:
        protocol, host, port, path, query = match.groups()
        authority = host if port is None else f"{host}:{port}"
        return JavaURL(protocol, host, -1 if port is None else int(port), path or "", query, None, None, authority)
    return _parse(None, url)


def parse_relative(base: JavaURL, href: str) -> JavaURL:
    """Parse ``href`` relative to ``base`` as ``new URL(base, href)`` does; raise ValueError if it is malformed."""
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
    """Parse authority, path and query on top of the context's parts (``URLStreamHandler.parseURL``)."""
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
    """Remove ``.`` and ``..`` segments of a joined path; a ``..`` without a segment before it is kept, as in Java."""
    if "/." not in path:
        return path[2:] if path.startswith("./") and len(path) > 2 else path
    segments: list[str] = []
    *folders, name = _CURRENT_DIR_SEGMENTS.sub("/", path).split("/")
    for segment in folders:
        # Java never removes the part before the first slash, nor a ".." at the start of a rooted path
        if segment == ".." and len(segments) > 1 and (len(segments) > 2 or segments != ["", ".."]):
            segments.pop()
        else:
            segments.append(segment)
    path = "/".join([*segments, name])
    if path.endswith("/.."):
        # Java searches for the first "/..", not the last, and keeps it if there is nothing before it
        start = path.rfind("/", 0, path.find("/.."))
        path = path if start < 0 else path[: start + 1]
    if path.startswith("./") and len(path) > 2:
        path = path[2:]
    return path[:-1] if path.endswith("/.") else path


_CURRENT_DIR_SEGMENTS = re.compile(r"/(?:\./)+")
_ABSOLUTE = re.compile(r"https?://[A-Za-z0-9._\-]+(?::[0-9]{1,9})?(?:/[^#\x00-\x20]*)?(?:#[^\x00-\x20]*)?")
_PLAIN_PATH = re.compile(r"/?[\w\-~%]+(?:[/.][\w\-~%=,&+@!$]+)*/?(?:\?[^#\x00-\x20]*)?|/", re.ASCII)


# references that java.net.URL and browsers may resolve differently
_READ_DIFFERENTLY = re.compile(r"[^!-~]|\\|//|/\.|\.\.|[:%@]")


def url_resolver(base: JavaURL, *, as_browser: bool = True) -> Callable[[str], str]:
    """Return a function like :func:`resolve_url` for the links of a page, with the parts of ``base`` computed once.

    With ``as_browser`` the function resolves as browsers do where that is another URL (see
    :mod:`nutch2py.url.browser_url`).
    """
    plain = bool(base.host) and base.path.startswith("/") and "/." not in base.path
    root = f"{base.protocol}://{base.authority}"
    folder = root + base.path[: base.path.rfind("/") + 1]

    def resolved(href: str) -> str:
        if len(href) > MAX_LENGTH:
            check_length(href)
        if as_browser and "%2" in href and has_escaped_dots(href):
            return resolve_as_browser(str(base), href.strip(_SPACE), resolved_by_java)
        if ":" in href and _ABSOLUTE.fullmatch(href):
            return href
        if plain and _PLAIN_PATH.fullmatch(href):
            return root + href if href[0] == "/" else folder + href
        href = href.strip(_SPACE)
        if as_browser and _READ_DIFFERENTLY.search(href):
            return resolve_as_browser(str(base), href, resolved_by_java)
        return resolved_by_java(href)

    def resolved_by_java(href: str) -> str:
        if href.startswith("?"):
            _, slash, name = base.path.rpartition("/")
            href = name + href if slash else href
        return str(parse_relative(base, href))

    return resolved


def resolve_url(base: str | JavaURL, href: str) -> str:
    """Return the absolute URL of ``href`` relative to ``base``, as ``URLUtil.resolveURL`` does.

    Unlike ``new URL(base, href)``, an href of only a query keeps the last path segment of the base. Raises ValueError
    if the URL is malformed.
    """
    if len(href) > MAX_LENGTH:
        check_length(href)
    if "%2" not in href and _ABSOLUTE.fullmatch(href):
        return href
    return url_resolver(parse_url(base) if isinstance(base, str) else base)(href)
