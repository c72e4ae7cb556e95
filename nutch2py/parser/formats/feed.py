"""Feeds (RSS, Atom, RDF) and lists of feeds (OPML). Other XML becomes plain text.

Entries become outlinks with titles, summaries become text.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping

from nutch2py.parser.charset.encoding_detector import decode_unlabeled
from nutch2py.parser.formats.containers.zip_package import XmlEvent, xml_events
from nutch2py.parser.formats.document_parser import DocumentParser, ParsedDocument, UnreadableDocumentError
from nutch2py.parser.links.url_reference import clean_reference
from nutch2py.records.webpage import WebPage
from nutch2py.url.url_parts import resolve_url

_ENTRY_TAGS = frozenset({"item", "entry"})
_TEXT_TAGS = frozenset(
    {
        "title", "description", "summary", "content", "subtitle", "tagline", "encoded", "author", "name", "creator",
        "category", "info", "body", "fullitem", "abstract",
    }
)  # fmt: skip
# characters that HTML reads as windows-1252 (the table of numeric references), which feeds made from it contain
_WINDOWS_1252 = {code: bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(0x80, 0xA0)}
_HIDDEN_TAGS = frozenset({"script", "style"})
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>|&[a-zA-Z#][a-zA-Z0-9]{1,30};")


class FeedParser(DocumentParser):
    """Reads all kinds of feeds with one set of rules; ignores namespaces and case.

    Each entry adds an outlink with the entry's title; the feed's own link has the feed's title.
    """

    content_types = r"application/(?:rss|atom|rdf)\+xml|text/x-opml"

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read a feed; malformed XML is read as far as possible."""
        reader = _FeedReader(document)
        for event in xml_events(content, page.headers.get("Content-Type")):
            reader.handle_event(event)
        if not reader.root:
            raise UnreadableDocumentError("not XML")
        reader.finish()


class _FeedReader:
    def __init__(self, document: ParsedDocument) -> None:
        self._document = document
        self.root = ""
        self._path: list[str] = []
        self._text: list[str] = []
        self._title = ""
        self._links: list[str] = []
        self._id_url = ""  # of an entry: its id where that is a URL
        self._text_depth = 0  # of the open text element: markup inside belongs to it
        self._base = document.base
        self._has_markup = False  # whether the text element contains child elements
        self._is_base64 = False
        self._hidden_depth = 0  # number of open elements that hide their text

    def finish(self) -> None:
        """Keep the text element and the entry that are still open: the feed was cut off within them."""
        if self._text_depth:
            del self._path[self._text_depth :]
            self._end_element(self._path[-1])
        self.end_entry()

    def handle_event(self, event: XmlEvent) -> None:
        """Process one event."""
        if event.kind == "text":
            if not self._hidden_depth:
                self._text.append(event.text.translate(_WINDOWS_1252))
        elif event.kind == "start":
            self._start_element(event)
        else:
            self._end_element(event.name.lower())

    def _start_element(self, event: XmlEvent) -> None:
        name = event.name.lower()
        self.root = self.root or name
        self._path.append(name)
        base = event.attributes.get("{http://www.w3.org/XML/1998/namespace}base")
        if base and len(self._path) <= 2:
            self._base = resolve_target(self._base, base)
        if self._text_depth:
            self._has_markup = True
            self._hidden_depth += name in _HIDDEN_TAGS
            if self._text and not self._text[-1].endswith(" "):
                self._text.append(" ")
            return
        if name in _ENTRY_TAGS:
            self.end_entry()
        self._text = []
        if name in _TEXT_TAGS and not (name == "body" and self.root == "opml"):
            self._text_depth, self._has_markup, self._is_base64 = len(self._path), False, _is_base64(event.attributes)
        if name == "link" and event.attributes.get("rel", "alternate") in ("alternate", "related"):
            self._add_link(event.attributes.get("href", ""))
        elif name == "outline":
            self._add_outline(event.attributes)
        elif name in ("item", "channel"):  # Channel Definition Format
            self._add_link(event.attributes.get("HREF", event.attributes.get("href", "")))

    def _add_outline(self, attributes: Mapping[str, str]) -> None:
        """Add an element of OPML 2.0: its text, and links to a feed, a site or another document."""
        self._title = attributes.get("text") or attributes.get("title", "")
        self._document.add_text(self._title)
        for name in ("xmlUrl", "htmlUrl", "url"):
            self._add_link(attributes.get(name, ""))
        self.end_entry()

    def _end_element(self, name: str) -> None:
        parent = self._path[-2] if len(self._path) > 1 else ""
        if self._hidden_depth and name in _HIDDEN_TAGS:
            self._hidden_depth -= 1
        if self._text_depth == len(self._path):
            self._text_depth = 0
            text = "".join(self._text)
            if self._is_base64:
                text = _decode_base64(text)
            # with child elements, escaped markup is literal text
            text = " ".join(text.split()) if self._has_markup else strip_markup(text)
            if name == "title" and parent not in ("image", "textInput", "textinput"):
                self._title = self._title or text
                if parent not in _ENTRY_TAGS:
                    self._document.set_metadata("title", text)
            if parent != "image":
                self._document.add_text(text)
        elif not self._text_depth:
            target = "".join(self._text).strip()
            is_link = name == "link" and parent not in ("image", "textInput", "textinput")
            is_id = name == "guid" or (name == "id" and parent in _ENTRY_TAGS)  # of RSS, of Atom
            if is_link:
                self._add_link(target)
            elif is_id and target.startswith(("http://", "https://")):
                self._id_url = target
            if name in _ENTRY_TAGS:
                self.end_entry()
            self._text = []
        if self._path:
            self._path.pop()

    def _add_link(self, target: str) -> None:
        if target.strip():
            self._links.append(resolve_target(self._base, target.strip()))

    def end_entry(self) -> None:
        """Add the links of the current entry with its title as anchor; without links its id, if that is a URL."""
        if not self._links and self._id_url:
            self._add_link(self._id_url)
        for target in dict.fromkeys(self._links):
            self._document.add_link(target, self._title)
        self._links, self._title, self._id_url = [], "", ""


