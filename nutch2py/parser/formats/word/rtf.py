"""RTF: extracts text by its code pages, links, title and author."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from nutch2py.parser.formats.containers.compound_file import codepage_codec
from nutch2py.parser.formats.document_parser import DocumentParser, ParsedDocument, UnreadableDocumentError, join_anchor
from nutch2py.parser.formats.word.field_codes import find_field_target
from nutch2py.records.webpage import WebPage

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])|[\r\n]+|([^\\{}\r\n]+)|(.)",
    re.DOTALL,
)
_CHARSETS = {
    0: 1252, 1: 1252, 2: 1252, 77: 10000, 78: 932, 79: 949, 80: 936, 81: 950, 128: 932, 129: 949, 130: 1361, 134: 936,
    136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250,
    254: 437, 255: 850,
}  # fmt: skip
_CONTROL_WORD_TEXTS = {
    "par": "\n", "line": "\n", "sect": "\n", "page": "\n", "row": "\n", "column": "\n", "tab": "\t", "cell": "\t",
    "nestcell": "\t", "nestrow": "\n", "emdash": "\u2014", "endash": "\u2013", "bullet": "\u2022", "lquote": "\u2018",
    "rquote": "\u2019", "ldblquote": "\u201c", "rdblquote": "\u201d", "emspace": " ", "enspace": " ", "qmspace": " ",
}  # fmt: skip
_SKIPPED_DESTINATIONS = frozenset(
    {
        "colortbl", "stylesheet", "listtable", "listoverridetable", "pict", "object", "themedata",
        "colorschememapping", "datastore", "latentstyles", "filetbl", "rsidtbl", "generator", "fontemb", "xmlnstbl",
        "mmathpr", "revtbl", "bkmkstart", "bkmkend", "fchars", "lchars", "levelnumbers", "leveltext", "listtext",
        "pntext", "atrfstart", "atrfend", "atnref", "atnid", "atndate", "private", "nonshppict", "userprops",
        "docvar", "do", "falt", "panose", "sp", "operator", "company",
    }
)  # fmt: skip
_INFO_DESTINATIONS = {"title": "title", "author": "dc:creator", "subject": "dc:subject", "keywords": "meta:keyword",
    "doccomm": "dc:description"}  # fmt: skip
_ASIDE_DESTINATIONS = frozenset(
    {"footnote", "annotation", "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"}
)
_READ_STARRED_DESTINATIONS = frozenset({"fldinst", "shppict", "shptxt", "annotation", "footnote", "shpinst"})
_MAX_DEPTH = 10_000


@dataclass(frozen=True)
class _GroupState:
    """State that a group inherits and that its end restores. ``destination``: "" is the body, "-" drops text."""

    destination: str = ""
    font: int = 0
    fallback_chars: int = 1  # characters after a \\u for programs without Unicode support


class RtfParser(DocumentParser):
    """Reads RTF without a tree; skips groups without text (pictures, font and style tables)."""

    content_types = "application/rtf|text/rtf"

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read a file."""
        if b"{\\rtf" not in content[:1024]:
            raise UnreadableDocumentError("not RTF")
        _RtfReader(document).read(content)


