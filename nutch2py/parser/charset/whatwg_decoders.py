"""Decoders of the WHATWG Encoding Standard, built on Python's codecs and the characters in which the two differ.

Python's tables of East Asian encodings are older or follow other vendors: in Big5 the currency signs differ, and Hong
Kong's newer characters are missing. After an error Python also continues at another byte than browsers do.
So a body is decoded by Python's codec where the result is provably that of the standard: it has no invalid sequence and
no sequence that differs. Any other body is decoded by the standard's algorithm with a corrected table, which takes
about ten times as long. Single-byte encodings have corrected tables only.

Source of all rules: https://encoding.spec.whatwg.org, sections 9 to 13, and its indexes of 2026-05.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache

_REPLACEMENT = "\ufffd"

# a pointer in the standard's index and the characters from there on, which Python's big5hkscs lacks or maps to others
_BIG5_DIFFERENCES = """
    1000 㡵𡵓𣚞𦀡㻬𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓墖靊鈘秐 1024 稲晠権袝瑌篅枂稬剏遆㓦珄𥶹瓆鿇垳䤯呌䄱𣚎堘穲𧭥讏
    1048 䚮𦺈䆁𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄𣖻䂴鿊䓡𪷿拁灮鿋 2082 箸 2088 簆 2103 糎 2114 緒 2123 縝 2148 者 2151 耨
    2221 菁 2239 蒨 2244 萏 2303 覦覩 2354 起 2400 都 2413 銹 2477 靜 2498 響 2605 鼖 2673 蔃 2746 兙兛兝兞
    2771 鍮 2780 瑹 2990 浧 3087 禛 3259 邗 3301 靝 3436 瀞 3451 嬨 4136 爁 4138 矗 4141 纇 4182 駖 4206 釔
    4220 惞 4230 澶 4241 輶 4258 侻 4273 營 4279 鄄 4282 鷰 4294 菏 4329 尐秣 4349 婧 4419 輋 4422 筑 4494 拐
    4624 恢 4694 痹 4708 汊 4742 鬮 4748 鼗 4815 僭 4828 弌 4902 蠏 4922 拎 4982 瑨 4992 煢 4997 牐 5029 ‧
    5038 ﹑ 5120 ¯ 5153 ～ 5168 ⊕⊙ 5182 ∕﹨ 5185 ￥ 5187 ￠￡ 5432 ␀␁␂␃␄␅␆␇␈␉␊␋␌␍␎␏␐␑␒␓␔␕␖␗ 5456 ␘␙␚␛␜␝␞␟␡€
    10942 廴 10946 无 10948 癶 10950 隶 10957 〃仝 19028 倩 19035 偽 19088 包 19096 卄 19112 卿 19162 嘅
    19240 婷 19299 幵 19305 廐 19326 彘 19355 悤 19398 撐 19439 晴 19454 杞 19553 沜渝 19557 港 19611 煮
    19643 猪 19672 瑜 19697 瓩 19748 砉
"""
# GB 18030-2022 in place of 2005
_GB18030_DIFFERENCES = """
    6555 \u3000 7182 ︐︒︑︓︔︕︖ 7201 ︗︘ 7208 ︙ 7533 ḿ 23775 龴 23783 龵 23788 龶龷 23795 龸 23812 龹
    23829 龺 23845 龻
