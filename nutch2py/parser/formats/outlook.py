"""Outlook messages ([MS-OXMSG]): subject, people, body and attachments."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.parser.formats.compound_file import OleFile
from nutch2py.parser.formats.parsed_document import Document

_SUBJECT, _SENDER, _ADDRESS, _TO, _COPY, _BODY, _HTML = "0037", "0C1A", "0C1F", "0E04", "0E03", "1000", "1013"
_FILE_NAME, _LONG_NAME, _DATA = "3704", "3707", "37010102"


def read_message(ole: OleFile, folder: list[str], document: Document) -> Iterator[tuple[str, bytes]]:
    """Add what a message says; yield name and content of its attachments, its HTML body, if it has no other, first."""
    document.describe("title", _property(ole, folder, _SUBJECT))
    document.describe("dc:creator", _property(ole, folder, _SENDER))
    for name in (_SUBJECT, _SENDER, _ADDRESS, _TO, _COPY):
        document.add(_property(ole, folder, name))
    body = _property(ole, folder, _BODY)
    document.add(body)
    html = ole.get(folder, f"__substg1.0_{_HTML}0102")
    if html and not body.strip():
        yield "", html
    attachments = sorted({path[len(folder)] for path in ole.paths if len(path) == len(folder) + 2})
    for name in attachments:
        if name.startswith("__attach"):
            place = [*folder, name]
            label = _property(ole, place, _LONG_NAME) or _property(ole, place, _FILE_NAME)
            yield label, ole.get(place, f"__substg1.0_{_DATA}")


def _property(ole: OleFile, folder: list[str], name: str) -> str:
    """Return a text property, stored as UTF-16 or in an encoding that the message does not tell."""
    wide = ole.get(folder, f"__substg1.0_{name}001F")
    if wide:
        return wide.decode("utf-16-le", "replace").rstrip("\0")
    raw = ole.get(folder, f"__substg1.0_{name}001E")
    if not raw:
        return ""
    from nutch2py.parser.charset import guess_text

    return guess_text(raw).rstrip("\0")
