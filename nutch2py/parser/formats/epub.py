"""Books (EPUB): parses the chapters in reading order with the HTML parser."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.formats.containers.zip_package import ZipPackage, xml_events
from nutch2py.parser.formats.document_parser import DocumentParser, ParsedDocument, UnreadableDocumentError
from nutch2py.parser.formats.embedded_documents import EmbeddedDocumentParser
from nutch2py.parser.formats.unpack_budget import unpack_budget
from nutch2py.records.webpage import WebPage

_PROPERTIES = {
    "title": "title", "creator": "dc:creator", "subject": "dc:subject", "description": "dc:description",
    "publisher": "dc:publisher", "language": "dc:language", "identifier": "dc:identifier", "rights": "dc:rights",
    "date": "dcterms:created",
}  # fmt: skip


class EpubParser(DocumentParser):
    """Extracts title, chapters and links of a book."""

    content_types = "application/(?:epub\\+zip|x-ibooks\\+zip)"

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._embedded_parser = EmbeddedDocumentParser(conf)

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read a book."""
        with unpack_budget(self.conf) as budget:
            self.read_package(ZipPackage(content, budget), document)

    def read_package(self, package: ZipPackage, document: ParsedDocument) -> None:
        """Read an opened package: ``container.xml`` names the package file, whose spine lists the chapters."""
        root = next(
            (
                event.attributes.get("full-path", "")
                for event in xml_events(package.read("META-INF/container.xml"))
                if event.kind == "start" and event.name == "rootfile"
            ),
            "",
        )
        items: dict[str, str] = {}
        spine: list[str] = []
        text: list[str] = []
        for event in xml_events(package.read(root)):
            if event.kind == "text":
                text.append(event.text)
            elif event.kind == "start":
                text.clear()
                if event.name == "item":
                    items[event.attributes.get("id", "")] = event.attributes.get("href", "")
                elif event.name == "itemref":
                    spine.append(event.attributes.get("idref", ""))
            elif event.name in _PROPERTIES:
                document.set_metadata(_PROPERTIES[event.name], "".join(text).strip())
        folder = posixpath.dirname(root)
        chapters = [posixpath.normpath(posixpath.join(folder, unquote(items[name]))) for name in spine if name in items]
        if not chapters:
            chapters = [name for name in package.names if name.lower().endswith((".html", ".xhtml", ".htm"))]
        chapters = [*dict.fromkeys(chapters)]
        if not chapters:
            raise UnreadableDocumentError("no chapters in the book")
        for name in chapters:
            self._embedded_parser.parse_into(document, "", package.read(name), "application/xhtml+xml")
        package.raise_if_broken(document)
