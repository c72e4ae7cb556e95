"""What stands for characters in XML, so that a parser neither resolves what a page declares nor loses what it writes.

An entity that a document declares can stand for any amount of text, and libxml2 resolves those of the document itself
whatever it is told (lxml's ``resolve_entities``) when attributes or recovery are involved; after an ampersand that
stands for nothing it leaves out even ``&amp;``. So references are settled before: the five of XML and numbers stay, the
names of HTML become numbers, and any other ampersand is one.
"""

from __future__ import annotations

import codecs
import re
from html.entities import html5

_AMPERSAND = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|&(?:(#[0-9]{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)?",
    re.DOTALL,
)
_PREDEFINED = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})
_DECLARATION = re.compile(r"\ufeff?<\?xml\s[^<>]*>")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"), (b"<\0\0\0", "utf-32-le"), (b"\0\0\0<", "utf-32-be"), (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)  # fmt: skip
_HEAD = 200  # bytes in which an XML declaration stands


def settled(content: bytes) -> bytes:
    r"""Return an XML document in which every reference is one that any parser resolves to one character.

    >>> settled(b"<a b='&x;'>Tom & Jerry &amp; &eacute;<![CDATA[ & ]]></a>")
    b"<a b='&amp;x;'>Tom &amp; Jerry &amp; &#233;<![CDATA[ & ]]></a>"
    """
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    if encoding is None and b"iso-2022-" in content[:_HEAD].lower() and b"\x1b$" in content:
        encoding = "iso2022_jp_2"
    if encoding is not None:  # "&" is not the byte 0x26, or not always
        text = content.decode(encoding, "replace")
        declaration = _DECLARATION.match(text)
        content = text[declaration.end() if declaration else 0 :].encode("utf-8", "replace")
    return _AMPERSAND.sub(_reference, content) if b"&" in content else content


def _reference(found: re.Match[bytes]) -> bytes:
    whole, name = found[0], found[1]
    if not whole.startswith(b"&"):
        return whole
    if name is None:
        return b"&amp;"
    if name in _PREDEFINED:
        return whole
    if name.startswith(b"#"):
        code = int(b"0" + name[1:], 16) if name[1:2] == b"x" else int(name[1:])
        return whole if _is_character(code) else b"&#65533;"
    characters = html5.get(f"{name.decode('ascii')};")
    return b"&amp;" + whole[1:] if characters is None else b"".join(b"&#%d;" % ord(each) for each in characters)


def _is_character(code: int) -> bool:
    """Tell whether XML 1.0 allows a character (production 2)."""
    return code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
