"""Detects the character encoding of a page (Nutch's EncodingDetector).

Precedence as in the HTML standard (section 13.2.3.2): byte order mark; charset of the Content-Type header; declaration
in the page; then the bytes (``encodingdetector.charset.fallback``); last ``parser.character.encoding.default``. With
``encodingdetector.charset.min.confidence`` of 0 or more, statistics outrank header and page, as in Nutch.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.charset.encoding_names import decode, resolve_label
from nutch2py.parser.charset.mac_encodings import refine_guess
from nutch2py.parser.charset.prescan import sniff_label, xml_label
from nutch2py.records.webpage import MetadataKey, WebPage
from nutch2py.support.bounded_cache import bounded_cache

GUESSED_CHARSET_KEY = "charset.detected"
"""Metadata entry: the encoding, when it was guessed from the page's bytes."""

_DETECT_BYTES = 8192
_SAMPLE_BYTES = 16384
_MIN_DETECT_BYTES = 4
_DETECTABLE_TYPES = frozenset(
    {
        "text/html", "text/plain", "text/richtext", "text/rtf", "text/sgml", "text/tab-separated-values",
        "text/xml", "application/xml", "application/rss+xml", "application/xhtml+xml",
    }
)  # fmt: skip
# a parameter, or a quoted string that may contain text like one
_HEADER_PARAMETER = re.compile(
    r"(?<![^;,\s])([^;,\s=\"]++)=(?:\"([^\"]*+)(?:\"|\Z)|[ \t]*+([^\s;,\"]*+))(?![^\s;,])|\"[^\"]*+\"?"
)
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32le"), (codecs.BOM_UTF32_BE, "utf-32be"),
    (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"),
)  # fmt: skip
_BOM_FIRST_BYTES = bytes(mark[0] for mark, _ in _BYTE_ORDER_MARKS)
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_TOP_LEVEL_DOMAIN = re.compile(
    r"https?://[a-z0-9.-]*?\.((?:xn--[a-z0-9-]{1,59}|[a-z]{2,63}))\.?(?=[:/?#]|$)", re.IGNORECASE
)
_MIN_VALID_PER_INVALID = 50  # valid characters per invalid byte, for text to count as UTF-8 with errors


class DetectedEncoding(NamedTuple):
    """An encoding by its stored name, and its source: ``mark``, ``label``, ``bytes`` or ``default``."""

    name: str
    source: str


@bounded_cache(1024)
def header_charset(content_type: str | None) -> str | None:
    """Return the charset of a Content-Type header as written, or None.

    >>> header_charset('text/html; Charset="gbk"; q=1'), header_charset("text/html; x='charset=a'")
    ('gbk', None)
    """
    for name, quoted, bare in _HEADER_PARAMETER.findall(content_type or ""):
        if name.lower() == "charset" and (quoted or bare):
            return str(quoted or bare)
    return None


def byte_order_mark(body: bytes) -> str | None:
    """Return the encoding of a byte order mark, or None."""
    if body[:1] not in _BOM_FIRST_BYTES:
        return None
    return next((name for mark, name in _BYTE_ORDER_MARKS if body.startswith(mark)), None)


def decode_unlabeled(raw: bytes) -> str:
    """Return a text without a declared encoding, decoded by a guess."""
    return decode(raw, byte_order_mark(raw) or guess_encoding(raw) or "windows-1252")


def guess_encoding(body: bytes, url: str | None = None) -> str | None:
    """Return the encoding guessed from bytes, None for ASCII.

    UTF-8 if valid except for few damaged bytes; UTF-16 and UTF-32 by their zero bytes; else the result of Firefox's
    detector for 16 KiB from the first non-ASCII byte on, or an encoding that it does not know. The domain of ``url``
    is a hint.
    """
    if b"\0" in body[:_DETECT_BYTES] and (wide := _guess_utf16_or_utf32(body[:_DETECT_BYTES])):
        return wide
    if body.isascii():
        return _guess_iso_2022(body) if b"\x1b$" in body else None
    if _is_utf8(body):
        return "utf-8"
    first = _BEYOND_ASCII.search(body)
    return _guess_by_statistics(body, first.start() if first else 0, url)


def _guess_iso_2022(body: bytes) -> str | None:
    if b"\x1b$)C" in body:
        return "iso-2022-kr"
    label = _guess_by_statistics(body, body.find(b"\x1b$"), None)
    return label if label == "iso-2022-jp" else None