class _RtfReader:
    def __init__(self, document: ParsedDocument) -> None:
        self._document = document
        self._state = _GroupState()
        self._stack: list[_GroupState] = []
        self._encoding = "cp1252"
        self._fonts: dict[int, str] = {}
        self._bytes = bytearray()  # undecoded bytes of the body: a character may be two escapes
        self._skip_chars = 0
        self._is_starred = self._is_group_start = False
        self._texts: dict[str, list[str]] = {"": []}
        self._links: list[tuple[str, int, int]] = []  # target, index in the text of its anchor's start, depth

    def read(self, content: bytes) -> None:
        position = 0
        while (match := _TOKEN.match(content, position)) is not None:
            position = match.end()
            word, number, escape, symbol, brace, text, _ = match.groups()
            opened, self._is_group_start = self._is_group_start, brace == b"{"
            if symbol == b"*":  # marks a group that may be skipped; has no meaning elsewhere
                self._is_starred = opened
                continue
            if word is not None:
                if word == b"bin" and number:
                    position += max(0, int(number))
                else:
                    self._handle_control_word(word.decode().lower(), int(number) if number else None)
            elif escape is not None:
                self._handle_character(bytes([int(escape, 16)]))
            elif brace is not None:
                self._handle_brace(brace)
            elif symbol is not None:
                self._handle_symbol(symbol)
            elif text is not None:
                skip, self._skip_chars = self._skip_chars, max(0, self._skip_chars - len(text))
                self._append_bytes(text[skip:])
        self._flush()
        text = "".join(self._texts[""])
        if not text.isascii():  # a character beyond U+FFFF is two surrogates
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self._document.add_text(text)
        for name, label in _INFO_DESTINATIONS.items():
            self._document.set_metadata(label, "".join(self._texts.get(name, ())))

    def _handle_brace(self, brace: bytes) -> None:
        self._flush()
        self._skip_chars = 0
        self._is_starred = False
        if brace == b"{":
            if len(self._stack) >= _MAX_DEPTH:
                raise UnreadableDocumentError("groups nested too deep")
            self._stack.append(self._state)
            return
        closed = self._state.destination
        self._state = self._stack.pop() if self._stack else _GroupState()
        if closed == "fldinst" and self._state.destination != "fldinst":
            target = find_field_target("".join(self._texts.pop("fldinst", ())))
            self._links += [(target, len(self._texts[""]), len(self._stack))] if target else []
        while self._links and len(self._stack) < self._links[-1][2]:
            target, start, _ = self._links.pop()
            self._document.add_link(target, join_anchor(self._texts[""], start))

    def _handle_symbol(self, symbol: bytes) -> None:
        if symbol in b"\r\n":
            self._append("\n")
        elif symbol == b"~":
            self._append(" ")
        elif symbol == b"_":
            self._append("\u2011")
        elif symbol in b"\\{}":
            self._handle_character(symbol)

    def _handle_character(self, byte: bytes) -> None:
        if self._skip_chars:
            self._skip_chars -= 1
        else:
            self._append_bytes(byte)

    def _handle_control_word(self, word: str, number: int | None) -> None:
        state = self._state
        starred, self._is_starred = self._is_starred, False
        if word in _CONTROL_WORD_TEXTS:
            self._append(_CONTROL_WORD_TEXTS[word])
        elif word == "u" and number is not None:
            self._flush()
            self._texts.setdefault(state.destination, []).append(chr(number & 0xFFFF))
            self._skip_chars = state.fallback_chars
        elif word == "uc":
            self._state = replace(state, fallback_chars=max(0, number or 0))
        elif word in ("f", "deff"):
            self._flush()
            self._state = replace(state, font=number or 0)
        elif word == "fonttbl":
            self._state = replace(state, destination="-")
        elif word == "fcharset":
            self._fonts[state.font] = codepage_codec(_CHARSETS.get(number or 0, 1252)) if number else self._encoding
        elif word == "ansicpg":
            self._encoding = codepage_codec(number)
        elif word in ("mac", "pc", "pca"):
            self._encoding = codepage_codec({"mac": 10000, "pc": 437, "pca": 850}[word])
        elif word == "plain":
            self._flush()
        elif state.destination != "-":
            self._handle_destination(word, starred)

    def _handle_destination(self, word: str, starred: bool) -> None:
        if word in _SKIPPED_DESTINATIONS or (starred and word not in _READ_STARRED_DESTINATIONS):
            target = "-"
        elif word in _INFO_DESTINATIONS or word == "fldinst":
            target = word
        elif word in _ASIDE_DESTINATIONS:
            self._append("\n")
            return
        elif word == "info":
            target = "-info"
        else:
            return
        self._flush()
        self._state = replace(self._state, destination=target)

    def _append(self, text: str) -> None:
        self._flush()
        if self._state.destination != "-":
            self._texts.setdefault(self._state.destination, []).append(text)

    def _append_bytes(self, raw: bytes) -> None:
        if self._state.destination != "-":
            self._bytes += raw

    def _flush(self) -> None:
        if self._bytes:
            encoding = self._fonts.get(self._state.font, self._encoding)
            self._texts.setdefault(self._state.destination, []).append(self._bytes.decode(encoding, "replace"))
            self._bytes.clear()
