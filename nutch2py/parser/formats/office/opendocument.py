"""OpenDocument (odt, ods, odp, odg) and its predecessor of OpenOffice 1."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.formats.containers.zip_package import ZipPackage, get_attribute, xml_events
from nutch2py.parser.formats.document_parser import (
    DocumentParser,
    EncryptedDocumentError,
    ParsedDocument,
    UnreadableDocumentError,
    join_anchor,
    parse_int,
)
from nutch2py.parser.formats.embedded_documents import EmbeddedDocumentParser
from nutch2py.parser.formats.office.ooxml import read_simple_values
from nutch2py.parser.formats.unpack_budget import unpack_budget
from nutch2py.records.webpage import WebPage

_PARAGRAPHS = frozenset({"p", "h"})
_ASIDE_ELEMENTS = frozenset({"annotation", "note", "text-box"})  # inside a paragraph, but not part of it
_SKIPPED_ELEMENTS = frozenset(
    {"deletion", "tracked-changes", "scripts", "binary-data", "forms", "sequence-decls", "ruby-text"}
)
_PROPERTIES = {
    "title": "title", "creator": "dc:creator", "initial-creator": "meta:initial-author", "subject": "dc:subject",
    "description": "dc:description", "keyword": "meta:keyword", "creation-date": "dcterms:created",
    "date": "dcterms:modified", "language": "dc:language", "generator": "generator",
}  # fmt: skip


class OpenDocumentParser(DocumentParser):
    """Reads text, links, headers and embedded documents of a package, or of the flat form (one XML file)."""

    content_types = r"application/(?:x-)?vnd\.(?:oasis\.opendocument|sun\.xml)\..*"

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._embedded_parser = EmbeddedDocumentParser(conf)

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read a package or a flat file."""
        if content.lstrip()[:1] == b"<":
            read_content(content, document)
            return
        with unpack_budget(self.conf) as budget:
            self.read_package(ZipPackage(content, budget), document)

    def read_package(self, package: ZipPackage, document: ParsedDocument) -> None:
        """Read an opened package."""
        if b"encryption-data" in package.read("META-INF/manifest.xml"):
            raise EncryptedDocumentError("the manifest contains encryption data")
        body = package.read("content.xml")
        if not body:
            package.raise_if_broken(document)
            raise UnreadableDocumentError("no content.xml in the package")
        for name, value in read_simple_values(package.read("meta.xml")):
            if name in _PROPERTIES:
                document.set_metadata(_PROPERTIES[name], value)
        read_content(body, document)
        read_content(package.read("styles.xml"), document)  # headers and footers
        for name in dict.fromkeys(package.names):
            folder, _, file = name.rpartition("/")
            if file == "content.xml" and folder:
                read_content(package.read(name), document)
            elif folder.startswith(("Object", "Pictures", "ObjectReplacements")) and file.lower().endswith(
                (".pdf", ".docx")
            ):
                self._embedded_parser.parse_into(document, file, package.read(name))


def read_content(content: bytes, document: ParsedDocument) -> None:
    """Add the paragraphs and links of ``content.xml`` or ``styles.xml``."""
    line: list[str] = []
    aside: list[tuple[list[str], int]] = []  # paragraphs interrupted by a note or an annotation
    links: list[tuple[str, int]] = []  # target, length of the line at the start of its anchor
    paragraphs = skipped = 0
    for event in xml_events(content):
        kind, name = event.kind, event.name
        if skipped:
            skipped += (kind == "start") - (kind == "end")
        elif kind == "text":
            if paragraphs:
                line.append(event.text)
        elif kind == "start":
            if name in _SKIPPED_ELEMENTS:
                skipped = 1
            elif name in _ASIDE_ELEMENTS:
                aside.append((line, paragraphs))
                line, paragraphs = [], 0
            elif name in _PARAGRAPHS:
                paragraphs += 1
                if line:
                    line.append("\n")
            elif name == "a":
                links.append((get_attribute(event, "href"), len(line)))
            elif name in ("s", "tab"):
                line.append(" " * min(100, parse_int(get_attribute(event, "c"), 1) if name == "s" else 1))
            elif name == "line-break":
                line.append("\n")
        elif name in _ASIDE_ELEMENTS and aside:
            document.add_text("".join(line))
            line, paragraphs = aside.pop()
        elif name in _PARAGRAPHS:
            paragraphs -= 1
            if paragraphs <= 0:
                paragraphs = 0
                document.add_text("".join(line))
                line.clear()
        elif name == "a" and links:
            target, start = links.pop()
            document.add_link(target, join_anchor(line, start))
