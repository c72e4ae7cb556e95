"""OpenDocument (odt, ods, odp, odg) and its forerunner of OpenOffice 1."""

from __future__ import annotations

from nutch2py.conf import Configuration
from nutch2py.parser.formats.nested import NestedDocuments, unpacking
from nutch2py.parser.formats.ooxml import simple_values
from nutch2py.parser.formats.parsed_document import (
    Document,
    DocumentParser,
    Encrypted,
    Unreadable,
    anchor_of,
    whole_number,
)
from nutch2py.parser.formats.zip_package import ZipPackage, attribute, xml_events
from nutch2py.webpage import WebPage

_PARAGRAPHS = frozenset({"p", "h"})
_ASIDE = frozenset({"annotation", "note", "text-box"})  # stand within a paragraph, and are no part of it
_SKIPPED = frozenset({"deletion", "tracked-changes", "scripts", "binary-data", "forms", "sequence-decls", "ruby-text"})
_PROPERTIES = {
    "title": "title", "creator": "dc:creator", "initial-creator": "meta:initial-author", "subject": "dc:subject",
    "description": "dc:description", "keyword": "meta:keyword", "creation-date": "dcterms:created",
    "date": "dcterms:modified", "language": "dc:language", "generator": "generator",
}  # fmt: skip


class OpenDocumentParser(DocumentParser):
    """Text, links, headers and embedded documents of a package, or of its flat form (one XML file)."""

    content_types = r"application/(?:x-)?vnd\.(?:oasis\.opendocument|sun\.xml)\..*"

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._nested = NestedDocuments(conf)

    def read(self, content: bytes, document: Document, page: WebPage) -> None:
        """Read a package or a flat file."""
        if content.lstrip()[:1] == b"<":
            read_text(content, document)
            return
        with unpacking(self.conf) as budget:
            self.read_package(ZipPackage(content, budget), document)

    def read_package(self, package: ZipPackage, document: Document) -> None:
        """Read an opened package."""
        if b"encryption-data" in package.read("META-INF/manifest.xml"):
            raise Encrypted("the manifest names a key")
        body = package.read("content.xml")
        if not body:
            package.finish(document)
            raise Unreadable("no content.xml in the package")
        for name, value in simple_values(package.read("meta.xml")):
            if name in _PROPERTIES:
                document.describe(_PROPERTIES[name], value)
        read_text(body, document)
        read_text(package.read("styles.xml"), document)  # headers and footers
        for name in dict.fromkeys(package.names):
            folder, _, file = name.rpartition("/")
            if file == "content.xml" and folder:
                read_text(package.read(name), document)
            elif folder.startswith(("Object", "Pictures", "ObjectReplacements")) and file.lower().endswith(
                (".pdf", ".docx")
            ):
                self._nested.add(document, file, package.read(name))


def read_text(content: bytes, document: Document) -> None:
    """Add the paragraphs and links of ``content.xml`` or ``styles.xml``."""
    line: list[str] = []
    aside: list[tuple[list[str], int]] = []  # paragraphs that are interrupted by a note or an annotation
    links: list[tuple[str, int]] = []  # target, length of the line where its anchor begins
    paragraphs = skipped = 0
    for event in xml_events(content):
        kind, name = event.kind, event.name
        if skipped:
            skipped += (kind == "start") - (kind == "end")
        elif kind == "text":
            if paragraphs:
                line.append(event.text)
        elif kind == "start":
            if name in _SKIPPED:
                skipped = 1
            elif name in _ASIDE:
                aside.append((line, paragraphs))
                line, paragraphs = [], 0
            elif name in _PARAGRAPHS:
                paragraphs += 1
                if line:
                    line.append("\n")
            elif name == "a":
                links.append((attribute(event, "href"), len(line)))
            elif name in ("s", "tab"):
                line.append(" " * min(100, whole_number(attribute(event, "c"), 1) if name == "s" else 1))
            elif name == "line-break":
                line.append("\n")
        elif name in _ASIDE and aside:
            document.add("".join(line))
            line, paragraphs = aside.pop()
        elif name in _PARAGRAPHS:
            paragraphs -= 1
            if paragraphs <= 0:
                paragraphs = 0
                document.add("".join(line))
                line.clear()
        elif name == "a" and links:
            target, start = links.pop()
            document.link(target, anchor_of(line, start))
