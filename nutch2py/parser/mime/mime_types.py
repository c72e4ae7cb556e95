"""Detects the media type of a page by header, URL and first bytes (Nutch's MimeUtil on Tika's rules)."""

from __future__ import annotations

import re
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.mime.mime_table import OCTET_STREAM, PLAIN_TEXT, MimeTable
from nutch2py.parser.mime.text_start import UTF16_BOMS, MarkupStart, json_type, read_markup_start

_MAGIC_SAMPLE_BYTES = 8192
_TEXT_SAMPLE_BYTES = 512
# bytes that text does not contain: control characters except white space and escape
_CONTROL = bytes(set(range(32)) - set(b"\t\n\x0b\f\r\x1b"))
HTML_TYPE, XML_TYPE = "text/html", "application/xml"
_MARKUP_TYPES = frozenset({XML_TYPE, HTML_TYPE, PLAIN_TEXT})  # the root element may name a subtype
_STARTS_WITH_TAG = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")
_BINARY_SAMPLE_BYTES = 8


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
        start = read_markup_start(body)
        head = start.markup[:_MAGIC_SAMPLE_BYTES] if start else body[:_MAGIC_SAMPLE_BYTES]
        kinds = self._types_by_magic(head, start)
        if kinds[0] == HTML_TYPE and not _STARTS_WITH_TAG.match(head):
            found = json_type(head)
            kinds = [found] if found else [*kinds, PLAIN_TEXT]  # prose and source code mention HTML tags too
        elif kinds[0] == HTML_TYPE and start and not start.is_html_document:
            kinds.append(XML_TYPE)  # books in XML have titles and tables too
        elif kinds[0] == PLAIN_TEXT and start and start.is_sniffed_as_html:
            kinds = [HTML_TYPE, XML_TYPE, PLAIN_TEXT]  # one tag decides only where nothing else is known
        elif kinds[0] == PLAIN_TEXT:
            kinds[0] = json_type(head) or PLAIN_TEXT
        for hint in (self.type_by_url(url), declared):
            if hint and any(self.table.is_instance_of(hint, kind) for kind in kinds):
                kinds = [hint]
        return kinds[0]

    def _types_by_magic(self, head: bytes, start: MarkupStart | None) -> list[str]:
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
        if start is None:
            return kinds
        return [(self._type_by_root(start) or kind) if kind in _MARKUP_TYPES else kind for kind in kinds]

    def _type_by_root(self, start: MarkupStart) -> str | None:
        """Return the type that the table has for the root element, else whether it is certainly XML."""
        roots = self.table.root_elements
        found = roots.get((start.namespace, start.local_name)) or roots.get(("", start.local_name))
        return found or (XML_TYPE if start.is_xml else None)


def _is_binary(head: bytes) -> bool:
    """Return whether the first bytes are binary: text that follows is then a part of a container file."""
    start = head[:_BINARY_SAMPLE_BYTES]
    return start[:2] not in UTF16_BOMS and start != start.translate(None, _CONTROL)


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