"""
_GB18030_FOUR_BYTES = {b"\x81\x35\xf4\x37": "\ue7c7"}  # its former character has the pair a8bc now
_EURO = {"\x80": "€"}  # of Windows' code page 936
# Python follows JIS where the standard follows Windows
_EUC_JP_TO_WINDOWS = (("〜", "\uff5e"), ("‖", "∥"), ("−", "\uff0d"), ("¢", "\uffe0"), ("£", "\uffe1"), ("¬", "\uffe2"))
_EUC_JP_TILDE = b"\x8f\xa2\xb7"
_KATAKANA_BYTES = range(0xA1, 0xE0)


def _bytes_81_to_fe(pointer: int, trails: int, gap: int) -> bytes:
    """Return the two bytes of a pointer; ``trails`` per lead byte, of which those from 0x7F on are ``gap`` higher."""
    lead, trail = divmod(pointer, trails)
    return bytes((lead + 0x81, trail + 0x40 + (gap if trail >= 0x3F else 0)))


def _expand(differences: str, trails: int, gap: int) -> dict[bytes, str]:
    return {
        _bytes_81_to_fe(int(start) + place, trails, gap): character
        for start, characters in re.findall("([0-9]+) ([^ \n]+)", differences)
        for place, character in enumerate(characters)
    }


def _pairs_pattern(sequences: Iterable[bytes]) -> bytes:
    """Return a pattern of these sequences at any offset; a match across two characters only costs time."""
    trails: dict[bytes, bytes] = {}
    for sequence in sorted(sequences):
        trails[sequence[:-1]] = trails.get(sequence[:-1], b"") + sequence[-1:]
    return b"|".join(re.escape(head) + b"[" + re.escape(found) + b"]" for head, found in trails.items())


def _decode_or_none(raw: bytes, codec: str) -> str | None:
    try:
        return raw.decode(codec)
    except UnicodeDecodeError:
        return None


def _pair_table(codec: str, leads: Iterable[int], trails: range, differences: dict[bytes, str]) -> dict[str, str]:
    """Return the characters of all valid pairs of bytes, by the pair as Latin-1."""
    table = {}
    for lead in leads:
        for trail in trails:
            pair = bytes((lead, trail))
            if found := differences.get(pair) or _decode_or_none(pair, codec):
                table[pair.decode("latin-1")] = found
    return table


class _PairDecoder:
    """Decoder of an encoding whose characters have one or two bytes (Big5, EUC-KR)."""

    pattern = re.compile("[\x81-\xfe][\x00-\xff]?|[\x80\xff]")
    """Sequences beyond ASCII, read as Latin-1, valid or not."""

    def __init__(self, codec: str, differences: dict[bytes, str] | None = None) -> None:
        self.codec, self.differences = codec, differences or {}

    def decode(self, body: bytes) -> str:
        """Return the text; invalid bytes become U+FFFD."""
        text = self.decode_by_codec(body)
        return self.pattern.sub(self._text_of, body.decode("latin-1")) if text is None else text

    def decode_by_codec(self, body: bytes) -> str | None:
        """Return the text by Python's codec, None where the standard's may differ."""
        return None if self.differences and self._differing_pairs.search(body) else _decode_or_none(body, self.codec)

    @cached_property
    def _differing_pairs(self) -> re.Pattern[bytes]:
        return re.compile(_pairs_pattern(self.differences))

    @cached_property
    def table(self) -> dict[str, str]:
        """The characters of all valid sequences that are few enough, by the sequence as Latin-1."""
        return _pair_table(self.codec, range(0x81, 0xFF), range(0x40, 0xFF), self.differences)

    def unknown(self, sequence: str) -> str:
        """Return the text of a sequence that is not in the table: an ASCII byte at its end is read again."""
        return _REPLACEMENT + sequence[-1] if sequence[-1] < "\x80" else _REPLACEMENT

    def _text_of(self, match: re.Match[str]) -> str:
        known = self.table.get(match[0])
        return self.unknown(match[0]) if known is None else known


class _Gb18030Decoder(_PairDecoder):
    """Decoder of GB18030, which is also that of GBK and GB2312."""

    # an incomplete sequence of four bytes is one error at the end of the body; elsewhere only its first byte is
    pattern = re.compile("[\x81-\xfe](?:[0-9](?:[\x81-\xfe][0-9]|[\x81-\xfe]?\\Z)|(?![0-9])[\x00-\xff])?|[\x80\xff]")

    def __init__(self) -> None:
        super().__init__("gb18030", _expand(_GB18030_DIFFERENCES, 190, 1) | _GB18030_FOUR_BYTES)

    @cached_property
    def table(self) -> dict[str, str]:
        pairs = _pair_table(self.codec, range(0x81, 0xFF), range(0x40, 0xFF), self.differences)
        return pairs | {sequence.decode("latin-1"): found for sequence, found in _GB18030_FOUR_BYTES.items()} | _EURO

    def unknown(self, sequence: str) -> str:
        if len(sequence) == 4:
            return _decode_or_none(sequence.encode("latin-1"), self.codec) or _REPLACEMENT
        return _REPLACEMENT if sequence[1:2].isdigit() else super().unknown(sequence)


class _ShiftJisDecoder(_PairDecoder):
    """Decoder of Shift_JIS with Windows' extensions and private characters."""

    pattern = re.compile("[\x81-\x9f\xe0-\xfc][\x00-\xff]?|[\xa0-\xdf\xfd-\xff]")

    def decode_by_codec(self, body: bytes) -> str | None:
        text = _decode_or_none(body, self.codec)
        # what Python makes of the invalid bytes a0, fd, fe and ff
        return None if text is None or any(private in text for private in "\uf8f0\uf8f1\uf8f2\uf8f3") else text

    @cached_property
    def table(self) -> dict[str, str]:
        leads = (*range(0x81, 0xA0), *range(0xE0, 0xFD))
        table = _pair_table(self.codec, leads, range(0x40, 0xFD), {})
        return table | {chr(byte): chr(0xFF61 + byte - 0xA1) for byte in _KATAKANA_BYTES}


class _EucJpDecoder(_PairDecoder):
    """Decoder of EUC-JP with JIS X 0212 and the rows of Windows."""

    pattern = re.compile("\x8f(?:[\xa1-\xfe][\x00-\xff]?|[\x00-\xff])?|[\x8e\xa1-\xfe][\x00-\xff]?|[\x80-\xa0\xff]")

    def decode_by_codec(self, body: bytes) -> str | None:
        text = None if _EUC_JP_TILDE in body else _decode_or_none(body, self.codec)
        if text is not None:
            for jis, windows in _EUC_JP_TO_WINDOWS:
                text = text.replace(jis, windows)
        return text

    @cached_property
    def table(self) -> dict[str, str]:
        table = {"".join(chr(byte + 0x80) for byte in pair): found for pair, found in jis0208_characters().items()}
        for row in range(0xA1, 0xFF):
            for cell in range(0xA1, 0xFF):
                sequence = bytes((0x8F, row, cell))
                if found := _decode_or_none(sequence, self.codec):
                    table[sequence.decode("latin-1")] = found
        table[_EUC_JP_TILDE.decode("latin-1")] = "\uff5e"
        return table | {f"\x8e{chr(byte)}": chr(0xFF61 + byte - 0xA1) for byte in _KATAKANA_BYTES}


