"""Word, Excel and PowerPoint since 2007 (Office Open XML), read directly from the package in document order."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Outlink
from nutch2py.parser.formats.containers.zip_package import (
    ZipPackage,
    get_attribute,
    read_relationships,
    reject_unsupported,
    xml_events,
)
from nutch2py.parser.formats.document_parser import (
    DocumentParser,
    ParsedDocument,
    UnreadableDocumentError,
    join_anchor,
    parse_int,
)
from nutch2py.parser.formats.embedded_documents import EmbeddedDocumentParser
from nutch2py.parser.formats.unpack_budget import unpack_budget
from nutch2py.parser.formats.word.field_codes import find_field_target
from nutch2py.parser.formats.word.list_numbering import DocxLists
from nutch2py.records.webpage import WebPage

_NUMBER = re.compile(r"(\d+)")
_BREAKS = {"p": "\n", "br": "\n", "cr": "\n", "tab": "\t", "tc": "\t", "noBreakHyphen": "\u2011"}
_SKIPPED = frozenset({"Fallback", "delText", "rPh", "creationId", "fld-guid", "pPrChange"})
_TEXT_PARTS = {
    "docx": r"word/(?:document\d*|footnotes|endnotes|comments|header\d*|footer\d*|glossary/document)\.xml",
    "pptx": r"ppt/(?:slides/slide|notesSlides/notesSlide|comments/|charts/chart|diagrams/data)[\w-]*\.xml",
    "xlsx": r"xl/(?:chartsheets/[^/]+|(?:threadedC|c)omments[^/]*|drawings/drawing\d+)\.xml",
}
_EXTRA_PARTS = re.compile(r"(?:word|xl)/(?:charts/chart\d+|diagrams/data\d+|drawings/drawing\d+)\.xml", re.IGNORECASE)
_MASTER_PARTS = re.compile(r"ppt/slide(?:Masters/slideMaster|Layouts/slideLayout)\d+\.xml", re.IGNORECASE)
_EMBEDDED_FILES = re.compile(r"(?:word|ppt|xl)/(?:embeddings/.+|media/.+\.(?:pdf|docx?|txt|html?))", re.IGNORECASE)
_PROPERTIES = {
    "title": "title", "creator": "dc:creator", "subject": "dc:subject", "description": "dc:description",
    "keywords": "meta:keyword", "created": "dcterms:created", "modified": "dcterms:modified",
    "category": "cp:category",
    "language": "dc:language", "lastModifiedBy": "meta:last-author", "Pages": "xmpTPg:NPages",
    "Slides": "meta:slide-count",
    "Company": "extended-properties:Company", "Application": "extended-properties:Application",
}  # fmt: skip


_ALT_CHUNK_TYPES = {"htm": "text/html", "html": "text/html", "xhtml": "application/xhtml+xml", "mht": "message/rfc822",
           "mhtml": "message/rfc822", "txt": "text/plain", "rtf": "application/rtf"}  # fmt: skip


class OoxmlParser(DocumentParser):
    """Reads text, links, notes, comments, headers, charts and embedded documents of docx, xlsx and pptx packages."""

    content_types = (
        r"application/(?:vnd\.openxmlformats-officedocument\..*|x-tika-ooxml(?:-protected)?"
        r"|vnd\.ms-(?:word|excel|powerpoint)\..*(?:macroenabled|binary).*)"
    )

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._embedded_parser = EmbeddedDocumentParser(conf)

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read a package; an encrypted one is a compound file and is read as such."""
        if content[:4] == b"\xd0\xcf\x11\xe0":
            from nutch2py.parser.formats.office.ole import OleParser

            OleParser(self.conf).read(content, document, page)
            return
        with unpack_budget(self.conf) as budget:
            package = ZipPackage(content, budget)
            self.read_package(package, document)

    def read_package(self, package: ZipPackage, document: ParsedDocument) -> None:
        """Read an opened package."""
        reject_unsupported(package)
        kind = next((kind for kind, folder in _ROOT_DIRS.items() if _has_dir(package, folder)), None)
        if kind is None:
            raise UnreadableDocumentError("no Word, Excel or PowerPoint document in the package")
        for name in ("docProps/core.xml", "docProps/app.xml"):
            for label, value in read_simple_values(package.read(name)):
                if label in _PROPERTIES:
                    document.set_metadata(_PROPERTIES[label], value)
        if kind == "xlsx":
            from nutch2py.parser.formats.excel.xlsx import read_sheets

            read_sheets(package, document)
        lists = DocxLists(package.read("word/numbering.xml"), package.read("word/styles.xml"))
        parts = {
            name for name in package.names if re.fullmatch(_TEXT_PARTS[kind], name.replace("\\", "/"), re.IGNORECASE)
        }
        extras = {name for name in package.names if _EXTRA_PARTS.fullmatch(name)} - parts
        for name in [*sorted(parts, key=_part_order), *sorted(extras, key=_part_order)]:
            self._read_part(package, name, document, lists)
        for event in xml_events(package.read("ppt/commentAuthors.xml")):
            if event.kind == "start" and event.name == "cmAuthor":
                document.add_text(f"{event.attributes.get('name', '')} ({event.attributes.get('initials', '')})")
        for name in sorted(filter(_MASTER_PARTS.fullmatch, set(package.names)), key=_part_order):
            for text in read_master_texts(package.read(name)):
                document.add_text(text)
        for name in dict.fromkeys(package.names):
            if _EMBEDDED_FILES.fullmatch(name):
                self._embedded_parser.parse_into(document, posixpath.basename(name), package.read(name))
        package.raise_if_broken(document)

    def _read_part(self, package: ZipPackage, name: str, document: ParsedDocument, lists: DocxLists) -> None:
        folder, _, file = name.rpartition("/")
        links = read_relationships(package.read(f"{folder}/_rels/{file}.rels"))
        targets = {key: target for key, (kind, target) in links.items() if kind == "hyperlink"}
        outlinks: list[Outlink] = []
        document.add_text("".join(read_part_text(package.read(name), targets, outlinks, lists)))
        named = {link.url for link in outlinks}
        # templates, images and external documents are links too
        elsewhere = [target for _, target in links.values() if target.startswith(("http://", "https://"))]
        outlinks += [
            Outlink(target) for target in dict.fromkeys((*targets.values(), *elsewhere)) if target not in named
        ]
        for link in outlinks:
            document.add_link(link.url, link.anchor)
        for target in dict.fromkeys(target for kind, target in links.values() if kind == "aFChunk"):
            # an external part whose text belongs to this one (altChunk)
            path = target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"{folder}/{target}")
            self._embedded_parser.parse_into(
                document, "", package.read(path), _ALT_CHUNK_TYPES.get(path.lower().rpartition(".")[2])
            )


