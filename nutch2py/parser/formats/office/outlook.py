"""Outlook messages ([MS-OXMSG]): subject, addresses, body and attachments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nutch2py.parser.charset.encoding_detector import decode_unlabeled
from nutch2py.parser.charset.encoding_names import decode, resolve_label
from nutch2py.parser.formats.containers.compound_file import OleFile
from nutch2py.parser.formats.document_parser import ParsedDocument

_SUBJECT, _SENDER, _ADDRESS, _TO, _CC, _BODY, _HTML = "0037", "0C1A", "0C1F", "0E04", "0E03", "1000", "1013"
_INTERNET_CODE_PAGE, _MESSAGE_CODE_PAGE = 0x3FDE0003, 0x3FFD0003
_LOCALE = 0x3FF10003
_ENTRY_BYTES, _MAX_PROPERTIES = 16, 10_000
# Windows' numbers of other encodings than its own code pages
_CODE_PAGES = {
    65001: "utf-8", 20127: "us-ascii", 20866: "koi8-r", 21866: "koi8-u", 20932: "euc-jp", 51932: "euc-jp",
    50220: "iso-2022-jp", 50221: "iso-2022-jp", 50222: "iso-2022-jp", 50225: "iso-2022-kr", 51949: "euc-kr",
    936: "gbk", 51936: "gb2312", 52936: "hz-gb-2312", 54936: "gb18030", 10000: "macintosh", 10007: "x-mac-cyrillic",
    **{28590 + n: f"iso-8859-{n}" for n in (*range(1, 10), 13, 15)}, 38598: "iso-8859-8-i",
}  # fmt: skip
# Windows code pages by the lower ten bits of a locale ([MS-LCID]); 1252 for other languages
_LANGUAGE_CODE_PAGES = {
    **dict.fromkeys((0x05, 0x0E, 0x15, 0x18, 0x1A, 0x1B, 0x1C, 0x24), 1250),  # cs hu pl ro hr sk sq sl
    **dict.fromkeys((0x02, 0x19, 0x22, 0x23, 0x2F, 0x3F, 0x40, 0x44), 1251),  # bg ru uk be mk kk ky tt
    0x08: 1253, 0x1F: 1254, 0x2C: 1254, 0x0D: 1255, **dict.fromkeys((0x01, 0x20, 0x29), 1256),
    **dict.fromkeys((0x25, 0x26, 0x27), 1257), 0x2A: 1258, 0x1E: 874, 0x11: 932, 0x12: 949, 0x04: 936,
    **dict.fromkeys((0x0404, 0x0C04, 0x1404), 950),  # Chinese of Taiwan, Hong Kong and Macao
    **dict.fromkeys((0x0C1A, 0x1C1A, 0x201A), 1251),  # Serbian in Cyrillic letters
}  # fmt: skip
_FILE_NAME, _LONG_NAME, _DATA = "3704", "3707", "37010102"


class MessagePart(NamedTuple):
    """An attachment or a body. ``declared``: its Content-Type, None when it is unknown."""

    name: str
    content: bytes
    declared: str | None = None


def read_message(ole: OleFile, folder: list[str], document: ParsedDocument) -> Iterator[MessagePart]:
    """Add the texts of a message; yield its HTML body, when it has no other, and its attachments."""
    encoding = _encoding_of_property(ole, folder, _MESSAGE_CODE_PAGE) or _encoding_of_language(ole, folder)

    def text(name: str, location: list[str] = folder) -> str:
        return _read_text_property(ole, location, name, encoding)

    document.set_metadata("title", text(_SUBJECT))
    document.set_metadata("dc:creator", text(_SENDER))
    for name in (_SUBJECT, _SENDER, _ADDRESS, _TO, _CC):
        document.add_text(text(name))
    body = text(_BODY)
    document.add_text(body)
    html = ole.get_stream(folder, f"__substg1.0_{_HTML}0102")
    if html and not body.strip():
        of_html = _encoding_of_property(ole, folder, _INTERNET_CODE_PAGE)
        yield MessagePart("", html, f"text/html; charset={of_html}" if of_html else "text/html")
    for name in ole.storages(folder):
        if name.startswith("__attach"):
            location = [*folder, name]
            label = text(_LONG_NAME, location) or text(_FILE_NAME, location)
            yield MessagePart(label, ole.get_stream(location, f"__substg1.0_{_DATA}"))


def _read_text_property(ole: OleFile, folder: list[str], name: str, encoding: str | None) -> str:
    """Return a text property, stored as UTF-16 or in the encoding of the message, which is guessed when undeclared."""
    wide = ole.get_stream(folder, f"__substg1.0_{name}001F")
    if wide:
        return wide.decode("utf-16-le", "replace").rstrip("\0")
    raw = ole.get_stream(folder, f"__substg1.0_{name}001E")
    return (decode(raw, encoding) if encoding else decode_unlabeled(raw)).rstrip("\0") if raw else ""


def _encoding_of_language(ole: OleFile, folder: list[str]) -> str | None:
    """Return the Windows encoding for the language of a message, None when it is undeclared."""
    locale = _read_number_property(ole, folder, _LOCALE)
    if not locale:
        return None
    page = _LANGUAGE_CODE_PAGES.get(locale, _LANGUAGE_CODE_PAGES.get(locale & 0x3FF, 1252))
    return resolve_label(_CODE_PAGES.get(page) or f"cp{page}")


def _encoding_of_property(ole: OleFile, folder: list[str], wanted: int) -> str | None:
    """Return the encoding of a message's code page property."""
    page = _read_number_property(ole, folder, wanted)
    return None if page is None else resolve_label(_CODE_PAGES.get(page) or f"cp{page}")


def _read_number_property(ole: OleFile, folder: list[str], wanted: int) -> int | None:
    """Return a number property of a message ([MS-OXMSG] 2.4: entries of 16 bytes), None when it is missing."""
    stream = ole.get_stream(folder, "__properties_version1.0")
    start = 24 if len(stream) % _ENTRY_BYTES else 32  # the header of an embedded message is shorter
    for at in range(start, min(len(stream), _MAX_PROPERTIES * _ENTRY_BYTES), _ENTRY_BYTES):
        if stream[at : at + 4] == wanted.to_bytes(4, "little"):
            return int.from_bytes(stream[at + 8 : at + 12], "little")
    return None
