"""First bytes of texts: the root element of markup behind comments and byte order marks; values of JSON."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAMPLE_BYTES = 8192
_MAX_START_BYTES = 1 << 16  # licences stand in comments before the root element
_WHITE_SPACE = b" \t\r\n\f\v"
# the internal subset of a document type may contain brackets in quoted text
_MISC = re.compile(
    rb"\s*+(?:<\?.*?\?>|<!--.*?-->"
    rb"|<!DOCTYPE\b\s*+([\w.:-]*+)(?:[^>\[]*+\[(?:[^\]\"']++|\"[^\"]*+\"|'[^']*+')*+\]\s*+>|[^>\[]*+(?:\[.*?\]\s*+)?>))",
    re.DOTALL | re.IGNORECASE,
)
_ROOT = re.compile(rb"\s*+<(?:([\w.-]++):)?+([\w.-]++)([^>]*+)")
_SNIFFED_HTML = re.compile(
    rb"<(?:!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B|BODY|BR|P|!--)[ >]", re.IGNORECASE
)
_HTML_ELEMENTS = frozenset(
    b"""a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body
    br button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em
    embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i
    iframe image img input ins isindex kbd keygen label legend li link listing main map mark marquee menu menuitem
    meta meter multicol nav nextid nobr noembed noframes noscript object ol optgroup option output p param picture
    plaintext pre progress q rb rp rt rtc ruby s samp script search section select slot small source spacer span
    strike strong style sub summary sup table tbody td template textarea tfoot th thead time title tr track tt u ul
    var video wbr xmp""".split()
)


class MarkupStart(NamedTuple):
    """The start of markup: ``markup`` is UTF-8 without a byte order mark and leading white space."""

    markup: bytes
    namespace: str
    local_name: str
    is_xml: bool
    """Whether it cannot be HTML: by a declaration, a namespace, or a root element that HTML lacks."""
    is_html_document: bool
    """Whether it begins as pages do: with HTML's doctype, ``html``, ``head`` or ``body``."""

    @property
    def is_sniffed_as_html(self) -> bool:
        """Whether browsers read it as HTML when nothing is declared (WHATWG MIME Sniffing, 7.1)."""
        return _SNIFFED_HTML.match(self.markup) is not None


def read_markup_start(body: bytes) -> MarkupStart | None:
    """Return the start of markup in UTF-8 or UTF-16; None for anything else.

    Comments, processing instructions and a doctype may stand before the root element, white space before each of
    them, and a byte order mark before all. A root element that neither HTML nor a namespace knows is XML only behind
    a comment, a declaration or a doctype of its own: text in angle brackets begins with one, too.
    """
    short = _read_start(body[:_SAMPLE_BYTES])
    return (
        _read_start(body[:_MAX_START_BYTES]) if short and not short.local_name and len(body) > _SAMPLE_BYTES else short
    )


def _read_start(sample: bytes) -> MarkupStart | None:
    markup = _utf8(sample).lstrip(_WHITE_SPACE)
    if markup[:1] != b"<":
        return None
    position, doctype, is_declared, has_misc = 0, b"", False, False
    while (misc := _MISC.match(markup, position)) is not None:
        part = misc[0].lstrip(_WHITE_SPACE)
        is_declared |= part[:5].lower() == b"<?xml" and part[5:6] in _WHITE_SPACE
        has_misc |= part[:2] != b"<?" or is_declared
        doctype = (misc[1] or doctype).lower()
        position = misc.end()
    root = _ROOT.match(markup, position)
    if root is None:
        return MarkupStart(markup, "", "", is_declared, doctype == b"html")
    prefix, local, attributes = root.groups()
    declaration = rb"\bxmlns:" + re.escape(prefix) if prefix else rb"\bxmlns"
    found = re.search(declaration + rb"\s*=\s*[\"']([^\"']*)", attributes) if b"xmlns" in attributes else None
    name = local.lower()
    is_custom = b"-" in name and not prefix  # elements of a page's own scripts
    is_page = doctype == b"html" or name in (b"html", b"head", b"body")
    is_foreign = name not in _HTML_ELEMENTS and not is_custom and doctype != b"html"
    is_xml = is_declared or (is_foreign and (found is not None or has_misc))
    return MarkupStart(
        markup, found[1].decode("utf-8", "replace") if found else "", local.decode("utf-8", "replace"), is_xml, is_page
    )


def _utf8(start: bytes) -> bytes:
    """Return the start of a page in UTF-8, if they are UTF-16 or UTF-8 with a byte order mark."""
    if start[:3] == codecs.BOM_UTF8:
        return start[3:]
    if start[:2] in UTF16_BOMS:
        return start.decode("utf-16", "replace").encode("utf-8", "replace")
    if start[:2] in (b"<\0", b"\0<") and start[3:4] != start[2:3]:
        return start.decode("utf-16-le" if start[1] == 0 else "utf-16-be", "replace").encode("utf-8", "replace")
    return start


_JSON_TOKEN = re.compile(
    rb"""\s*+(?:(?P<open>[\[{])|(?P<close>[\]}])|(?P<comma>,)|(?P<colon>:)|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*+")"""
    rb"""|(?P<value>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])|(?:true|false|null)(?!\w)))""",
)
_CUT_TOKEN = re.compile(rb"""\s*+(?:"(?:[^"\\\x00-\x1f]|\\.)*+\\?|[\w.+-]*+)\Z""")


def json_type(head: bytes) -> str | None:
    r"""Return the type of JSON objects and arrays: JSON, or NDJSON when further ones follow on lines of their own.

    ``head``: the first bytes, of which the last token may be cut. A single number or string is no JSON file.

    >>> json_type(b'{"a": [1, tr'), json_type(b'{"a": 1}\n{"a": 2}\n'), json_type(b"{a: 1}"), json_type(b"[1] Smith")
    ('application/json', 'application/x-ndjson', None, None)
    """
    head = head.removeprefix(codecs.BOM_UTF8)
    if head.lstrip(_WHITE_SPACE)[:1] not in (b"{", b"["):
        return None
    position, roots, open_brackets = 0, 0, bytearray()
    last = "start"  # kind of the last token; a key is a string behind "{" or "," in an object
    while (token := _JSON_TOKEN.match(head, position)) is not None:
        kind = token.lastgroup or ""
        if not _may_follow(last, kind, open_brackets, token[0]):
            return None
        if not open_brackets:
            roots += 1
            if roots > 1 and b"\n" not in token[0]:
                return None
        if kind == "open":
            open_brackets += token[kind]
        elif kind == "close":
            open_brackets.pop()
        is_key = kind == "string" and open_brackets[-1:] == b"{" and last != "colon"
        last, position = "key" if is_key else kind, token.end()
    if head[position:].strip() and not (len(head) - position < len(head) and _CUT_TOKEN.match(head, position)):
        return None
    if head[position:].strip() and not open_brackets:
        return None
    return "application/x-ndjson" if roots > 1 else "application/json"


def _may_follow(last: str, kind: str, open_brackets: bytearray, token: bytes) -> bool:
    """Return whether JSON's grammar allows a token behind another."""
    if not open_brackets:
        return kind == "open"
    in_object = open_brackets[-1:] == b"{"
    if kind == "close":
        return last not in ("comma", "colon", "key") and (token[-1:] == b"}") == in_object
    if kind == "colon":
        return last == "key"
    if kind == "comma":
        return last in ("string", "value", "close")
    if in_object and last in ("open", "comma"):
        return kind == "string"
    return last in ("open", "comma", "colon")
