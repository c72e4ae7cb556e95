"""Names of character encodings: labels of pages, the names that Nutch stores, and the codecs to decode with.

All labels of the WHATWG encoding standard are known, and those of Java and Python. The stored name is that of Nutch 2.
As the standard requires, some names decode as a superset: gb2312 as GB18030, shift_jis as Windows-31J, ascii as
windows-1252. So no character is lost, and those of the smaller set do not change. Tables and the treatment of errors
are those of the standard (:mod:`nutch2py.parser.charset.whatwg_decoders`).
"""

from __future__ import annotations

import codecs
import re
from urllib.parse import quote_from_bytes

from nutch2py.parser.charset.whatwg_decoders import decoder_of
from nutch2py.parser.charset.whatwg_encoders import encode_text
from nutch2py.support.bounded_cache import bounded_cache

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_LABEL_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:()+-]{0,63}")
# Python's codec -> (name that Nutch stores: Java's after EncodingDetector's aliases, codec that decodes and encodes)
_ENCODINGS: dict[str, tuple[str, str]] = {
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
    "hz": ("hz-gb-2312", "hz"),
    "big5": ("big5", "cp950"),
    "big5hkscs": ("big5-hkscs", "big5hkscs"),
    "cp950": ("x-windows-950", "cp950"),
    "shift_jis": ("shift_jis", "cp932"),
    "cp932": ("windows-31j", "cp932"),
    "euc_jp": ("euc-jp", "euc_jp"),
    "iso2022_jp": ("iso-2022-jp", "iso2022_jp_ext"),
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
    "replacement": ("replacement", "ascii"),  # browsers show nothing: escapes may hide markup from filters
    **{f"iso8859-{n}": (f"iso-8859-{n}", f"iso8859-{n}") for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"cp125{n}": (f"windows-125{n}", f"cp125{n}") for n in range(9)},
    **{f"cp{n}": (f"ibm{n}", f"cp{n}") for n in (437, 775, 850, 852, 855, 857, 862, 866, 869)},
}
_UTF8_OUTPUT = frozenset({"replacement", "iso-2022-kr", "hz-gb-2312"})  # which browsers never write
# labels unknown to Python: from the WHATWG standard, from Java, and others seen on the web
_EXTRA_LABELS = {
    label: codec
    for codec, labels in {
        "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
        "utf-16": "unicode unicodebig x-utf-16le-bom",
        "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicodefeff",
        "utf-16-be": "unicodefffe",
        "iso8859-1": "iso88591",
        "iso8859-2": "iso88592",
        "iso8859-3": "iso88593",
        "iso8859-4": "iso88594",
        "iso8859-5": "iso88595",
        "iso8859-6": "csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i iso88596",
        "iso8859-7": "iso88597 sun_eu_greek",
        "iso8859-8": "csiso88598e csiso88598i iso-8859-8-e iso-8859-8-i iso88598 logical visual",
        "iso8859-9": "iso88599",
        "iso8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
        "iso8859-11": "iso885911 x-iso-8859-11",
        "iso8859-13": "iso885913",
        "iso8859-14": "iso-8859-14 iso8859-14 iso885914",
        "iso8859-15": "csisolatin9 iso885915",
        "koi8-r": "koi koi8",
        "koi8-u": "koi8-ru",
        "mac-roman": "csmacintosh mac x-mac-roman x-macroman",
        "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian x-maccyrillic",
        "mac-greek": "x-macgreek",
        "cp874": "dos-874 windows-874 x-windows-874 x-ibm874",
        "tis-620": "tis620",
        **{f"cp125{n}": f"x-cp125{n}" for n in range(9) if n != 2},
        "cp1252": "x-cp1252 x-user-defined",
        "gb2312": "csgb2312 gb_2312 gb_2312-80 euc_cn euccn x-euc-cn euc-cn",
        "gbk": "windows-936 x-gbk",
        "hz": "hz-gb-2312",
        "big5": "cn-big5 x-x-big5 x-big5",
        "cp950": "x-windows-950",
        "euc_jp": "cseucpkdfmtjapanese x-euc-jp eucjp",
        "shift_jis": "x-sjis sjis",
        "cp932": "windows-31j ms932",
        "euc_kr": "cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 ksc_5601",
        "cp949": "x-windows-949 windows-949 ms949 ms_949",
        "johab": "x-johab",
        "replacement": "replacement iso-2022-cn iso-2022-cn-ext",
    }.items()
    for label in labels.split()
}


@bounded_cache(1024)
def resolve_label(label: str | None) -> str | None:
    """Return the name that Nutch stores for a charset label (lower case), None when it is unknown.

    >>> resolve_label("GBK"), resolve_label("ISO-8859-1"), resolve_label("gb2312"), resolve_label("no-such")
    ('gb18030', 'windows-1252', 'gb2312', None)
    """
    codec = _find_codec(label)
    return None if codec is None else _ENCODINGS[codec][0]


def _find_codec(label: str | None) -> str | None:
    label = (label or "").strip("\t\n\f\r ")
    if not _LABEL_PATTERN.fullmatch(label):
        return None  # Python itself would accept any punctuation as a hyphen
    known = _EXTRA_LABELS.get(label.lower())
    if known is None:
        try:
            known = codecs.lookup(label).name
        except (LookupError, ValueError):
            return None
    return known if known in _ENCODINGS else None  # rot13, base64, utf-7 …: not valid for pages


@bounded_cache(1024)
def _decoding_codec(name: str) -> str:
    return _ENCODINGS[_find_codec(name) or "cp1252"][1]


def decode(body: bytes, encoding: str) -> str:
    """Decode as browsers do with an encoding by its stored name; a byte order mark is dropped.

    Invalid bytes become U+FFFD. An unknown encoding (a mistyped ``parser.character.encoding.default``) is read as
    windows-1252.
    """
    codec = _decoding_codec(encoding)
    decoder = decoder_of(codec)
    text = body.decode(codec, "replace") if decoder is None else decoder(body)
    return text.removeprefix("\ufeff")


def escape_query(target: str, encoding: str) -> str:
    """Return a reference whose query is escaped in the page's encoding, as browsers do (URL standard).

    A server of GBK pages expects queries in GBK. Characters that the encoding lacks become numeric references; all
    other characters, and whole references in Unicode pages, stay unchanged.
    """
    if target.isascii() or encoding.startswith("utf-") or encoding in _UTF8_OUTPUT:
        return target
    path, mark, rest = target.partition("?")
    if not mark or "#" in path:
        return target
    query, sharp, fragment = rest.partition("#")
    codec, is_gbk = _decoding_codec(encoding), encoding == "gb2312"
    query = _BEYOND_ASCII.sub(lambda run: quote_from_bytes(encode_text(run[0], codec, is_gbk=is_gbk), safe=""), query)
    return f"{path}?{query}{sharp}{fragment}"
