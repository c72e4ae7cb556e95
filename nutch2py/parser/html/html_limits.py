"""Limits that keep the tree of a page small and quick to build.

A tree builder that follows the HTML standard has three costs that grow faster than the page: it compares an attribute
with all others of its element, copies each open formatting element (``b``, ``font`` …) into every following paragraph,
and searches all open elements for many tags. Pages written for readers do not come near the limits. A page that exceeds
one loses markup, never a link or a word: attributes beyond the limit, formatting elements, or every tag that carries
neither text nor a link.

The scans are linear. Those for attributes and formatting also match in comments, scripts and values, so that no page
can hide markup from them. :mod:`nutch2py.parser.html.nesting_depth` describes the scan for depth.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple, Self

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.html.nesting_depth import measure_nesting_depth
from nutch2py.parser.html.tag_patterns import ATTRIBUTE_PATTERN, HTML_SPACE

ATTRIBUTE_LIMIT, FORMATTING_LIMIT, DEPTH_LIMIT = "attributes", "formatting", "depth"
SHORT_PAGE_CHARS = 16384
"""Length below which a page is not scanned: it cannot have enough attributes to be slow."""
MANY_TAGS = 10_000
"""Number of tags below which a page is not scanned for excessive markup."""
# a name that contains "<" and a letter ends where the next such name ends: only the last one needs a match
_TAG_START = rf"<[a-zA-Z][^{HTML_SPACE}/><]*+(?:<(?![a-zA-Z])[^{HTML_SPACE}/><]*+)*+(?!<)"
_START_TAG = re.compile(rf"<([a-zA-Z][^{HTML_SPACE}/>]*+)((?:{ATTRIBUTE_PATTERN})*+)[{HTML_SPACE}/]*+>?+")
_ATTRIBUTE_PARTS = re.compile(
    rf"[{HTML_SPACE}/]*+(=[^{HTML_SPACE}/>=]*+|[^{HTML_SPACE}/>=]++)"
    rf"(?:[{HTML_SPACE}]*+=[{HTML_SPACE}]*+(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|([^{HTML_SPACE}>\"'][^{HTML_SPACE}>]*+))?+)?+"
)
_ROOT_TAG = re.compile(rf"<(?:html|body)(?=[{HTML_SPACE}/])", re.IGNORECASE)
_ATTRIBUTES = re.compile(rf"(?:{ATTRIBUTE_PATTERN})*+")
_VALID_NAME = re.compile(r"[a-zA-Z][\w:.-]{0,99}")
_NOT_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1[^>]*>?|\Z)", re.DOTALL | re.IGNORECASE)

_FORMATTING_NAMES = "b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"  # an open "a" is closed by the next
_NOAHS_ARK_LIMIT = 3  # number of equal formatting elements that the standard keeps open
_PLAIN_FORMATTING_TAG = re.compile(rf"<({_FORMATTING_NAMES})>", re.IGNORECASE)
_FORMATTING_TAG = re.compile(rf"</?(?:{_FORMATTING_NAMES})(?=[{HTML_SPACE}/>])", re.IGNORECASE)
_FORMATTING_TAG_WITH_ATTRIBUTES = re.compile(rf"<(?:{_FORMATTING_NAMES})(?=[{HTML_SPACE}/])", re.IGNORECASE)
# bounded, so that overlapping matches cost no more than their number
_BOUNDED_TAG_REST = (
    rf"(?:[{HTML_SPACE}/]{{1,9}}+[^{HTML_SPACE}/>=\"']{{1,50}}+"
    rf"(?:=(?:\"[^\"]{{0,200}}+\"|'[^']{{0,200}}+'|[^{HTML_SPACE}>\"'/]{{1,200}}+))?+){{0,9}}+[{HTML_SPACE}/]{{0,9}}+>"
)
_COMPLETE_FORMATTING_TAG = re.compile(rf"<({_FORMATTING_NAMES})(?=[{HTML_SPACE}/]){_BOUNDED_TAG_REST}", re.IGNORECASE)
# text and tags that neither contain raw text nor close or hide a formatting element, up to the end tag
_UP_TO_END_TAG = re.compile(
    rf"(?:[^<]{{1,500}}+|</?(?:a|span|br|img|wbr)(?=[{HTML_SPACE}/>]){_BOUNDED_TAG_REST}){{0,20}}+</({_FORMATTING_NAMES})>",
    re.IGNORECASE,
)

# all tags but those that carry text, a link or a directive, or contain text that is not markup
_STRUCTURAL_TAG = re.compile(
    r"</?(?!/?(?:html|head|body|title|meta|base|script|style|a|area|link|img|i?frame|frameset|form|textarea|noframes|"
    r"noembed|xmp|template)[\s/>])[a-zA-Z][^\s/>]*",
    re.IGNORECASE,
)


class HtmlLimits(NamedTuple):
    """Limits of a page's slow constructs.

    Attributes:
        attributes: Attributes of one element.
        copies: Bound on copies of open formatting elements: number of elements that may be open times number of tags.
        depth: Nesting depth of elements.
    """

    attributes: int = 500
    copies: int = 2_000_000
    depth: int = 3000

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Read ``parser.html.max.*``; a value that is not positive disables a limit."""
        names = ("attributes", "copies", "depth")
        return cls(*(conf.get_int(f"parser.html.max.{name}", cls._field_defaults[name]) for name in names))

    def apply(self, html: str) -> tuple[str, tuple[str, ...]]:
        """Return the page to parse and the limits that it exceeds; almost every page is returned unchanged."""
        if "\0" in html:  # never text; the tree builder drops it as well
            html = html.replace("\0", "")
        met = []
        if self.attributes > 0 and len(html) > SHORT_PAGE_CHARS and has_many_attributes(html, self.attributes):
            html = _trim_attributes(html, self.attributes)
            met.append(ATTRIBUTE_LIMIT)
        tags = html.count("<")
        if 0 < self.copies < tags * tags and estimate_formatting_copies(html) > self.copies:
            html = _FORMATTING_TAG.sub("<wbr", html)
            met.append(FORMATTING_LIMIT)
        if self.depth > 0 and tags > MANY_TAGS and measure_nesting_depth(html, self.depth) > self.depth:
            html = _STRUCTURAL_TAG.sub("<wbr", html)
            met.append(DEPTH_LIMIT)
        return html, tuple(met)


