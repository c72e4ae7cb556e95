"""Measure how deep the elements of a page nest, from its tags alone, without building the tree.

A page must not be able to hide depth, so doubtful elements count as open: an end tag closes an element only where the
HTML standard's tree builder certainly closes it. Comments, attribute values and raw text (scripts, titles …) are
skipped as by its tokenizer. Where only the tree shows whether text is raw (in SVG, MathML, select or frameset) and the
text contains markup, the page counts as too deep.
"""

from __future__ import annotations

import re
from collections import defaultdict

from nutch2py.parser.html.tag_patterns import ATTRIBUTE_PATTERN, HTML_SPACE

_TOKEN = re.compile(
    rf"<(?:(!--)|([!?]|/(?![a-zA-Z>]))|(/?)([a-zA-Z][^{HTML_SPACE}/>]*+)(?:{ATTRIBUTE_PATTERN})*+([{HTML_SPACE}/]*+)>?+)"
)
_TEXT_ONLY_ELEMENT = re.compile(
    rf"[^<]{{0,1000}}</(?:desc|m[ions]|mtext|annotation-xml|font)(?=[{HTML_SPACE}/>])", re.IGNORECASE
)
_COMMENT_END = re.compile(r"--!?>")
_RAW_TEXT = frozenset({"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"})
_RAW_TEXT_END = {name: re.compile(rf"</{name}(?=[{HTML_SPACE}/>])", re.IGNORECASE) for name in _RAW_TEXT}
# elements that never nest: void, or closed by the next one
_NON_NESTING = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
     "html", "head", "body", "image", "keygen", "frame", "bgsound", "basefont"}
)  # fmt: skip
_IMPLIED_END = frozenset(
    {"p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup", "rp", "rt",
     "rb", "rtc", "caption"}
)  # fmt: skip
_SPECIAL = frozenset(
    {"address", "article", "aside", "blockquote", "button", "center", "details", "dialog", "dir", "div", "dl",
     "fieldset", "figcaption", "figure", "footer", "header", "hgroup", "listing", "main", "menu", "nav", "ol", "pre",
     "search", "section", "summary", "ul", "h1", "h2", "h3", "h4", "h5", "h6", "applet", "marquee", "object", "form",
     "frameset", "select", "table", "template", "plaintext", "noscript"}
)  # fmt: skip
_INTEGRATION_POINTS = frozenset({"foreignobject", "desc", "title", "mi", "mo", "mn", "ms", "mtext", "annotation-xml"})
_SCOPE_BOUNDARY = frozenset({"applet", "table", "marquee", "object", "template", "select"}) | _INTEGRATION_POINTS
_TABLE_SCOPE_BOUNDARY = frozenset({"table", "template", "select"})
_FORMATTING = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)
_UNRELIABLE_END_TAGS = frozenset({"form", "html", "body", "head", "frameset", "noscript"})  # may not close the element
_FOREIGN = frozenset({"svg", "math"})
# start tags that end SVG or MathML content
_BREAKOUT = frozenset(
    {"b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2", "h3",
     "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s",
     "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var"}
)  # fmt: skip


