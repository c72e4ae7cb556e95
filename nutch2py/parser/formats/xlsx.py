"""The sheets of a workbook since 2007: names, cells, headers and links."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from datetime import datetime, timedelta

from nutch2py.parser.formats.parsed_document import Document, whole_number
from nutch2py.parser.formats.zip_package import ZipPackage, attribute, relations, xml_events

DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
"""Numbers of the built-in formats of dates and times."""
_EPOCH = datetime(1899, 12, 30)


def read_sheets(package: ZipPackage, document: Document) -> None:
    """Read every sheet in the order of the workbook: its name, then a line a row with tabs between the cells."""
    strings = [*_shared_strings(package.read("xl/sharedStrings.xml"))]
    dates = _date_styles(package.read("xl/styles.xml"))
    links = relations(package.read("xl/_rels/workbook.xml.rels"))
    seen: set[str] = set()
    for event in xml_events(package.read("xl/workbook.xml")):
        if event.kind == "start" and event.name == "sheet":
            document.add(event.attributes.get("name", ""))
            target = links.get(attribute(event, "id"), ("", ""))[1]
            name = target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"xl/{target}")
            if name not in seen:
                seen.add(name)
                _read_sheet(package, name, strings, dates, document)


def _shared_strings(content: bytes) -> Iterator[str]:
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


def _date_styles(content: bytes) -> set[str]:
    """Return the numbers of the cell styles that show a date."""
    own: set[int] = set()
    styles: list[int] = []
    inside = False
    for event in xml_events(content):
        if event.name == "cellXfs":
            inside = event.kind == "start"
        elif event.kind == "start" and event.name == "numFmt":
            if is_date_format(event.attributes.get("formatCode", "")):
                own.add(whole_number(event.attributes.get("numFmtId", "0"), -1))
        elif event.kind == "start" and event.name == "xf" and inside:
            styles.append(whole_number(event.attributes.get("numFmtId", "0")))
    return {str(index) for index, number in enumerate(styles) if number in own or number in DATE_FORMATS}


def is_date_format(code: str) -> bool:
    """Tell whether a number format shows a date."""
    return any(letters in code.lower() for letters in ("yy", "dd", "mmm", "h:mm", "d/m", "m/d"))


def _read_sheet(package: ZipPackage, name: str, strings: list[str], dates: set[str], document: Document) -> None:
    folder, _, file = name.rpartition("/")
    targets = relations(package.read(f"{folder}/_rels/{file}.rels"))
    row: list[str] = []
    width = 0  # characters of the row
    kind = style = inside = ""
    parts: list[str] = []  # of a value
    for event in xml_events(package.read(name)):
        tag = event.name
        if event.kind == "text":
            if inside:
                parts.append(event.text)
        elif event.kind == "start":
            if tag == "c":
                kind, style = event.attributes.get("t", "n"), event.attributes.get("s", "")
                parts.clear()
            elif tag in ("v", "t", "oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter"):
                inside = tag
                if tag not in ("v", "t"):
                    parts.clear()
            elif tag == "hyperlink":
                target = targets.get(attribute(event, "id"), ("", ""))[1]
                document.link(target, event.attributes.get("display", ""))
        elif tag == inside:
            inside = ""
            if tag not in ("v", "t"):
                document.add("".join(parts))
        elif tag == "c":
            shown = _shown(kind, "".join(parts), style in dates, strings)
            width += len(shown) + 1
            if width < document.room:  # a string that many cells show may be long
                row.append(shown)
        elif tag == "row":
            document.add("\t".join(row).strip("\t"))
            row, width = [], 0


def _shown(kind: str, value: str, is_date: bool, strings: list[str]) -> str:
    if kind == "s":
        index = whole_number(value, len(strings))
        return strings[index] if index < len(strings) else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    return shown_number(value, is_date) if kind == "n" else value


def shown_number(value: str, is_date: bool) -> str:
    """Return a number as a reader would see it: a date as such, and without the noise of floating point.

    >>> shown_number("0.30000000000000004", False), shown_number("45000.5", True), shown_number("7.0", False)
    ('0.3', '2023-03-15 12:00', '7')
    """
    try:
        number = float(value)
        if is_date and 0 < number < 2_958_466:  # the last is the year 9999
            moment = _EPOCH + timedelta(days=number)
            return moment.strftime("%Y-%m-%d" if number == int(number) else "%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return value
    return f"{number:.15g}"
