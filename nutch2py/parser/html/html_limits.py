"""Limits that keep the tree of a page small and quickly built, and what is left of a page that meets one.

A tree builder that follows the HTML standard has three costs that are no multiple of the page's size: an attribute is
compared with all others of its element; a formatting element that is left open (``b``, ``font`` …) is copied into every
paragraph that follows; and many tags look through all open elements. No page that was written to be read comes near the
limits. One that does loses markup, never a link or a word: attributes beyond the limit, formatting elements, or every
tag that carries neither text nor a link.

The scans are linear. Those for attributes and formatting look at every ``<`` and a letter, whether a comment, a script
or a value holds it or not, so that no page can hide what the tree builder would see; how that of nesting sees to it is
told in :mod:`nutch2py.parser.html.nesting_depth`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple, Self

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.html.nesting_depth import measure_nesting_depth
from nutch2py.parser.html.tag_patterns import ATTRIBUTE_PATTERN, HTML_SPACE

ATTRIBUTE_LIMIT, FORMATTING_LIMIT, DEPTH_LIMIT = "attributes", "formatting", "depth"
_SHORT_PAGE_CHARS = 16384  # characters; a shorter page has no room for so many attributes that they are slow
_MANY_TAGS = 10_000
# a name that holds "<" and a letter ends where the one that begins there ends: the last of them is looked at
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

_FORMATTING_NAMES = "b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"  # an open "a" is ended by the next
_NOAHS_ARK_LIMIT = 3  # formatting elements that the standard keeps of those that are alike
_PLAIN_FORMATTING_TAG = re.compile(rf"<({_FORMATTING_NAMES})>", re.IGNORECASE)
_FORMATTING_TAG = re.compile(rf"</?(?:{_FORMATTING_NAMES})(?=[{HTML_SPACE}/>])", re.IGNORECASE)
_FORMATTING_TAG_WITH_ATTRIBUTES = re.compile(rf"<(?:{_FORMATTING_NAMES})(?=[{HTML_SPACE}/])", re.IGNORECASE)
# bounded, so that overlapping ones cost no more than their number
_BOUNDED_TAG_REST = (
    rf"(?:[{HTML_SPACE}/]{{1,9}}+[^{HTML_SPACE}/>=\"']{{1,50}}+"
    rf"(?:=(?:\"[^\"]{{0,200}}+\"|'[^']{{0,200}}+'|[^{HTML_SPACE}>\"'/]{{1,200}}+))?+){{0,9}}+[{HTML_SPACE}/]{{0,9}}+>"
)
_COMPLETE_FORMATTING_TAG = re.compile(rf"<({_FORMATTING_NAMES})(?=[{HTML_SPACE}/]){_BOUNDED_TAG_REST}", re.IGNORECASE)
# text, and what neither holds raw text nor closes or hides a formatting element, up to the end tag
_UP_TO_END_TAG = re.compile(
    rf"(?:[^<]{{1,500}}+|</?(?:a|span|br|img|wbr)(?=[{HTML_SPACE}/>]){_BOUNDED_TAG_REST}){{0,20}}+</({_FORMATTING_NAMES})>",
    re.IGNORECASE,
)

# what carries text, a link or a directive, or holds text that is not markup; every other tag only separates text
_STRUCTURAL_TAG = re.compile(
    r"</?(?!/?(?:html|head|body|title|meta|base|script|style|a|area|link|img|i?frame|frameset|form|textarea|noframes|"
    r"noembed|xmp|template)[\s/>])[a-zA-Z][^\s/>]*",
    re.IGNORECASE,
)


class HtmlLimits(NamedTuple):
    """How much of what is slow a page may have.

    ``attributes`` of one element; ``copies`` of open formatting elements that the standard may ask for: the number of
    those that may be open, multiplied by the number of tags; ``depth`` of elements in each other.
    """

    attributes: int = 500
    copies: int = 2_000_000
    depth: int = 3000

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Read ``parser.html.max.*``; a limit that is not positive is none."""
        names = ("attributes", "copies", "depth")
        return cls(*(conf.get_int(f"parser.html.max.{name}", cls._field_defaults[name]) for name in names))

    def apply(self, html: str) -> tuple[str, tuple[str, ...]]:
        """Return the page as it is to be parsed, and which limits it met; almost every page comes back as it is."""
        if "\0" in html:  # never text; the tree builder drops it, too
            html = html.replace("\0", "")
        met = []
        if self.attributes > 0 and len(html) > _SHORT_PAGE_CHARS and has_many_attributes(html, self.attributes):
            html = _trim_attributes(html, self.attributes)
            met.append(ATTRIBUTE_LIMIT)
        tags = html.count("<")
        if 0 < self.copies < tags * tags and estimate_formatting_copies(html) > self.copies:
            html = _FORMATTING_TAG.sub("<wbr", html)
            met.append(FORMATTING_LIMIT)
        if self.depth > 0 and tags > _MANY_TAGS and measure_nesting_depth(html, self.depth) > self.depth:
            html = _STRUCTURAL_TAG.sub("<wbr", html)
            met.append(DEPTH_LIMIT)
        return html, tuple(met)


def has_many_attributes(html: str, limit: int) -> bool:
    """Tell whether an element may have more than ``limit`` attributes; those of html and body add up over the page."""
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
    """Write every start tag anew, with its first attributes in quotes that nothing can break out of."""
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
    """Return a bound on how many copies of formatting elements the tree of ``html`` has.

    Between two tags the standard may open again each formatting element that is left open. One counts as closed only
    when its end tag follows so closely that nothing between can take the end tag's meaning away.
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
