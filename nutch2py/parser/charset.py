"""The character encoding of a page: clues, the choice between them, and Java's names (Nutch's EncodingDetector).

Order of trust: a byte order mark (it outranks every label in the HTML standard, section 13.2.3); statistics, when
``encodingdetector.charset.min.confidence`` is 0 or more and they reach it; the charset of the Content-Type header; what
the page says of itself within its first 8 KiB; ``parser.character.encoding.default``.

The name stored is the one Nutch 2 stores. Decoding is kinder where a name is commonly written on pages of a larger
character set: pages called gb2312 are read as GB18030, shift_jis as Windows-31J, ascii as windows-1252 (the HTML
standard's labels), so no character is lost and none of the smaller set changes.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

from nutch2py.conf import Configuration

_CHUNK = 8192
_MIN_LENGTH = 4
_DETECTABLE = frozenset(
    {
        "text/html", "text/plain", "text/richtext", "text/rtf", "text/sgml", "text/tab-separated-values",
        "text/xml", "application/xml", "application/rss+xml", "application/xhtml+xml",
    }
)  # fmt: skip
# for text in lower case: only a pattern that minds the case is searched for by its first letters
_META = re.compile(rb"<meta\s++([^<>]*+)>")
_EQUIV = re.compile(rb"http-equiv=[\"']?content-type")
_META_CHARSET = re.compile(rb"charset=\s*[\"']?([a-z][_\-0-9a-z]*)")
_META_HTML5 = re.compile(rb"<meta\s+charset\s*=\s*[\"']?([a-z][_\-0-9a-z]*)[^<>]*+>")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"))

# Python's codec -> (name that Nutch stores: Java's own after EncodingDetector's aliases, codec to decode with)
_NAMES: dict[str, tuple[str, str]] = {
    "ascii": ("us-ascii", "cp1252"),
    "utf-8": ("utf-8", "utf-8"),
    "utf-16": ("utf-16", "utf-16"),
    "utf-16-le": ("utf-16le", "utf-16-le"),
    "utf-16-be": ("utf-16be", "utf-16-be"),
    "utf-32": ("utf-32", "utf-32"),
    "utf-32-le": ("utf-32le", "utf-32-le"),
    "utf-32-be": ("utf-32be", "utf-32-be"),
    "iso8859-1": ("windows-1252", "cp1252"),
    "iso8859-9": ("iso-8859-9", "cp1254"),
    "iso8859-11": ("x-iso-8859-11", "cp874"),
    "gb2312": ("gb2312", "gb18030"),
    "gbk": ("gb18030", "gb18030"),
    "gb18030": ("gb18030", "gb18030"),
    "big5": ("big5", "cp950"),
    "big5hkscs": ("big5-hkscs", "big5hkscs"),
    "cp950": ("x-windows-950", "cp950"),
    "shift_jis": ("shift_jis", "cp932"),
    "cp932": ("windows-31j", "cp932"),
    "euc_jp": ("euc-jp", "euc_jp"),
    "iso2022_jp": ("iso-2022-jp", "iso2022_jp"),
    "euc_kr": ("x-windows-949", "cp949"),
    "cp949": ("x-windows-949", "cp949"),
    "johab": ("x-johab", "johab"),
    "iso2022_kr": ("iso-2022-kr", "iso2022_kr"),
    "koi8-r": ("koi8-r", "koi8-r"),
    "koi8-u": ("koi8-u", "koi8-u"),
    "tis-620": ("tis-620", "cp874"),
    "cp874": ("x-ibm874", "cp874"),
    "mac-roman": ("x-macroman", "mac-roman"),
    "mac-cyrillic": ("x-maccyrillic", "mac-cyrillic"),
    "mac-greek": ("x-macgreek", "mac-greek"),
    **{f"iso8859-{n}": (f"iso-8859-{n}", f"iso8859-{n}") for n in (2, 3, 4, 5, 6, 7, 8, 13, 15, 16)},
    **{f"cp125{n}": (f"windows-125{n}", f"cp125{n}") for n in range(9)},
    **{f"cp{n}": (f"ibm{n}", f"cp{n}") for n in (437, 775, 850, 852, 855, 857, 862, 866, 869)},
}
# labels of Java that Python lacks, and labels seen on the web that neither knows
_LABELS = {
    "x-sjis": "shift_jis", "sjis": "shift_jis", "windows-31j": "cp932", "x-euc-jp": "euc_jp", "eucjp": "euc_jp",
    "x-windows-949": "cp949", "windows-949": "cp949", "ms949": "cp949", "ms_949": "cp949", "euc_cn": "gb2312",
    "euccn": "gb2312", "x-euc-cn": "gb2312", "euc-cn": "gb2312", "windows-936": "gbk", "x-gbk": "gbk",
    "x-big5": "big5", "x-windows-874": "cp874", "windows-874": "cp874", "x-macroman": "mac-roman",
    "unicode": "utf-16", "unicodebig": "utf-16", "x-utf-16le-bom": "utf-16", "x-windows-950": "cp950",
    "ms932": "cp932", "tis620": "tis-620", "x-iso-8859-11": "iso8859-11", "x-ibm874": "cp874", "x-johab": "johab",
}  # fmt: skip


@lru_cache(maxsize=1024)
def resolve_label(label: str | None) -> str | None:
    """Return the name that Nutch stores for a charset label (lower case), None when it is unknown.

    >>> resolve_label("GBK"), resolve_label("ISO-8859-1"), resolve_label("gb2312"), resolve_label("no-such")
    ('gb18030', 'windows-1252', 'gb2312', None)
    """
    codec = _codec_of(label)
    return None if codec is None else _NAMES[codec][0]


def _codec_of(label: str | None) -> str | None:
    if not label or not label.isascii() or "\0" in label:
        return None
    known = _LABELS.get(label.lower())
    if known is None:
        try:
            known = codecs.lookup(label).name
        except (LookupError, ValueError):
            return None
    return known if known in _NAMES else None  # rot13, base64, utf-7 …: not encodings a page may name


@lru_cache(maxsize=1024)
def _decoder(name: str) -> str:
    return _NAMES[_codec_of(name) or "cp1252"][1]


def decode(body: bytes, name: str) -> str:
    """Decode with the encoding that :class:`EncodingDetector` chose; a byte order mark is dropped.

    Bytes that are no character become U+FFFD. An encoding unknown here (a mistyped
    ``parser.character.encoding.default``) is read as windows-1252.
    """
    return body.decode(_decoder(name), "replace").removeprefix("\ufeff")


def header_charset(content_type: str | None) -> str | None:
    """Return the charset of a Content-Type header as it is written, None without one."""
    _, found, label = (content_type or "").partition("charset=")
    if not found:
        return None
    label = label.partition(";")[0].strip()
    if len(label) > 2 and label[0] == label[-1] == '"':
        label = label[1:-1].strip()
    return label


def byte_order_mark(body: bytes) -> str | None:
    """Return the encoding that the first bytes name, None without a mark."""
    return next((name for mark, name in _MARKS if body.startswith(mark)), None)


def sniff_label(body: bytes) -> str | None:
    """Return the charset, in lower case, that a page names in a meta element of its first 8 KiB; None without one.

    A page that could be read so far is not UTF-16, whatever it says: the HTML standard takes it for UTF-8.
    """
    head = body[:_CHUNK].lower()
    if b"charset" not in head:
        return None
    label = None
    equiv = next((tag[1] for tag in _META.finditer(head) if _EQUIV.search(tag[1])), None)
    if equiv:
        charset = _META_CHARSET.search(equiv)
        label = charset[1] if charset else None
    if label is None:
        html5 = _META_HTML5.search(head)
        label = html5[1] if html5 else None
    if label is None:
        return None
    text = label.decode("ascii")
    return "utf-8" if text.startswith("utf-16") else text


def guess_text(raw: bytes) -> str:
    """Return a text whose encoding nothing tells: UTF-8 when it can be, else by the statistics of its first 8 KiB."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        from chardetng_py import EncodingDetector as Detector

        detector = Detector()
        detector.feed(raw[:_CHUNK], last=len(raw) <= _CHUNK)
        return decode(raw, resolve_label(detector.guess(tld=None, allow_utf8=False)) or "windows-1252")


