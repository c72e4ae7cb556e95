"""urlnormalizer-basic: syntax-based normalization of URLs.

It puts protocol and host in lower case, and removes the default port, user info (http and https), fragment, and ``.``,
``..`` and empty segments of the path, which starts with a slash. As in Nutch, and in the row keys of its tables, the
path of a URL that ``java.net.URI`` rejects keeps these segments. Properties:

``urlnormalizer.basic.host.idn``, ``.host.idna2008``, ``.host.trim-trailing-dot``
    the form of international host names, and of host names with a trailing dot.
``urlnormalizer.basic.nutch1.rules``
    true also normalizes percent-escapes (``%7e`` is ``~``, a space ``%20``, ``é`` is ``%C3%A9``), adds a slash before a
    query (``http://a?b`` is ``http://a/?b``), and normalizes paths of ``file:``, as Nutch 1 does. False keeps these,
    and a last ``..`` without a parent, as Nutch 2 and the row keys and links of its tables do.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import URLNormalizer
from nutch2py.url.idn import host_to_ascii, host_to_ascii_2003, host_to_unicode, host_to_unicode_2003
from nutch2py.url.java_url import JavaURL, compose_url, parse_url

_WEB_PROTOCOLS = frozenset({"http", "https", "ftp"})
_SPACE = "".join(map(chr, range(33)))

# URLs that match are canonical, except for dot segments and empty segments
_CLEAN_HEAD = r"https?://[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::(?!80/|443/)[1-9][0-9]{1,4})?/"
_CLEAN = re.compile(_CLEAN_HEAD + r"[^#\x00-\x20]*")
_CLEAN_ESCAPED = re.compile(
    _CLEAN_HEAD + r"(?:[!$&-;=?@A-Z_a-z~\\]|%(?!2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])[0-9A-F]{2})*+"
)
_ODD_PATH = re.compile(r"/[./]|\./")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_TO_ESCAPE = re.compile(r'[\x00-\x20"<>\[\]^`{|}\x7f-\U0010ffff]|%(?![0-9A-Fa-f]{2})')
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_INVALID_HOST_CHARACTERS = re.compile(r"[\x00-\x20/?#@\\:]")


class BasicURLNormalizer(URLNormalizer):
    """Normalize URLs; a canonical URL costs one match."""

    java_class = "org.apache.nutch.net.urlnormalizer.basic.BasicURLNormalizer"

    def __init__(self, conf: Configuration) -> None:
        idn = conf.get_trimmed("urlnormalizer.basic.host.idn").lower()
        if idn not in {"", "toascii", "tounicode"}:
            raise ConfigurationError(
                f"property urlnormalizer.basic.host.idn is {idn!r}: set it to toAscii, toUnicode or nothing"
            )
        self._idn = idn
        self._idna2008 = conf.get_bool("urlnormalizer.basic.host.idna2008", False)
        self._trim_dot = conf.get_bool("urlnormalizer.basic.host.trim-trailing-dot", False)
        self._nutch1 = conf.get_bool("urlnormalizer.basic.nutch1.rules", False)
        self._clean = (_CLEAN_ESCAPED if self._nutch1 else _CLEAN).fullmatch

    def normalize(self, url: str, scope: str) -> str:
        """Return the canonical form, in any scope; raise ValueError if ``url`` is malformed."""
        if (
            self._clean(url) is not None
            and "/." not in url
            and "./" not in url
            and url.count("//") == 1
            and not (self._idn == "tounicode" and "xn--" in url)
        ):
            return url
        return self.normalize_by_all_rules(url.strip(_SPACE)) if url else url

    def normalize_by_all_rules(self, url: str) -> str:
        """Return the canonical form without the shortcut for canonical URLs; ``url`` has no surrounding space."""
        parsed = parse_url(url)
        protocol, host, port, file = parsed.protocol, parsed.host, parsed.port, parsed.file
        changed = not url.startswith(protocol)
        if protocol in _WEB_PROTOCOLS:
            if parsed.ref is not None and not self._nutch1:
                file = file.rstrip(_SPACE)  # spaces before the fragment are trailing spaces without it
            host = self._normalize_host(host)
            changed = changed or parsed.authority != host or parsed.ref is not None
            if port == parsed.default_port:
                port = -1
            if not file.startswith("/") and (self._nutch1 or not file):
                file, changed = f"/{file}", True
        elif protocol == "file" and self._nutch1 and not file.startswith("/"):
            file = f"/{file}"
        if self._nutch1:
            file = _escape(_unescape(file))
        if protocol in _WEB_PROTOCOLS or (protocol == "file" and self._nutch1):
            file = self._normalize_path(protocol, host, port, file)
        if not changed and file == parsed.file:
            return url
        return _compose(parsed, host, port, file)

    def _normalize_path(self, protocol: str, host: str, port: int, file: str) -> str:
        """Remove empty segments and dot segments of the path (RFC 3986 5.2.4)."""
        path, mark, query = file.partition("?")
        if not path.startswith("/") or not _ODD_PATH.search(path):
            return file
        # Nutch 2 passes the URL with its fragment to java.net.URI, and again without it when the row is generated.
        # This is the second, final result.
        from nutch2py.url.java_uri import is_uri  # needed for few URLs, and its patterns take 10 ms to compile

        authority = host if port == -1 else f"{host}:{port}"
        if not is_uri(JavaURL(protocol, host, port, path, query if mark else None, None, None, authority)):
            return file
        segments: list[str] = []
        parts = path.split("/")
        for part in parts:
            if part == "..":
                del segments[-1:]
            elif part not in {"", "."}:
                segments.append(part)
        end = "/" if segments and parts[-1] in {"", ".", ".."} else ""
        if parts[-1] == ".." and not segments and not self._nutch1 and _goes_above_root(parts):
            end = ".."
        return "/" + "/".join(segments) + end + mark + query

    def _normalize_host(self, host: str) -> str:
        if "%" in host:
            if _BAD_ESCAPE.search(host):
                raise ValueError(f"Invalid percent-encoded host name {host}")
            try:
                host = unquote(host, errors="strict")
            except UnicodeDecodeError:
                raise ValueError(f"Invalid percent-encoded host name {host}") from None
            if _INVALID_HOST_CHARACTERS.search(host):
                raise ValueError(f"Invalid percent-encoded host name {host}")
        host = host.lower()
        if self._idn == "toascii" and not host.isascii():
            host = host_to_ascii(host) if self._idna2008 else host_to_ascii_2003(host)
        elif self._idn == "tounicode" and "xn--" in host:
            host = host_to_unicode(host) if self._idna2008 else host_to_unicode_2003(host)
        return host.removesuffix(".") if self._trim_dot else host


def _compose(parsed: JavaURL, host: str, port: int, file: str) -> str:
    if parsed.userinfo is not None and parsed.protocol not in {"http", "https"}:
        host = f"{parsed.userinfo}@{host}"  # an FTP server may need it
        return f"{parsed.protocol}://{host}{file}" if port == -1 else f"{parsed.protocol}://{host}:{port}{file}"
    return compose_url(parsed.protocol, host, port, file)


def _goes_above_root(parts: list[str]) -> bool:
    """Return whether the last segment, a ``..``, has no parent segment."""
    depth = 0
    for part in parts[:-1]:
        depth = max(depth - 1, 0) if part == ".." else depth + (part not in {"", "."})
    return depth == 0


def _unescape(file: str) -> str:
    """Decode escapes of unreserved characters (RFC 3986 2.3), and put others in upper case."""

    def unescape(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    return _ESCAPE.sub(unescape, file) if "%" in file else file


def _escape(file: str) -> str:
    """Escape characters that are not allowed in a URL as UTF-8, and percent signs that are not escapes."""
    return _TO_ESCAPE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), file)
