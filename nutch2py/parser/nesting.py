"""How deep the elements of a page are left open, told from its tags alone, without building the tree.

Nothing of a page may hide depth, so whatever is in doubt counts as open: an end tag closes an element only where the
tree builder of the HTML standard surely closes it too. Comments, values of attributes and raw text (scripts, titles …)
are passed over as its tokenizer does. Where only the tree tells whether a text is raw (in SVG, MathML, a select or a
page of frames), and the text holds markup, the page counts as deep.
"""

from __future__ import annotations

import re
from collections import defaultdict

from nutch2py.parser.html_syntax import ATTRIBUTE, SPACE

_TOKEN = re.compile(rf"<(?:(!--)|([!?]|/(?![a-zA-Z>]))|(/?)([a-zA-Z][^{SPACE}/>]*+)(?:{ATTRIBUTE})*+([{SPACE}/]*+)>?+)")
_TEXT_ONLY = re.compile(rf"[^<]{{0,1000}}</(?:desc|m[ions]|mtext|annotation-xml|font)(?=[{SPACE}/>])", re.IGNORECASE)
_COMMENT_END = re.compile(r"--!?>")
_RAW = frozenset({"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"})
_RAW_END = {name: re.compile(rf"</{name}(?=[{SPACE}/>])", re.IGNORECASE) for name in _RAW}
# elements that do not nest however many of them are left open: void, or closed by what follows them
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
     "html", "head", "body", "image", "keygen", "frame", "bgsound", "basefont"}
)  # fmt: skip
_BLOCKS = frozenset(
    {"p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup", "rp", "rt",
     "rb", "rtc", "caption"}
)  # fmt: skip
_SPECIAL = frozenset(
    {"address", "article", "aside", "blockquote", "button", "center", "details", "dialog", "dir", "div", "dl",
     "fieldset", "figcaption", "figure", "footer", "header", "hgroup", "listing", "main", "menu", "nav", "ol", "pre",
     "search", "section", "summary", "ul", "h1", "h2", "h3", "h4", "h5", "h6", "applet", "marquee", "object", "form",
     "frameset", "select", "table", "template", "plaintext", "noscript"}
)  # fmt: skip
_POINTS = frozenset({"foreignobject", "desc", "title", "mi", "mo", "mn", "ms", "mtext", "annotation-xml"})
_SCOPE = frozenset({"applet", "table", "marquee", "object", "template", "select"}) | _POINTS
_TABLE = frozenset({"table", "template", "select"})
_FORMATS = frozenset({"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"})
_NEVER = frozenset({"form", "html", "body", "head", "frameset", "noscript"})  # whose end tags do not surely close
_FOREIGN = frozenset({"svg", "math"})
# what ends a drawing or formula when it begins in one
_BREAKOUT = frozenset(
    {"b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2", "h3",
     "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s",
     "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var"}
)  # fmt: skip


class _Open:
    """The elements that may be open, and where in their order those are that end tags do not reach beyond."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.places: dict[str, list[int]] = defaultdict(list)
        self.special, self.scope, self.table = [-1], [-1], [-1]
        self.blocks: list[int] = []  # how many elements were open when a paragraph, item or cell began

    def push(self, name: str) -> None:
        place = len(self.names)
        self.names.append(name)
        self.places[name].append(place)
        for kinds, places in self._kinds():
            if name in kinds:
                places.append(place)

    def _kinds(self) -> tuple[tuple[frozenset[str], list[int]], ...]:
        return ((_SPECIAL | _POINTS, self.special), (_SCOPE, self.scope), (_TABLE, self.table))

    def cut(self, place: int) -> None:
        while len(self.names) > place:
            self.places[self.names.pop()].pop()
        for _, places in self._kinds():
            while places[-1] >= place:
                places.pop()
        while self.blocks and self.blocks[-1] > place:
            self.blocks.pop()

    def end(self, name: str) -> None:
        """Close what an end tag surely closes."""
        if name in _BLOCKS:
            if self.blocks and self.blocks[-1] > self.special[-1]:
                self.blocks.pop()
            return
        place = self.places[name][-1] if self.places[name] else -1
        if place < 0 or name in _NEVER:
            return
        if name == "table":
            sure = place >= self.table[-1]
        elif name in _SPECIAL:
            sure = place >= self.scope[-1]
        else:
            sure = place > self.special[-1] and not (self.blocks and self.blocks[-1] > place)
        if sure:
            left_open = [each for each in self.names[place + 1 :] if each in _FORMATS]
            self.cut(place)
            for each in left_open:  # which the tree builder opens again
                self.push(each)


def nesting_depth(html: str, most: int) -> int:
    """Return a bound on how deep elements are in each other; at ``most`` + 1 nothing more is read.

    Paragraphs, items, cells and the like are left out: the tree may have eight levels for one that is counted.
    """
    opened = _Open()
    position, deepest = 0, 0
    in_foreign = in_select = doubt = False
    below = 0  # elements that are open below the drawing
    while (token := _TOKEN.search(html, position)) is not None:
        position = token.end()
        comment, bogus, slash, name, closing = token.groups()
        if comment:
            position = _after_comment(html, position)
        elif bogus:
            if html.startswith("<![CDATA[", token.start()) and (in_foreign or doubt):
                if doubt:
                    return most + 1
                position = _after(html, "]]>", position)
            else:
                position = _after(html, ">", position)
        elif slash:
            name = name.lower()
            opened.end(name)
            in_foreign = in_foreign and len(opened.names) > below and name not in ("p", "br")
            in_select = in_select and name != "select"
        else:
            name = name.lower()
            if in_foreign and name in _BREAKOUT:
                opened.cut(below)
                in_foreign = False
            if name in _RAW and not (in_foreign and name != "title"):
                after = _raw_end(html, name, position)
                text = html[position:after]
                if "<" in text and (in_foreign or in_select or doubt or _is_escaped(name, text)):
                    return most + 1
                position = after
                continue
            if name == "plaintext" and not in_foreign:
                return most + 1 if doubt else deepest
            if name in _FOREIGN and not in_foreign and not doubt:
                in_foreign, below = True, len(opened.names)
            elif in_foreign and (name in _POINTS or name == "font") and not _TEXT_ONLY.match(html, position):
                in_foreign, doubt = False, True
            in_select = in_select or name == "select"
            doubt = doubt or name == "frameset" or (in_select and name in _FOREIGN)
            if name in _BLOCKS and not in_foreign:
                if not opened.blocks or opened.blocks[-1] != len(opened.names):
                    opened.blocks.append(len(opened.names))
            elif name not in _VOID and not (in_foreign and name not in _FOREIGN and closing.endswith("/")):
                opened.push(name)
                deepest = max(deepest, len(opened.names))
                if deepest > most:
                    return deepest
    return deepest


def _is_escaped(name: str, text: str) -> bool:
    """Tell whether a script may go on behind the first of its end tags (13.2.5.21, double escaped)."""
    return name == "script" and "<!--" in text and "<script" in text.lower()


def _after(html: str, end: str, position: int) -> int:
    found = html.find(end, position)
    return len(html) if found < 0 else found + len(end)


def _after_comment(html: str, position: int) -> int:
    for short in (">", "->"):
        if html.startswith(short, position):
            return position + len(short)
    found = _COMMENT_END.search(html, position)
    return len(html) if found is None else found.end()


def _raw_end(html: str, name: str, position: int) -> int:
    found = _RAW_END[name].search(html, position)
    return len(html) if found is None else found.start()