@lru_cache(1)
def jis0208_characters() -> dict[bytes, str]:
    """Return the characters of the standard's index jis0208, by the pair of row and cell (each 0x21 to 0x7E)."""
    table = {}
    for row in range(94):
        lead = row // 2 + (0x81 if row < 62 else 0xC1)
        for cell in range(94):
            trail = cell + (0x9F if row % 2 else 0x40 if cell < 63 else 0x41)
            found = _decode_or_none(bytes((lead, trail)), "cp932")
            if found and not "\ue000" <= found <= "\uf8ff":  # private characters are Shift_JIS's alone
                table[bytes((row + 0x21, cell + 0x21))] = found
    return table


_ISO_2022_JP_ESCAPES = {b"(B": "ascii", b"(J": "roman", b"(I": "katakana", b"$@": "jis0208", b"$B": "jis0208"}
_ESC = 0x1B


def _decode_iso_2022_jp(body: bytes) -> str:
    """Decode by the state machine of section 12.2.1.

    Invalid bytes, and an escape sequence right behind another one, become U+FFFD.
    """
    jis0208 = jis0208_characters()
    text: list[str] = []
    state, escaped, place = "ascii", False, 0  # escaped: nothing since the last escape sequence
    while place < len(body):
        byte = body[place]
        if byte == _ESC:
            following = _ISO_2022_JP_ESCAPES.get(body[place + 1 : place + 3])
            if following is None or escaped:
                text.append(_REPLACEMENT)
            escaped = following is not None
            state = following or state
            place += 1 if following is None else 3
            continue
        escaped = False
        place += 1
        if state != "jis0208":
            text.append(_decode_iso_2022_jp_byte(byte, state))
        elif not 0x21 <= byte <= 0x7E or body[place : place + 1] == b"\x1b":
            text.append(_REPLACEMENT)
        else:
            text.append(jis0208.get(body[place - 1 : place + 1], _REPLACEMENT))
            place += 1
    return "".join(text)


def _decode_iso_2022_jp_byte(byte: int, state: str) -> str:
    if state == "katakana":
        return chr(0xFF61 + byte - 0x21) if 0x21 <= byte <= 0x5F else _REPLACEMENT
    if byte > 0x7F or byte in (0x0E, 0x0F):
        return _REPLACEMENT
    return {0x5C: "¥", 0x7E: "‾"}.get(byte, chr(byte)) if state == "roman" else chr(byte)


class _SingleByteDecoder:
    """Decoder by a table of 256 characters. The bytes 80 to 9F that Windows leaves open are C1 controls."""

    def __init__(self, codec: str, differences: dict[int, str] | None = None) -> None:
        self.codec = codec
        table = list(bytes(range(256)).decode(codec, "replace"))
        for byte, character in enumerate(table):
            if character == _REPLACEMENT and 0x80 <= byte <= 0x9F:
                table[byte] = chr(byte)
        for byte, character in (differences or {}).items():
            table[byte] = character
        self.table = "".join("\ufffe" if character == _REPLACEMENT else character for character in table)

    def decode(self, body: bytes) -> str:
        """Return the text; bytes without a character become U+FFFD."""
        return codecs.charmap_decode(body, "replace", self.table)[0]


_SINGLE_BYTE_DIFFERENCES = {"koi8-u": {0xAE: "ў", 0xBE: "Ў"}, "cp1255": {0xCA: "\u05ba"}}


@lru_cache(64)
def decoder_of(codec: str) -> Callable[[bytes], str] | None:
    """Return the standard's decoder for the encodings that a Python codec stands for.

    Args:
        codec: A codec's name as in the second column of ``encoding_names._ENCODINGS``.

    Returns:
        A function from bytes to text that raises nothing, None if Python's codec is that of the standard.
    """
    if codec in _SINGLE_BYTE_DIFFERENCES or codec == "cp874" or re.fullmatch("cp125[0-8]", codec):
        return _SingleByteDecoder(codec, _SINGLE_BYTE_DIFFERENCES.get(codec)).decode
    if codec in ("cp950", "big5hkscs"):
        return _PairDecoder("big5hkscs", _expand(_BIG5_DIFFERENCES, 157, 34)).decode
    if codec == "cp949":
        return _PairDecoder("cp949").decode
    if codec == "gb18030":
        return _Gb18030Decoder().decode
    if codec == "cp932":
        return _ShiftJisDecoder(codec).decode
    if codec == "euc_jp":
        return _EucJpDecoder(codec).decode
    return _decode_iso_2022_jp if codec == "iso2022_jp_ext" else None
