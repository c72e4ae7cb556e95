"""Reads the sheets of an xlsx workbook: names, cells, headers and links."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from nutch2py.parser.formats.containers.zip_package import ZipPackage, get_attribute, read_relationships, xml_events
from nutch2py.parser.formats.document_parser import ParsedDocument, parse_int
from nutch2py.parser.formats.excel.number_format import find_format_code, format_cell


def read_sheets(package: ZipPackage, document: ParsedDocument) -> None:
    """Read every sheet in workbook order: its name, then a line per row with tabs between the cells."""
    strings = [*_read_shared_strings(package.read("xl/sharedStrings.xml"))]
    codes = _read_style_codes(package.read("xl/styles.xml"))
    links = read_relationships(package.read("xl/_rels/workbook.xml.rels"))
    seen: set[str] = set()
    for event in xml_events(package.read("xl/workbook.xml")):
        if event.kind == "start" and event.name == "sheet":
            document.add_text(event.attributes.get("name", ""))
            target = links.get(get_attribute(event, "id"), ("", ""))[1]
            name = target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"xl/{target}")
            if name not in seen:
                seen.add(name)
                _read_sheet(package, name, strings, codes, document)


def _read_shared_strings(content: bytes) -> Iterator[str]:
    parts: list[str] = []
    inside, phonetic = False, 0
    for event in xml_events(content):
        if event.kind == "text":
            if inside and not phonetic:
                parts.append(event.text)
        elif event.name == "t":
            inside = event.kind == "start"
        elif event.name == "rPh":
            phonetic += 1 if event.kind == "start" else -1
        elif event.name == "si" and event.kind == "end":
            yield "".join(parts)
            parts = []


def _read_style_codes(content: bytes) -> list[str]:
    """Return the number format of each cell style."""
    own: dict[int, str] = {}
    styles: list[int] = []
    inside = False
    for event in xml_events(content):
        if event.name == "cellXfs":
            inside = event.kind == "start"
        elif event.kind == "start" and event.name == "numFmt":
            own[parse_int(event.attributes.get("numFmtId", "0"), -1)] = event.attributes.get("formatCode", "")
        elif event.kind == "start" and event.name == "xf" and inside:
            styles.append(parse_int(event.attributes.get("numFmtId", "0")))
    return [find_format_code(number, own) for number in styles]


def _read_sheet(package: ZipPackage, name: str, strings: list[str], codes: list[str], document: ParsedDocument) -> None:
    folder, _, file = name.rpartition("/")
    targets = read_relationships(package.read(f"{folder}/_rels/{file}.rels"))
    row: list[str] = []
    width = 0  # characters of the current row
    kind = inside = ""
    style = 0
    parts: list[str] = []  # of a value
    for event in xml_events(package.read(name)):
        tag = event.name
        if event.kind == "text":
            if inside:
                parts.append(event.text)
        elif event.kind == "start":
            if tag == "c":
                kind, style = event.attributes.get("t", "n"), parse_int(event.attributes.get("s", ""))
                parts.clear()
            elif tag in ("v", "t", "oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter"):
                inside = tag
                if tag not in ("v", "t"):
                    parts.clear()
            elif tag == "hyperlink":
                target = targets.get(get_attribute(event, "id"), ("", ""))[1]
                document.add_link(target, event.attributes.get("display", ""))
        elif tag == inside:
            inside = ""
            if tag not in ("v", "t"):
                document.add_text("".join(parts))
        elif tag == "c":
            text = _cell_text(kind, "".join(parts), codes[style] if style < len(codes) else "General", strings)
            width += len(text) + 1
            if width < document.remaining_chars:  # many cells may share a long string
                row.append(text)
        elif tag == "row":
            document.add_text("\t".join(row).strip("\t"))
            row, width = [], 0


def _cell_text(kind: str, value: str, code: str, strings: list[str]) -> str:
    if kind == "s":
        index = parse_int(value, len(strings))
        return strings[index] if index < len(strings) else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    return format_cell(value, code) if kind == "n" else value
