"""RTF: text with its code pages, links, title and author."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from nutch2py.parser.formats.compound_file import codepage
from nutch2py.parser.formats.parsed_document import Document, DocumentParser, Unreadable, anchor_of
from nutch2py.parser.formats.word_fields import field_target
from nutch2py.webpage import WebPage

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])|[\r\n]+|([^\\{}\r\n]+)|(.)",
    re.DOTALL,
)
_CHARSETS = {
    0: 1252, 1: 1252, 2: 1252, 77: 10000, 78: 932, 79: 949, 80: 936, 81: 950, 128: 932, 129: 949, 130: 1361, 134: 936,
    136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250,
    254: 437, 255: 850,
}  # fmt: skip
_WORDS = {
    "par": "\n", "line": "\n", "sect": "\n", "page": "\n", "row": "\n", "column": "\n", "tab": "\t", "cell": "\t",
    "nestcell": "\t", "nestrow": "\n", "emdash": "\u2014", "endash": "\u2013", "bullet": "\u2022", "lquote": "\u2018",
    "rquote": "\u2019", "ldblquote": "\u201c", "rdblquote": "\u201d", "emspace": " ", "enspace": " ", "qmspace": " ",
}  # fmt: skip
_SKIPPED = frozenset(
    {
        "colortbl", "stylesheet", "listtable", "listoverridetable", "pict", "object", "themedata",
        "colorschememapping", "datastore", "latentstyles", "filetbl", "rsidtbl", "generator", "fontemb", "xmlnstbl",
        "mmathpr", "revtbl", "bkmkstart", "bkmkend", "fchars", "lchars", "levelnumbers", "leveltext", "listtext",
        "pntext", "atrfstart", "atrfend", "atnref", "atnid", "atndate", "private", "nonshppict", "userprops",
        "docvar", "do", "falt", "panose", "sp", "operator", "company",
    }
)  # fmt: skip
_INFO = {"title": "title", "author": "dc:creator", "subject": "dc:subject", "keywords": "meta:keyword",
    "doccomm": "dc:description"}  # fmt: skip
_ASIDE = frozenset(
    {"footnote", "annotation", "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"}
)
_STARRED = frozenset({"fldinst", "shppict", "shptxt", "annotation", "footnote", "shpinst"})
_MAX_DEPTH = 10_000


@dataclass(frozen=True)
class _State:
    """What a group inherits and its end undoes. ``target``: where text goes; "" is the body, "-" nowhere."""

    target: str = ""
    font: int = 0
    fallback: int = 1  # characters that stand behind a \\u for programs that do not know it


class RtfParser(DocumentParser):
    """Reads RTF without a tree; groups that are no text (pictures, tables of fonts and styles) are passed over."""

    content_types = "application/rtf|text/rtf"

    def read(self, content: bytes, document: Document, page: WebPage) -> None:
        """Read a file."""
        if b"{\\rtf" not in content[:1024]:
            raise Unreadable("no RTF")
        _Reader(document).read(content)


class _Reader:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._state = _State()
        self._stack: list[_State] = []
        self._encoding = "cp1252"
        self._fonts: dict[int, str] = {}
        self._bytes = bytearray()  # bytes of the body not decoded yet: a character may be two escapes
        self._skip = 0
        self._starred = self._opened = False
        self._into: dict[str, list[str]] = {"": []}
        self._links: list[tuple[str, int, int]] = []  # target, place in the text where its anchor begins, depth

    def read(self, content: bytes) -> None:
        position = 0
        while (match := _TOKEN.match(content, position)) is not None:
            position = match.end()
            word, number, escape, symbol, brace, text, _ = match.groups()
            opened, self._opened = self._opened, brace == b"{"
            if symbol == b"*":  # marks a group that may be passed over, and means nothing elsewhere
                self._starred = opened
                continue
            if word is not None:
                if word == b"bin" and number:
                    position += max(0, int(number))
                else:
                    self._word(word.decode().lower(), int(number) if number else None)
            elif escape is not None:
                self._character(bytes([int(escape, 16)]))
            elif brace is not None:
                self._brace(brace)
            elif symbol is not None:
                self._symbol(symbol)
            elif text is not None:
                skip, self._skip = self._skip, max(0, self._skip - len(text))
                self._put_bytes(text[skip:])
        self._flush()
        text = "".join(self._into[""])
        if not text.isascii():  # a character beyond U+FFFF comes as two halves
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self._document.add(text)
        for name, label in _INFO.items():
            self._document.describe(label, "".join(self._into.get(name, ())))

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._skip = 0
        self._starred = False
        if brace == b"{":
            if len(self._stack) >= _MAX_DEPTH:
                raise Unreadable("groups nested too deep")
            self._stack.append(self._state)
            return
        closed = self._state.target
        self._state = self._stack.pop() if self._stack else _State()
        if closed == "fldinst" and self._state.target != "fldinst":
            target = field_target("".join(self._into.pop("fldinst", ())))
            self._links += [(target, len(self._into[""]), len(self._stack))] if target else []
        while self._links and len(self._stack) < self._links[-1][2]:
            target, start, _ = self._links.pop()
            self._document.link(target, anchor_of(self._into[""], start))

    def _symbol(self, symbol: bytes) -> None:
        if symbol in b"\r\n":
            self._put("\n")
        elif symbol == b"~":
            self._put(" ")
        elif symbol == b"_":
            self._put("\u2011")
        elif symbol in b"\\{}":
            self._character(symbol)

    def _character(self, byte: bytes) -> None:
        if self._skip:
            self._skip -= 1
        else:
            self._put_bytes(byte)

    def _word(self, word: str, number: int | None) -> None:
        state = self._state
        starred, self._starred = self._starred, False
        if word in _WORDS:
            self._put(_WORDS[word])
        elif word == "u" and number is not None:
            self._flush()
            self._into.setdefault(state.target, []).append(chr(number & 0xFFFF))
            self._skip = state.fallback
        elif word == "uc":
            self._state = replace(state, fallback=max(0, number or 0))
        elif word in ("f", "deff"):
            self._flush()
            self._state = replace(state, font=number or 0)
        elif word == "fonttbl":
            self._state = replace(state, target="-")
        elif word == "fcharset":
            self._fonts[state.font] = codepage(_CHARSETS.get(number or 0, 1252)) if number else self._encoding
        elif word == "ansicpg":
            self._encoding = codepage(number)
        elif word in ("mac", "pc", "pca"):
            self._encoding = codepage({"mac": 10000, "pc": 437, "pca": 850}[word])
        elif word == "plain":
            self._flush()
        elif state.target != "-":
            self._destination(word, starred)

    def _destination(self, word: str, starred: bool) -> None:
        if word in _SKIPPED or (starred and word not in _STARRED):
            target = "-"
        elif word in _INFO or word == "fldinst":
            target = word
        elif word in _ASIDE:
            self._put("\n")
            return
        elif word == "info":
            target = "-info"
        else:
            return
        self._flush()
        self._state = replace(self._state, target=target)

    def _put(self, text: str) -> None:
        self._flush()
        if self._state.target != "-":
            self._into.setdefault(self._state.target, []).append(text)

    def _put_bytes(self, raw: bytes) -> None:
        if self._state.target != "-":
            self._bytes += raw

    def _flush(self) -> None:
        if self._bytes:
            encoding = self._fonts.get(self._state.font, self._encoding)
            self._into.setdefault(self._state.target, []).append(self._bytes.decode(encoding, "replace"))
            self._bytes.clear()
