"""Encoders of the WHATWG Encoding Standard, for the queries of links on pages in legacy encodings.

They are not the inverse of the decoders: Big5 writes no lead byte below A1, EUC-JP nothing of JIS X 0212, and of two
sequences for one character the standard names which.

Source of all rules: https://encoding.spec.whatwg.org, sections 9 to 13.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache

from nutch2py.parser.charset.whatwg_decoders import decoder_of, jis0208_characters

Encoder = Callable[[str], bytes | None]
"""Returns the bytes of one character, None where the encoding lacks it."""

_BIG5_LAST = "═╞╡╪卅十"  # of several pointers the last one
_JIS_ALIASES = {"¥": b"\\", "‾": b"~"}
_MINUS, _WIDE_MINUS = "−", "\uff0d"
_ESCAPES = {"ascii": b"\x1b(B", "roman": b"\x1b(J", "jis0208": b"\x1b$B"}


def encode_text(text: str, codec: str, *, is_gbk: bool = False) -> bytes:
    """Return a text in an encoding; characters that it lacks become numeric references, as in forms and queries.

    Args:
        text: Any text.
        codec: A codec's name as for :func:`whatwg_decoders.decoder_of`.
        is_gbk: Whether GB18030 is limited to GBK.
    """
    if codec == "iso2022_jp_ext":
        return _encode_iso_2022_jp(text)
    encoder = _encoder_of(codec, is_gbk)
    return b"".join(found if (found := encoder(char)) is not None else _reference(char) for char in text)


def _reference(char: str) -> bytes:
    return b"&#%d;" % ord(char)


@lru_cache(64)
def _encoder_of(codec: str, is_gbk: bool) -> Encoder:
    if codec in ("cp950", "big5hkscs"):
        return _big5_table().get
    if codec == "euc_jp":
        return _euc_jp_table().get
    if codec == "gb18030":
        return _gbk_encoder if is_gbk else _gb18030_encoder
    if codec == "cp932":
        return _shift_jis_table().get
    decode = decoder_of(codec)
    single = {} if decode is None else {decode(bytes([byte])): bytes([byte]) for byte in range(0x80, 0x100)}
    single.pop("\ufffd", None)

    def encode(char: str) -> bytes | None:
        """Use Python's codec where it returns what the decoder reads, else a byte that the decoder reads so."""
        if char.isascii():
            return char.encode()
        found = _encode_or_none(char, codec)
        if decode is None or (found is not None and decode(found) == char):
            return found
        return single.get(char)

    return encode


def _encode_or_none(char: str, codec: str) -> bytes | None:
    try:
        return char.encode(codec)
    except UnicodeEncodeError:
        return None


def _ascii() -> dict[str, bytes]:
    return {chr(byte): bytes([byte]) for byte in range(0x80)}


def _pairs(codec: str, leads: range, trails: range) -> Mapping[str, list[bytes]]:
    """Return the pairs of each character that the decoder of a codec reads from one pair, in order."""
    decode, found = decoder_of(codec), dict[str, list[bytes]]()
    if decode is not None:
        for lead in leads:
            for trail in trails:
                pair = bytes((lead, trail))
                text = decode(pair)
                if len(text) == 1 and text != "\ufffd":
                    found.setdefault(text, []).append(pair)
    return found


@lru_cache(1)
def _big5_table() -> dict[str, bytes]:
    pairs = _pairs("big5hkscs", range(0xA1, 0xFF), range(0x40, 0xFF))
    return _ascii() | {char: found[-1 if char in _BIG5_LAST else 0] for char, found in pairs.items()}


@lru_cache(1)
def _gbk_table() -> dict[str, bytes]:
    return _ascii() | {
        char: found[0] for char, found in _pairs("gb18030", range(0x81, 0xFF), range(0x40, 0xFF)).items()
    }


def _gbk_encoder(char: str) -> bytes | None:
    if char == "€":
        return b"\x80"
    found = _gb18030_encoder(char)
    return found if found is not None and len(found) <= 2 else None


def _gb18030_encoder(char: str) -> bytes | None:
    if char == "\ue5e5":  # reads as U+3000
        return None
    return _gbk_table().get(char) or _encode_or_none(char, "gb18030")


@lru_cache(1)
def _jis0208_table() -> dict[str, bytes]:
    table: dict[str, bytes] = {}
    for pair, char in jis0208_characters().items():
        table.setdefault(char, pair)
    table[_MINUS] = table[_WIDE_MINUS]
    return table


@lru_cache(1)
def _euc_jp_table() -> dict[str, bytes]:
    katakana = {chr(0xFF61 + place): bytes((0x8E, 0xA1 + place)) for place in range(63)}
    pairs = {char: bytes(byte + 0x80 for byte in pair) for char, pair in _jis0208_table().items()}
    return pairs | katakana | _ascii() | _JIS_ALIASES


@lru_cache(1)
def _shift_jis_table() -> dict[str, bytes]:
    """Return the table without NEC's copies of IBM's characters; private characters are read, never written."""
    leads = (*range(0x81, 0xA0), *range(0xE0, 0xED), *range(0xF0, 0xFD))
    table: dict[str, bytes] = {}
    for lead in leads:
        for char, found in _pairs("cp932", range(lead, lead + 1), range(0x40, 0xFD)).items():
            if not "\ue000" <= char <= "\uf8ff":
                table.setdefault(char, found[0])
    katakana = {chr(0xFF61 + place): bytes([0xA1 + place]) for place in range(63)}
    return table | katakana | {_MINUS: table[_WIDE_MINUS], "\x80": b"\x80"} | _ascii() | _JIS_ALIASES


def _encode_iso_2022_jp(text: str) -> bytes:
    """Encode by the state machine of section 12.2.2, which ends in ASCII."""
    out, state = bytearray(), "ascii"

    def switch(wanted: str) -> None:
        nonlocal state
        if state != wanted:
            out.extend(_ESCAPES[wanted])
            state = wanted

    for char in text:
        plain = unicodedata.normalize("NFKC", char) if "\uff61" <= char <= "\uff9f" else char  # half-width katakana
        pair = _jis0208_table().get(_SOUND_MARKS.get(char, plain))
        if char in "\x0e\x0f\x1b":
            switch("ascii")
            out += _reference("\ufffd")
        elif char.isascii():
            if state == "jis0208" or char in "\\~":
                switch("ascii")
            out += char.encode()
        elif char in _JIS_ALIASES:
            switch("roman")
            out += _JIS_ALIASES[char]
        elif pair is not None:
            switch("jis0208")
            out += pair
        else:
            if state == "jis0208":
                switch("ascii")
            out += _reference(char)
    switch("ascii")
    return bytes(out)


_SOUND_MARKS = {"\uff9e": "\u309b", "\uff9f": "\u309c"}  # which NFKC makes combining characters