class EncodingDetector:
    """Chooses between clues. One instance serves many pages: :meth:`guess` is given all clues of a page at once."""

    def __init__(self, conf: Configuration) -> None:
        self.min_confidence = conf.get_int("encodingdetector.charset.min.confidence", -1)
        self.default = conf.get_trimmed("parser.character.encoding.default", "windows-1252")

    def detect(self, body: bytes, media_type: str | None) -> tuple[str, int] | None:
        """Return an encoding by statistics with its confidence (0 to 100), None when they are off or do not apply.

        100: the bytes are UTF-8 beyond ASCII; 80: frequent characters of a language; 10: a mere guess.
        """
        if self.min_confidence < 0 or media_type not in _DETECTABLE or len(body) <= _MIN_LENGTH:
            return None
        from chardetng_py import EncodingDetector as Detector

        head = body[:_CHUNK]
        detector = Detector()
        detector.feed(head, last=len(body) <= _CHUNK)
        label, sure = detector.guess_assess(tld=None, allow_utf8=True)
        name = resolve_label(label)
        if name is None:
            return None
        return name, 100 if name == "utf-8" and not head.isascii() else 80 if sure else 10

    def guess(
        self,
        body: bytes,
        media_type: str | None = None,
        header: str | None = None,
        clues: tuple[str | None, ...] = (),
    ) -> str:
        """Return the encoding's name. ``header``: the Content-Type header; ``clues``: labels in order of trust."""
        marked = byte_order_mark(body)
        if marked:
            return marked
        detected = self.detect(body, media_type)
        if detected and detected[1] >= self.min_confidence:
            return detected[0]
        for label in (header_charset(header), *clues):
            name = resolve_label(label)
            if name:
                return name
        return self.default.lower()
