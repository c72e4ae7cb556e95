"""The media type of a page: from the header, the URL and the first bytes (Nutch's MimeUtil on Tika's rules)."""

from __future__ import annotations

import codecs
import re
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from nutch2py.conf import Configuration
from nutch2py.parser.mime_table import OCTET_STREAM, PLAIN_TEXT, MimeTable

_MAGIC_BYTES = 8192
_TEXT_BYTES = 512
# bytes that text does not hold: control characters but white space and escape
_CONTROL = bytes(set(range(32)) - set(b"\t\n\x0b\f\r\x1b"))
HTML = "text/html"
_MARKUP = frozenset({"application/xml", HTML, PLAIN_TEXT})  # what the root element of a document may say more of
_MARKUP_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")
_HTML_FIRST = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*+<(?:!--|!doctype\s++html|html|head)", re.IGNORECASE)
_START_BYTES = 8
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BEFORE_ROOT = re.compile(r"\s*(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>)", re.DOTALL | re.IGNORECASE)
_ROOT = re.compile(r"\s*<(?:([\w.-]+):)?([\w.-]+)([^>]*)")


class MimeTypes:
    """Resolves media types by one table; ``mime.type.magic`` says whether the first bytes are looked at."""

    def __init__(self, conf: Configuration) -> None:
        self.table = MimeTable.load(conf)
        self.use_magic = conf.get_bool("mime.type.magic", True)

    def resolve(self, declared: str | None, url: str, body: bytes) -> str:
        """Return the media type: what the bytes say, if they say more than the header, else the header, else the URL.

        A declared type that is a special form of what the bytes show (JSON in plain text, a feed in XML) is believed.
        Bytes that are plain text overrule a declared binary type, as in Nutch 1.
        """
        named = self.table.for_name((declared or "").partition(";")[0])
        kind = named if named and named != OCTET_STREAM else self.by_url(url)
        if self.use_magic:
            seen = self.by_content(body, url, named)
            if seen != OCTET_STREAM:
                kind = seen
        return kind

    def by_url(self, url: str) -> str:
        """Return the type by the ending of the last path segment, ``application/octet-stream`` when it says nothing."""
        path = url.partition("?")[0].partition("#")[0]
        rest = path.partition("://")[2]
        name = (rest or path).rpartition("/")[2] if "/" in (rest or path) else ""  # a host name has no ending
        return self.table.by_file_name(unquote(name)) or OCTET_STREAM

    def by_content(self, body: bytes, url: str, declared: str | None) -> str:
        """Return the type that the first bytes show, made special by the URL, then by the declared type."""
        head = body[:_MAGIC_BYTES]
        kinds = self._magic(head)
        if kinds[0] == HTML and not _MARKUP_FIRST.match(head):
            kinds.append(PLAIN_TEXT)  # prose and programs speak of HTML, too
        elif kinds[0] == HTML and not _HTML_FIRST.match(head):
            kinds.append("application/xml")  # books in XML have titles and tables, too
        for hint in (self.by_url(url), declared):
            if hint and any(self.table.is_a(hint, kind) for kind in kinds):
                kinds = [hint]
        return kinds[0]

    def _magic(self, head: bytes) -> list[str]:
        if not head:
            return [OCTET_STREAM]
        best, kinds = -1, list[str]()
        binary = _is_binary(head)
        for priority, name, matches in self.table.magic_of(head[0]):
            if priority < best:
                break
            if matches(head) and not (binary and self.table.is_a(name, PLAIN_TEXT)):
                best = priority
                if name not in kinds:
                    kinds.append(name)
        if not kinds:
            kinds = [PLAIN_TEXT if is_text(head) else OCTET_STREAM]
        return [self._by_root(head) or kind if kind in _MARKUP else kind for kind in kinds]

    def _by_root(self, head: bytes) -> str | None:
        """Return the type that the root element of an XML document names."""
        encoding = "utf-16" if head[:2] in _UTF16 else "utf-8"
        text = head.removeprefix(codecs.BOM_UTF8).decode(encoding, "replace")
        position = 0
        while (skipped := _BEFORE_ROOT.match(text, position)) is not None:
            position = skipped.end()
        root = _ROOT.match(text, position)
        if root is None:
            return None
        prefix, local, attributes = root.groups()
        namespace = None
        if "xmlns" in attributes:
            declaration = f"xmlns:{prefix}" if prefix else "xmlns"
            namespace = re.search(rf"\b{re.escape(declaration)}\s*=\s*[\"']([^\"']*)", attributes)
        found = self.table.roots.get((namespace[1] if namespace else "", local))
        return found or self.table.roots.get(("", local))


def _is_binary(head: bytes) -> bool:
    """Tell whether the very first bytes are those of no text: what then looks like text is what is packed in a file."""
    start = head[:_START_BYTES]
    return start[:2] not in _UTF16 and start != start.translate(None, _CONTROL)


def is_text(head: bytes) -> bool:
    """Tell whether bytes look like text in any encoding: fewer than 2 in 100 are control characters (Tika's rule)."""
    head = head[:_TEXT_BYTES]
    return (len(head) - len(head.translate(None, _CONTROL))) * 50 < len(head)


_resolvers: WeakKeyDictionary[Configuration, MimeTypes] = WeakKeyDictionary()


def mime_types(conf: Configuration) -> MimeTypes:
    """Return the resolver of a configuration, made at the first call."""
    found = _resolvers.get(conf)
    if found is None:
        found = _resolvers[conf] = MimeTypes(conf)
    return found


def content_type(declared: str | None, url: str, body: bytes, conf: Configuration) -> str:
    """Return the media type (no parameters) of a page. ``declared``: the Content-Type header as it came."""
    return mime_types(conf).resolve(declared, url, body)