def _guess_by_statistics(body: bytes, start: int, url: str | None) -> str | None:
    from chardetng_py import EncodingDetector as Detector

    detector, sample = Detector(), body[start : start + _SAMPLE_BYTES]
    detector.feed(sample, last=start + _SAMPLE_BYTES >= len(body))
    name = resolve_label(detector.guess(tld=_top_level_domain(url), allow_utf8=False))
    return name and refine_guess(name, sample)


def _is_utf8(body: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(body)  # tolerates a truncated last character
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
        wrong = text.count("\ufffd")
        right = len(text) - len(text.encode("ascii", "ignore")) - wrong
        return right > _MIN_VALID_PER_INVALID * wrong
    return not text.isascii()


def _guess_utf16_or_utf32(head: bytes) -> str | None:
    """Return UTF-16 or UTF-32 by the positions of zero bytes, None for other encodings."""
    zeros = [head[place::4].count(0) for place in range(4)]
    many = max(len(head) // 10, 1)
    found = "".join("0" if count >= many else "x" for count in zeros)
    return {"x000": "utf-32le", "000x": "utf-32be", "x0x0": "utf-16le", "0x0x": "utf-16be"}.get(found)


def _top_level_domain(url: str | None) -> bytes | None:
    found = _TOP_LEVEL_DOMAIN.match(url or "")
    return found[1].lower().encode() if found else None


class EncodingDetector:
    """Chooses the encoding of a page. One instance serves any number of pages."""

    def __init__(self, conf: Configuration) -> None:
        self.min_confidence = conf.get_int("encodingdetector.charset.min.confidence", -1)
        self.fallback = conf.get_bool("encodingdetector.charset.fallback", True)
        self.default = conf.get_trimmed("parser.character.encoding.default", "windows-1252")

    def detect(self, body: bytes, media_type: str | None) -> tuple[str, int] | None:
        """Return an encoding by statistics and its confidence (0 to 100), None when disabled or not applicable.

        Confidence 100: UTF-8 with non-ASCII characters; 80: frequent characters of a language; 10: a guess.
        """
        if self.min_confidence < 0 or media_type not in _DETECTABLE_TYPES or len(body) <= _MIN_DETECT_BYTES:
            return None
        from chardetng_py import EncodingDetector as Detector

        head = body[:_DETECT_BYTES]
        detector = Detector()
        detector.feed(head, last=len(body) <= _DETECT_BYTES)
        label, sure = detector.guess_assess(tld=None, allow_utf8=True)
        name = resolve_label(label)
        if name is None:
            return None
        return name, 100 if name == "utf-8" and not head.isascii() else 80 if sure else 10

    def choose(
        self, body: bytes, media_type: str | None = None, content_type_header: str | None = None, url: str | None = None
    ) -> DetectedEncoding:
        """Return the encoding of a page. ``content_type_header``: its Content-Type header; ``url``: its URL."""
        marked = byte_order_mark(body)
        if marked:
            return DetectedEncoding(marked, "mark")
        detected = self.detect(body, media_type)
        if detected and detected[1] >= self.min_confidence:
            return DetectedEncoding(detected[0], "bytes")
        named = resolve_label(header_charset(content_type_header)) or resolve_label(_declared_label(body, media_type))
        if named:
            # without a mark UTF-16 and UTF-32 have no byte order: detect it by the zeros
            wide = _guess_utf16_or_utf32(body[:_DETECT_BYTES]) if named in ("utf-16", "utf-32") else None
            return DetectedEncoding(wide if wide and wide.startswith(named) else named, "label")
        look = guess_encoding(body, url) if self.fallback else None
        return DetectedEncoding(look, "bytes") if look else DetectedEncoding(self.default.lower(), "default")


def _declared_label(body: bytes, media_type: str | None) -> str | None:
    """Return the label that a page declares; plain text has none, and XHTML's XML declaration comes first."""
    if media_type not in (None, "text/html", "application/xhtml+xml"):
        return None
    if media_type == "application/xhtml+xml" and (label := xml_label(body, resolve_label)):
        return label
    return sniff_label(body, resolve_label)


def store_encoding(page: WebPage, encoding: DetectedEncoding) -> None:
    """Store the encoding in a row's metadata, as Nutch does, and whether it was guessed from the bytes."""
    metadata, name = page.metadata, encoding.name.encode()
    metadata[MetadataKey.ORIGINAL_CHARSET] = metadata[MetadataKey.CHARSET] = name
    if encoding.source == "bytes":
        metadata[GUESSED_CHARSET_KEY] = name
    else:
        metadata.pop(GUESSED_CHARSET_KEY, None)