def has_many_attributes(html: str, limit: int) -> bool:
    """Return whether an element may have more than ``limit`` attributes; those of html and body add up."""
    if _attribute_count_pattern(limit).search(html):
        return True
    total = 0
    for number, root in enumerate(_ROOT_TAG.finditer(html)):
        attributes = _ATTRIBUTES.match(html, root.end()) if number < limit else None
        total += len(_ATTRIBUTE_PARTS.findall(attributes[0])) if attributes else limit
        if total > limit:
            return True
    return False


_attribute_patterns: dict[int, re.Pattern[str]] = {}


def _attribute_count_pattern(most: int) -> re.Pattern[str]:
    found = _attribute_patterns.get(most)
    if found is None:
        found = _attribute_patterns[most] = re.compile(rf"{_TAG_START}(?:{ATTRIBUTE_PATTERN}){{{most + 1}}}")
    return found


def _trim_attributes(html: str, most: int) -> str:
    """Rewrite every start tag with its first attributes in safely quoted form."""
    roots = 0

    def rewritten(tag: re.Match[str]) -> str:
        nonlocal roots
        name = tag[1]
        if not _VALID_NAME.fullmatch(name):
            return "<wbr>"
        allowed = most
        if name.lower() in ("html", "body"):
            roots += 1
            allowed = most // 2 if roots <= 2 else 0
        parts = [f"<{name}"]
        for part in _ATTRIBUTE_PARTS.finditer(tag[2]):
            if allowed <= 0:
                break
            if _VALID_NAME.fullmatch(part[1]):
                allowed -= 1
                value = part[2] or part[3] or part[4] or ""
                value = value.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
                parts.append(f'{part[1]}="{value}"')
        return f"{' '.join(parts)}>"

    return _START_TAG.sub(rewritten, _NOT_MARKUP.sub(" ", html))


def estimate_formatting_copies(html: str) -> int:
    """Return an upper bound on the copies of formatting elements in the tree of ``html``.

    Between two tags the standard may reopen each open formatting element. An element counts as closed only when its end
    tag follows so closely that nothing between them can change the end tag's meaning.
    """
    alike = Counter(name.lower() for name in _PLAIN_FORMATTING_TAG.findall(html))
    others = 0
    for tag in _FORMATTING_TAG_WITH_ATTRIBUTES.finditer(html):
        whole = _COMPLETE_FORMATTING_TAG.match(html, tag.start())
        if whole is None:
            others += 1
            continue
        end = _UP_TO_END_TAG.match(html, whole.end())
        if end is None or end[1].lower() != whole[1].lower():
            alike[whole[0]] += 1
    return (others + sum(min(_NOAHS_ARK_LIMIT, number) for number in alike.values())) * html.count("<")
