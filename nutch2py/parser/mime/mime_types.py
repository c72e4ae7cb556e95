"""Detects the media type of a page by header, URL and first bytes (Nutch's MimeUtil on Tika's rules)."""

from __future__ import annotations

import codecs
import re
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.mime.mime_table import OCTET_STREAM, PLAIN_TEXT, MimeTable

_MAGIC_SAMPLE_BYTES = 8192
_TEXT_SAMPLE_BYTES = 512
# bytes that text does not contain: control characters except white space and escape
_CONTROL = bytes(set(range(32)) - set(b"\t\n\x0b\f\r\x1b"))
HTML_TYPE, XML_TYPE = "text/html", "application/xml"
_MARKUP_TYPES = frozenset({XML_TYPE, HTML_TYPE, PLAIN_TEXT})  # the root element may name a subtype
_STARTS_WITH_TAG = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")
_STARTS_AS_HTML = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*+(?:<!--.*?-->\s*+)*+<(?:!doctype\s++html|html|head)", re.IGNORECASE | re.DOTALL
)
_BINARY_SAMPLE_BYTES = 8
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
# the internal subset of a document type may contain brackets in quoted text
_BEFORE_ROOT = re.compile(
    r"\s*(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*+\[(?:[^\]\"']++|\"[^\"]*+\"|'[^']*+')*+\]\s*+>"
    r"|<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>)",
    re.DOTALL | re.IGNORECASE,
)
_ROOT_ELEMENT = re.compile(r"\s*<(?:([\w.-]+):)?([\w.-]+)([^>]*)")


class MimeTypeResolver:
    """Resolves media types by one table; ``mime.type.magic`` enables the test of the first bytes."""

    def __init__(self, conf: Configuration) -> None:
        self.table = MimeTable.load(conf)
        self.use_magic = conf.get_bool("mime.type.magic", True)

    def resolve(self, declared: str | None, url: str, body: bytes) -> str:
        """Return the media type: by content if that is more specific than the header, else by header, else by URL.

        A declared subtype of the detected type (JSON in plain text, a feed in XML) is accepted. Plain text content
        overrules a declared binary type, as in Nutch 1.
        """
        named = self.table.canonical_name((declared or "").partition(";")[0])
        kind = named if named and named != OCTET_STREAM else self.type_by_url(url)
        if self.use_magic:
            seen = self.type_by_content(body, url, named)
            if seen != OCTET_STREAM:
                kind = seen
        return kind

    def type_by_url(self, url: str) -> str:
        """Return the type by the extension of the last path segment, else ``application/octet-stream``."""
        path = url.partition("?")[0].partition("#")[0]
        rest = path.partition("://")[2]
        name = (rest or path).rpartition("/")[2] if "/" in (rest or path) else ""  # a host name has no extension
        return self.table.type_by_file_name(unquote(name)) or OCTET_STREAM

    def type_by_content(self, body: bytes, url: str, declared: str | None) -> str:
        """Return the type by the first bytes, refined by the URL, then by the declared type."""
        head = body[:_MAGIC_SAMPLE_BYTES]
        kinds = self._types_by_magic(head)
        if kinds[0] == HTML_TYPE and not _STARTS_WITH_TAG.match(head):
            kinds.append(PLAIN_TEXT)  # prose and source code mention HTML tags too
        elif kinds[0] == HTML_TYPE and not _STARTS_AS_HTML.match(head):
            kinds.append(XML_TYPE)  # books in XML have titles and tables too, and XML may begin with a comment
        for hint in (self.type_by_url(url), declared):
            if hint and any(self.table.is_instance_of(hint, kind) for kind in kinds):
                kinds = [hint]
        return kinds[0]

    def _types_by_magic(self, head: bytes) -> list[str]:
        if not head:
            return [OCTET_STREAM]
        best, kinds = -1, list[str]()
        binary = _is_binary(head)
        for priority, name, matches in self.table.magic_for_first_byte(head[0]):
            if priority < best:
                break
            if matches(head) and not (binary and self.table.is_instance_of(name, PLAIN_TEXT)):
                best = priority
                if name not in kinds:
                    kinds.append(name)
        if not kinds:
            kinds = [PLAIN_TEXT if is_text(head) else OCTET_STREAM]
        return [self._type_by_root_element(head) or kind if kind in _MARKUP_TYPES else kind for kind in kinds]

    def _type_by_root_element(self, head: bytes) -> str | None:
        """Return the type of an XML document's root element."""
        encoding = "utf-16" if head[:2] in _UTF16_BOMS else "utf-8"
        text = head.removeprefix(codecs.BOM_UTF8).decode(encoding, "replace")
        position = 0
        while (skipped := _BEFORE_ROOT.match(text, position)) is not None:
            position = skipped.end()
        root = _ROOT_ELEMENT.match(text, position)
        if root is None:
            return None
        prefix, local, attributes = root.groups()
        namespace = None
        if "xmlns" in attributes:
            declaration = f"xmlns:{prefix}" if prefix else "xmlns"
            namespace = re.search(rf"\b{re.escape(declaration)}\s*=\s*[\"']([^\"']*)", attributes)
        found = self.table.root_elements.get((namespace[1] if namespace else "", local))
        return found or self.table.root_elements.get(("", local))


def _is_binary(head: bytes) -> bool:
    """Return whether the first bytes are binary: text that follows is then a part of a container file."""
    start = head[:_BINARY_SAMPLE_BYTES]
    return start[:2] not in _UTF16_BOMS and start != start.translate(None, _CONTROL)


def is_text(head: bytes) -> bool:
    """Return whether bytes look like text in any encoding: less than 2 % control characters (Tika's rule)."""
    head = head[:_TEXT_SAMPLE_BYTES]
    return (len(head) - len(head.translate(None, _CONTROL))) * 50 < len(head)


_resolver_cache: WeakKeyDictionary[Configuration, MimeTypeResolver] = WeakKeyDictionary()


def get_mime_resolver(conf: Configuration) -> MimeTypeResolver:
    """Return the cached resolver of a configuration."""
    found = _resolver_cache.get(conf)
    if found is None:
        found = _resolver_cache[conf] = MimeTypeResolver(conf)
    return found


def detect_content_type(declared: str | None, url: str, body: bytes, conf: Configuration) -> str:
    """Return the media type of a page, without parameters. ``declared``: the Content-Type header."""
    return get_mime_resolver(conf).resolve(declared, url, body)