class _OpenElements:
    """Stack of elements that may be open, with the positions of the scope boundaries that end tags do not cross."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.positions: dict[str, list[int]] = defaultdict(list)
        self.special, self.scope, self.table = [-1], [-1], [-1]
        self.blocks: list[int] = []  # number of open elements at the start of each paragraph, item or cell

    def push(self, name: str) -> None:
        place = len(self.names)
        self.names.append(name)
        self.positions[name].append(place)
        for kinds, places in self._boundaries():
            if name in kinds:
                places.append(place)

    def _boundaries(self) -> tuple[tuple[frozenset[str], list[int]], ...]:
        return (
            (_SPECIAL | _INTEGRATION_POINTS, self.special),
            (_SCOPE_BOUNDARY, self.scope),
            (_TABLE_SCOPE_BOUNDARY, self.table),
        )

    def truncate(self, place: int) -> None:
        while len(self.names) > place:
            self.positions[self.names.pop()].pop()
        for _, places in self._boundaries():
            while places[-1] >= place:
                places.pop()
        while self.blocks and self.blocks[-1] > place:
            self.blocks.pop()

    def close(self, name: str) -> None:
        """Close the elements that an end tag certainly closes."""
        if name in _IMPLIED_END:
            if self.blocks and self.blocks[-1] > self.special[-1]:
                self.blocks.pop()
            return
        place = self.positions[name][-1] if self.positions[name] else -1
        if place < 0 or name in _UNRELIABLE_END_TAGS:
            return
        if name == "table":
            sure = place >= self.table[-1]
        elif name in _SPECIAL:
            sure = place >= self.scope[-1]
        else:
            sure = place > self.special[-1] and not (self.blocks and self.blocks[-1] > place)
        if sure:
            left_open = [each for each in self.names[place + 1 :] if each in _FORMATTING]
            self.truncate(place)
            for each in left_open:  # the tree builder reopens them
                self.push(each)


def measure_nesting_depth(html: str, limit: int) -> int:
    """Return an upper bound on the nesting depth; stops at ``limit`` + 1.

    Paragraphs, items, cells and the like are not counted: the tree may have eight levels per counted level.
    """
    opened = _OpenElements()
    position, deepest = 0, 0
    in_foreign = in_select = doubt = False
    below = 0  # number of elements open below the SVG or MathML element
    while (token := _TOKEN.search(html, position)) is not None:
        position = token.end()
        comment, bogus, slash, name, closing = token.groups()
        if comment:
            position = _skip_comment(html, position)
        elif bogus:
            if html.startswith("<![CDATA[", token.start()) and (in_foreign or doubt):
                if doubt:
                    return limit + 1
                position = _skip_past(html, "]]>", position)
            else:
                position = _skip_past(html, ">", position)
        elif slash:
            name = name.lower()
            opened.close(name)
            in_foreign = in_foreign and len(opened.names) > below and name not in ("p", "br")
            in_select = in_select and name != "select"
        else:
            name = name.lower()
            if in_foreign and name in _BREAKOUT:
                opened.truncate(below)
                in_foreign = False
            if name in _RAW_TEXT and not (in_foreign and name != "title"):
                after = _find_raw_text_end(html, name, position)
                text = html[position:after]
                if "<" in text and (in_foreign or in_select or doubt or _is_double_escaped(name, text)):
                    return limit + 1
                position = after
                continue
            if name == "plaintext" and not in_foreign:
                return limit + 1 if doubt else deepest
            if name in _FOREIGN and not in_foreign and not doubt:
                in_foreign, below = True, len(opened.names)
            elif (
                in_foreign
                and (name in _INTEGRATION_POINTS or name == "font")
                and not _TEXT_ONLY_ELEMENT.match(html, position)
            ):
                in_foreign, doubt = False, True
            in_select = in_select or name == "select"
            doubt = doubt or name == "frameset" or (in_select and name in _FOREIGN)
            if name in _IMPLIED_END and not in_foreign:
                if not opened.blocks or opened.blocks[-1] != len(opened.names):
                    opened.blocks.append(len(opened.names))
            elif name not in _NON_NESTING and not (in_foreign and name not in _FOREIGN and closing.endswith("/")):
                opened.push(name)
                deepest = max(deepest, len(opened.names))
                if deepest > limit:
                    return deepest
    return deepest


def _is_double_escaped(name: str, text: str) -> bool:
    """Return whether a script may continue after its first end tag (13.2.5.21, double escaped)."""
    return name == "script" and "<!--" in text and "<script" in text.lower()


def _skip_past(html: str, end: str, position: int) -> int:
    found = html.find(end, position)
    return len(html) if found < 0 else found + len(end)


def _skip_comment(html: str, position: int) -> int:
    for short in (">", "->"):
        if html.startswith(short, position):
            return position + len(short)
    found = _COMMENT_END.search(html, position)
    return len(html) if found is None else found.end()


def _find_raw_text_end(html: str, name: str, position: int) -> int:
    found = _RAW_TEXT_END[name].search(html, position)
    return len(html) if found is None else found.start()
