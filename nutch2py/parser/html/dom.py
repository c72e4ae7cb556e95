"""The document tree of an HTML page (lexbor, HTML standard), built in linear time, and its text.

Text is joined as in Nutch's DOMContentUtils: white space in each text node is collapsed and its ends are trimmed. Nodes
are separated by a space, or by a line feed where a node of only white space is between them. Scripts, styles and
comments are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_SELF_CLOSED_IFRAME = re.compile(r"<(iframe)((?:\s[^<>]*[\s\"'])?)/>", re.IGNORECASE)
_SELF_CLOSED = re.compile(
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)[\s/])"
    r"([a-zA-Z][\w:.-]*)((?:\s[^<>]*[\s\"'])?)/>"
)
_NOSCRIPT = re.compile(r"<noscript(?=[\s>/])(?:[^<]++|<(?!/noscript))*+", re.IGNORECASE)
_HTML_INTEGRATION_POINTS = frozenset({"foreignObject", "foreignobject", "desc", "title", "annotation-xml", "body"})
_BODY_TAG = re.compile(r"<body[\s>]", re.IGNORECASE)

# Java's \s matches only ASCII, so nodes are handled as UTF-8: bytes.split() splits at exactly these characters
_TRIMMED_CHARS = bytes(range(0x21)).decode()  # String.trim() removes all characters up to U+0020
_CONTROL = bytes([*range(1, 9), *range(14, 32)])
_TO_SPACES = bytes(0x20 if code in b"\t\n\x0b\f\r" else code for code in range(256))
_TWO_SPACES = re.compile(b"  ")  # twice as fast as ``in``
_TO_SPACES_MARKING_CONTROLS = bytes(1 if code in _CONTROL else space for code, space in enumerate(_TO_SPACES))


def parse_tree(html: str, *, xml: bool = False) -> LexborHTMLParser:
    """Build the tree of a page; ``xml`` for XHTML, where any element may be self-closed (``<script/>``).

    Time and memory can grow faster than the page's size, unless :class:`nutch2py.parser.html.html_limits.HtmlLimits`
    were applied before.
    """
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    if "/>" in html:
        if xml:
            html = _SELF_CLOSED.sub(r"<\1\2></\1>", html)
        elif "<iframe" in html.lower():  # NekoHTML's allow-selfclosing-iframe
            html = _SELF_CLOSED_IFRAME.sub(r"<\1\2></\1>", html)
    try:
        return LexborHTMLParser(html)
    except SelectolaxError:  # any text is valid HTML: only an allocation can fail
        raise MemoryError from None


def head_elements(tree: LexborHTMLParser, html: str) -> list[LexborNode]:
    """Return the ``meta`` and ``base`` elements of the head, in order, and then each ``base`` of the body.

    The head ends at the author's ``<body`` tag. The HTML standard ends it earlier, at the first element that does not
    belong there (often an image in a ``noscript``), and would lose a robots directive after it.
    """
    head, body = tree.head, tree.body
    below: list[LexborNode] = []
    if body is not None and body.css_first("meta,base") is not None:
        written = _BODY_TAG.search(html)
        if written is not None:
            html = html[: written.start()]
            head = parse_tree(html).root
        below = body.css("base")
    if head is None:
        return below
    above: list[LexborNode] = head.css("meta,base")
    if any(node.tag == "base" for node in above) and _NOSCRIPT.search(html):
        # the parser moves a base out of a noscript, as the standard requires when scripts are disabled
        return parse_tree(_NOSCRIPT.sub("", html)).css("head base") + head.css("meta") + below
    return above + below


def attribute_value(attributes: Mapping[str, str | None], name: str) -> str:
    """Return the value of an attribute that a selector has matched, "" when it has none.

    Selectors match local names: ``[href]`` also matches the ``xlink:href`` of SVG.

    >>> attribute_value({"xlink:href": "a.html"}, "href")
    'a.html'
    """
    if name in attributes:
        return attributes[name] or ""
    return attributes.get(f"xlink:{name}") or attributes.get(f"xml:{name}") or ""


def collapse(nodes: str) -> str:
    r"""Return the text of NUL-separated text nodes, joined by the rule of this module's docstring.

    >>> collapse(" a  b\0c\0 \n\0d\0 ")
    'a b c\nd\n'
    """
    raw = nodes.encode("utf-8", "replace")
    spaced = raw.translate(_TO_SPACES_MARKING_CONTROLS)
    if b"\1" in spaced:
        raw = b"\0".join(node.decode().strip(_TRIMMED_CHARS).encode() or b" " for node in raw.split(b"\0"))
        spaced = raw.translate(_TO_SPACES)
    texts = [*map(bytes.strip, spaced.split(b"\0"))]
    # one search over all texts: to split every text costs ten times as much
    if _TWO_SPACES.search(b"\0".join(texts)):
        texts = [b" ".join(text.split()) if b"  " in text else text for text in texts]
    if b"" not in texts:
        return b" ".join(texts).decode()
    parts: list[bytes] = []
    put = parts.append
    gap = b""
    for text in texts:
        if text:
            put(gap)
            put(text)
            gap = b" "
        elif parts:
            gap = b"\n"
    if gap == b"\n":
        put(gap)
    return b"".join(parts).decode()


def node_text(node: LexborNode) -> str:
    """Return the text below a node; scripts and styles must be removed before."""
    return collapse(node.text(separator="\0"))


def anchor_text(node: LexborNode) -> str:
    """Return the trimmed text below a link or title; has a fast path for one plain text node."""
    text: str = node.text(separator="\0")
    if text.isascii() and text.isprintable() and "  " not in text:  # no control character, so no separator either
        return text.strip(" ")
    return collapse(text).strip(_TRIMMED_CHARS)


def remove_scripts(tree: LexborHTMLParser) -> None:
    """Remove scripts and styles from the tree, so that its text is the visible text."""
    tree.strip_tags(["script", "style"])


def find_title(tree: LexborHTMLParser) -> str:
    """Return the text of the first title, "" when there is none; titles in SVG and MathML are ignored."""
    for part in (tree.head, tree.root):  # a search of the head takes a sixth of the time of the whole page
        for node in () if part is None else part.css("title"):
            if not is_in_svg_or_math(node):
                return anchor_text(node)
    return ""


def is_in_svg_or_math(node: LexborNode) -> bool:
    """Return whether an element belongs to SVG or MathML, not to the HTML around it or within it."""
    parent = node.parent
    while parent is not None and parent.tag not in _HTML_INTEGRATION_POINTS:
        if parent.tag in ("svg", "math"):
            return True
        parent = parent.parent
    return False