_ROOT_DIRS = {"docx": "word/", "pptx": "ppt/", "xlsx": "xl/"}


def _has_dir(package: ZipPackage, folder: str) -> bool:
    return any(name.replace("\\", "/").lower().startswith(folder) for name in package.names)


def _part_order(name: str) -> tuple[int, list[str | int]]:
    """Sort body before notes before headers, and slide10 after slide9."""
    rank = next((i for i, word in enumerate(("document", "slides/", "sheets/")) if word in name), 9)
    return rank, [parse_int(part) if part.isdecimal() else part for part in _NUMBER.split(name)]


def read_simple_values(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield (element, text) of a file whose elements contain only text."""
    text: list[str] = []
    for event in xml_events(content):
        if event.kind == "text":
            text.append(event.text)
            continue
        if event.kind == "end":
            yield event.name, "".join(text).strip()
        text.clear()


def read_master_texts(content: bytes) -> Iterator[str]:
    """Yield the texts of a master or layout that appear on slides; skips placeholders, which slides fill."""
    words: list[str] = []
    filled = inside = False
    for event in xml_events(content):
        if event.kind == "text":
            words += [event.text] if inside else []
        elif event.name == "t":
            inside = event.kind == "start"
        elif event.name == "sp":
            if event.kind == "end" and not filled:
                yield "".join(words)
            words, filled = [], False
        elif event.name == "ph":
            filled = True
        elif event.name == "p" and event.kind == "end":
            words.append("\n")


def read_part_text(
    content: bytes, targets: dict[str, str], outlinks: list[Outlink], lists: DocxLists | None = None
) -> Iterator[str]:
    """Yield the text of a document part; adds its links with anchors to ``outlinks``.

    Text is in ``t`` elements of any namespace (``v`` in charts). Fallbacks of newer drawings are skipped: they repeat
    it.
    """
    skipped = 0
    holder = ""
    link: list[str] | None = None  # target, then the words of the anchor
    linked = ""  # element that ends the link
    fields = _FieldTracker(outlinks)
    item = {"numId": "", "ilvl": "", "pStyle": ""}  # of the current paragraph: list, level and style
    for event in xml_events(content):
        kind, name = event.kind, event.name
        if skipped:
            skipped += (kind == "start") - (kind == "end")
        elif kind == "text":
            if holder == "instrText":
                fields.add_code(event.text)
            elif holder:
                if link is not None:
                    link.append(event.text)
                fields.add_text(event.text)
                yield event.text
        elif kind == "start":
            if name in _SKIPPED:
                skipped = 1
            elif name in ("t", "v", "text", "instrText"):
                holder = name
            elif name == "pPr":
                item = dict.fromkeys(item, "")
            elif name in item:
                item[name] = get_attribute(event, "val")
            elif name in ("hlinkClick", "hlinkHover", "hyperlink"):
                target = targets.get(get_attribute(event, "id"), "")
                if target and name == "hyperlink":
                    link, linked = [target], "hyperlink"
                elif target:
                    link, linked = [target], "r"
            elif name == "fldSimple":
                if target := find_field_target(get_attribute(event, "instr")):
                    link, linked = [target], name
            elif name == "fldChar":
                fields.handle_mark(get_attribute(event, "fldCharType"))
            elif target := event.attributes.get("href", ""):  # of a shape
                outlinks.append(Outlink(target))
        else:
            if name == holder:
                holder = ""
                if name in ("v", "text"):
                    yield "\n"
            elif name == "pPr" and lists is not None:
                if number := lists.paragraph_number(item["numId"], item["ilvl"], item["pStyle"]):
                    yield number + " "
            elif name in _BREAKS:
                yield _BREAKS[name]
            if link is not None and name == linked:
                outlinks.append(Outlink(link[0], "".join(link[1:])))
                link = None


class _FieldTracker:
    """Tracks nested open fields: their codes, and the texts of their results, which become link anchors."""

    def __init__(self, outlinks: list[Outlink]) -> None:
        self._outlinks = outlinks
        self._codes: list[list[str]] = []
        self._result_texts: list[list[str] | None] = []  # of each field; None before its code ends

    def handle_mark(self, kind: str) -> None:
        """Process a field mark: begin, separate or end."""
        if kind == "begin":
            self._codes.append([])
            self._result_texts.append(None)
        elif kind == "separate" and self._result_texts:
            self._result_texts[-1] = self._result_texts[-1] or []
        elif kind == "end" and self._result_texts:
            words = self._result_texts.pop() or []
            if target := find_field_target("".join(self._codes.pop())):
                self._outlinks.append(Outlink(target, join_anchor(words)))
            if self._result_texts and (outer := self._result_texts[-1]) is not None:
                outer.append(join_anchor(words))

    def add_code(self, text: str) -> None:
        """Add a part of a field code."""
        if self._codes:
            self._codes[-1].append(text)

    def add_text(self, text: str) -> None:
        """Add a part of a field result."""
        if self._result_texts and (words := self._result_texts[-1]) is not None:
            words.append(text)