def _is_base64(attributes: Mapping[str, str]) -> bool:
    """Return whether a text is base64: by Atom 0.3's mode, or by the type in Atom 1.0 (RFC 4287, 4.1.3.3)."""
    if "mode" in attributes or "src" in attributes:
        return attributes.get("mode") == "base64"
    kind = attributes.get("type", "").lower().partition(";")[0]
    return "/" in kind and not kind.startswith("text/") and not kind.endswith(("+xml", "/xml"))


def _decode_base64(text: str) -> str:
    try:
        return decode_unlabeled(b64decode("".join(text.split()), validate=True))
    except ValueError:
        return text


def resolve_target(base: str, target: str) -> str:
    """Return the absolute URL, or the target itself when it cannot be resolved."""
    try:
        return resolve_url(base, clean_reference(target))
    except ValueError:
        return target


def strip_markup(text: str) -> str:
    """Return the text of a possible HTML fragment.

    >>> strip_markup("<p>one &amp; <b>two</b></p>"), strip_markup("1 < 2")
    ('one & two', '1 < 2')
    """
    if not _MARKUP.search(text):
        return text.strip()
    from nutch2py.parser.html.dom import node_text, parse_tree, remove_scripts
    from nutch2py.parser.html.html_limits import HtmlLimits

    tree = parse_tree(HtmlLimits().apply(text)[0])
    remove_scripts(tree)
    return "" if tree.root is None else node_text(tree.root).strip()


class XmlParser(DocumentParser):
    """Any other XML: extracts the text between the tags."""

    content_types = r"(?:application|text)/xml|(?:application|image|model)/[^;]*\+xml"

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read a file; the first ``title`` element sets the title."""
        words: list[str] = []
        inside = seen = False
        for event in xml_events(content, page.headers.get("Content-Type")):
            seen = True
            if event.kind == "text":
                words.append(event.text)
                if inside:
                    document.set_metadata("title", event.text)
            else:
                inside = event.kind == "start" and event.name == "title"
                words.append("\n" if event.kind == "end" else " ")
        if not seen:
            raise UnreadableDocumentError("not XML")
        document.add_text("".join(words))
