"""Sanitize XML before libxml2 parses it: encoding, entity references, document type, namespace names.

A declared entity can expand to any amount of text. libxml2 resolves the internal ones despite lxml's
``resolve_entities`` when attributes or recovery are involved; after an undefined reference it even drops ``&amp;``.
So references are resolved first: XML's five entities and numbers stay, HTML names become numbers, and any other
ampersand is escaped.

The document type is removed: it is of no use but can carry entities and default attributes for any number of elements.
Namespace names are cut to 1,000 characters: lxml writes them before the name of each element.
"""

from __future__ import annotations

import codecs
import re
from html.entities import html5

from nutch2py.parser.charset.encoding_detector import byte_order_mark, guess_encoding, header_charset
from nutch2py.parser.charset.encoding_names import decode, resolve_label
from nutch2py.parser.charset.prescan import xml_label

_AMPERSAND = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)"
    rb"|&(?:(#[0-9]{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)?",
    re.DOTALL,
)
_PREDEFINED = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})
_PROLOG = re.compile(rb"\s+|<\?(?:.*?\?>|.*\Z)|<!--(?:.*?-->|.*\Z)|(<!DOCTYPE)", re.DOTALL)
# parts of a document type that may contain a bracket without meaning
_DOCTYPE_TOKEN = re.compile(
    rb"[^\"'<\[\]>]++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|<!--(?:.*?-->|.*\Z)|<\?(?:.*?\?>|.*\Z)|[<\[\]>]", re.DOTALL
)
_LONG_NAMESPACE = re.compile(
    rb"(\sxmlns(?::[^\s=<>\"'/]*+)?+\s*+=\s*+)(?:\"([^\"]{1000})[^\"]*+\"|'([^']{1000})[^']*+')"
)
_DECLARATION = re.compile(rb"<\?xml\s[^<>]*>")
_CONTROL = bytes({*range(0x20)} - {9, 10, 13})  # characters that XML forbids; libxml2 stops at one
_SPACE = b" \t\r\n"
_DECLARATION_BYTES = 1024  # bytes that contain the XML declaration


def sanitize_xml(content: bytes, content_type_header: str | None = None) -> bytes:
    r"""Return an XML document as UTF-8 in which any parser resolves every reference to one character.

    The encoding is taken from the byte order mark, else from ``content_type_header``, else from the declaration, else
    it is guessed from the bytes. So encodings unknown to libxml2 are read. Characters forbidden in XML are removed.

    >>> sanitize_xml(b"<a b='&x;'>Tom & Jerry &amp; &eacute;<![CDATA[ & ]]></a>")
    b"<a b='&amp;x;'>Tom &amp; Jerry &amp; &#233;<![CDATA[ & ]]></a>"
    """
    encoding = _detect_xml_encoding(content, content_type_header)
    if encoding != "utf-8" or not _is_utf8(content):
        content = decode(content, encoding).encode("utf-8", "replace")
    content = content.removeprefix(codecs.BOM_UTF8).lstrip(_SPACE)
    declaration = _DECLARATION.match(content)
    if declaration and b"encoding" in declaration[0]:
        content = content[declaration.end() :]
    if len(content.translate(None, _CONTROL)) != len(content):
        content = content.translate(None, _CONTROL)
    if b"<!DOCTYPE" in content:
        content = _strip_doctype(content)
    if b"xmlns" in content:
        content = _LONG_NAMESPACE.sub(rb'\1"\2\3"', content)
    return _AMPERSAND.sub(_replace_reference, content) if b"&" in content else content


def _strip_doctype(content: bytes) -> bytes:
    """Return a document without the document types before its root element."""
    kept: list[bytes] = []
    position = 0
    while (found := _PROLOG.match(content, position)) is not None:
        position = found.end()
        if found[1] is None:
            kept.append(found[0])
            continue
        subset = False
        while (part := _DOCTYPE_TOKEN.match(content, position)) is not None:
            position = part.end()
            if part[0] == b"[":
                subset = True
            elif part[0] == b"]":
                subset = False
            elif part[0] == b">" and not subset:
                break
    return b"".join([*kept, content[position:]])


def _detect_xml_encoding(content: bytes, header: str | None) -> str:
    named = byte_order_mark(content) or resolve_label(header_charset(header))
    if named:
        return named
    head = content[:_DECLARATION_BYTES].lstrip(_SPACE)
    return xml_label(head, resolve_label) or guess_encoding(content) or "utf-8"


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _replace_reference(found: re.Match[bytes]) -> bytes:
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
    """Return whether XML 1.0 allows a character (production 2)."""
    return code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
