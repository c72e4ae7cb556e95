"""Finds the encoding that a page declares in its first bytes (HTML standard, section 13.2.3.2: the prescan).

The algorithm is that of browsers: comments hide their content, attributes may have any order and quotes, unknown
encodings are skipped, and the XML declaration counts when no meta element does. Only its reach is longer, 64 KiB
instead of 1 KiB: browsers find a later declaration when they build the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_PRESCAN_BYTES = 65536
FAST_PRESCAN_BYTES = 1024
"""Bytes in which the fast search for a charset declaration runs."""
_XML_DECLARATION = re.compile(
    rb"<\?xml(?=[\t\n\f\r ])[^>]*?[\t\n\f\r ]encoding[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\">]*)\"|'([^'>]*)')"
)
_TAG_OPENING = re.compile(rb"<(?:(!--)|(meta(?=[\t\n\f\r /]))|/?([a-z][^\t\n\f\r >]*+)|([!/?]))")
_ATTRIBUTE = re.compile(
    rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r /=>]*+)"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"([^\"]*+)(\")?|'([^']*+)(')?|([^\t\n\f\r >][^\t\n\f\r >]*+))?)?"
)
_CONTENT_CHARSET = re.compile(
    rb"charset[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\"'\t\n\f\r ;][^\t\n\f\r ;]*+))"
)


def sniff_label(body: bytes, is_known: Callable[[str], object]) -> str | None:
    """Return the label, in lower case, of the first meta element with an encoding that ``is_known`` accepts.

    Else return that of the XML declaration, else None. A page readable up to here is not UTF-16, despite its label: the
    standard reads it as UTF-8.
    """
    head = body[:_PRESCAN_BYTES]
    if head.startswith((b"<\0?\0x\0", b"\0<\0?\0x")):
        return "utf-16le" if head[0] else "utf-16be"
    near = head[:FAST_PRESCAN_BYTES].lower()
    # on most pages the first tag with "charset" decides; the text after it is irrelevant then
    label = (
        _cached_meta_label(near[: near.find(b">", near.find(b"charset")) + 1], is_known) if b"charset" in near else None
    )
    if label is not None:
        return label
    if b"<meta" in (lowered := head.lower()) and b"charset" in lowered:
        label = _meta_label(lowered, is_known)
    return label or xml_label(head, is_known)


def xml_label(body: bytes, is_known: Callable[[str], object]) -> str | None:
    """Return the known label, in lower case, of an XML declaration at the first byte, or None."""
    found = _XML_DECLARATION.match(body[:_PRESCAN_BYTES]) if body.startswith(b"<?xml") else None
    return None if found is None else _usable_label(found[1] or found[2] or b"", is_known)


@lru_cache(256)
def _cached_meta_label(head: bytes, known: Callable[[str], object]) -> str | None:
    """Cache results for page heads that the pages of a site share."""
    return _meta_label(head, known)


def _meta_label(head: bytes, known: Callable[[str], object]) -> str | None:
    at = 0
    while opening := _TAG_OPENING.search(head, at):
        at = opening.end()
        if opening[1]:
            start = opening.start()
            # the two dashes may be those of the comment's start; the other end is that of the tokenizer, with an offset
            ends = head.find(b"-->", start + 2), head.find(b"--!>", start + 4)
            at = min((end for end in ends if end >= 0), default=-1)
        elif opening[4]:
            at = head.find(b">", at)
        else:
            attributes, at = _read_attributes(head, at)
            label = _usable_label(_meta_charset(attributes), known) if opening[2] and at >= 0 else None
            if label:
                return label
        if at < 0:
            return None
    return None


def _read_attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes of a tag (the first of each name) and the tag's end; -1 when it is outside ``head``."""
    found: dict[bytes, bytes] = {}
    while match := _ATTRIBUTE.match(head, at):
        double, double_end, single, single_end, bare = match.group(2, 3, 4, 5, 6)
        unclosed = (double is not None and not double_end) or (single is not None and not single_end)
        if unclosed or match.end() == len(head):
            return found, -1
        found.setdefault(match[1], double or single or bare or b"")
        at = match.end()
    return found, head.find(b">", at)


def _meta_charset(attributes: dict[bytes, bytes]) -> bytes:
    if b"charset" in attributes:
        return attributes[b"charset"]
    if attributes.get(b"http-equiv") != b"content-type":
        return b""
    found = _CONTENT_CHARSET.search(attributes.get(b"content", b""))
    return (found[1] or found[2] or found[3] or b"") if found else b""


def _usable_label(label: bytes, known: Callable[[str], object]) -> str | None:
    text = label.decode("latin-1").strip("\t\n\f\r ").lower()
    if not known(text):
        return None
    if text.startswith(("utf-16", "utf-32", "unicode", "ucs-2", "csunicode", "iso-10646-ucs-2")):
        return "utf-8"
    return "windows-1252" if text == "x-user-defined" else text
