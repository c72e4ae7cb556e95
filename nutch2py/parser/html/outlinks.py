"""Extracts the links of an HTML page in document order (Nutch's DOMContentUtils.getOutlinks)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import Outlink
from nutch2py.parser.html.dom import anchor_text, attribute_value, remove_scripts
from nutch2py.parser.links.url_reference import clean_reference
from nutch2py.url.url_parts import parse_url, url_resolver

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_LINK_ATTRIBUTES = {
    "a": "href",
    "area": "href",
    "form": "action",
    "frame": "src",
    "iframe": "src",
    "script": "src",
    "link": "href",
    "img": "src",
}
# without content these elements are artefacts that no reader can follow
_NEEDS_CONTENT = frozenset({"a", "form"})
# <object> allows nested links, and the anchor of each includes the text of the inner ones
MAX_ANCHOR_CHARS = 2_000_000
"""Characters of the anchors of a page in all."""
_TAGS_WITHOUT_ANCHOR = frozenset({"area", "frame", "script", "link", "img"})
_EXTRA_LINK = re.compile(r"\A([a-z][a-z0-9-]*+)/([a-z][a-z0-9-]*+)\Z")
_SRCSET_CANDIDATE = re.compile(r"([^\s,]\S*+)[^,]*+")  # HTML standard, section 4.8.4.2.2: a URL, then its descriptors


class OutlinkCollector:
    """Collects links by ``parser.html.outlinks.ignore_tags``, ``….more`` and ``parser.html.form.use_action``."""

    def __init__(self, conf: Configuration) -> None:
        ignored = {tag.lower() for tag in conf.get_strings("parser.html.outlinks.ignore_tags")}
        use_form = conf.get_bool("parser.html.form.use_action")
        ignored.discard("form")
        self.link_attributes = {
            tag: name for tag, name in _LINK_ATTRIBUTES.items() if tag not in ignored and (use_form or tag != "form")
        }
        self._as_browser = conf.get_bool("parser.html.outlinks.as.browser", True)
        self._extra_links = [_parse_extra_link(named) for named in conf.get_strings("parser.html.outlinks.more")]
        # compiled once: matches only elements that have the attribute
        self._selector = ",".join(f"{tag}[{name}]" for tag, name in self.link_attributes.items())

    def collect(self, tree: LexborHTMLParser, base: str, encoding: str = "utf-8") -> tuple[list[Outlink], int]:
        """Return the links with their anchors, and the number of skipped nofollow links.

        Removes scripts and styles from the tree. Also skips forms that post, and targets that cannot be resolved
        against ``base``. ``rel`` is a list of words, as in Nutch 1; Nutch 2 recognizes nofollow only as the whole
        value. ``encoding``: the page's encoding by its stored name, in which non-ASCII queries are escaped.
        """
        found, nofollow = [], 0
        last_anchor = ""
        for node in tree.css(self._selector) if self._selector else ():
            tag = node.tag or ""
            first = node.first_child if tag in _NEEDS_CONTENT else None
            if first is None and tag in _NEEDS_CONTENT:
                continue
            attributes = node.attributes
            name = self.link_attributes[tag]
            target = attributes.get(name)
            if target is None:
                target = attribute_value(attributes, name)
            if tag == "a":
                if target == last_anchor and first is not None and first.is_empty_text_node and first.next is None:
                    continue  # the parser reopens an unclosed anchor in each following block: not a separate link
                last_anchor = target
            rel = attributes.get("rel")
            if rel and "nofollow" in rel.lower().split():
                nofollow += 1
                continue
            if tag == "form" and (attributes.get("method") or "").lower() == "post":
                continue
            found.append((None if tag in _TAGS_WITHOUT_ANCHOR else node, target))
        for tag, name in self._extra_links:
            for node in tree.css(f"{tag}[{name}]"):
                value = attribute_value(node.attributes, name)
                found += [
                    (None, each) for each in (_srcset_urls(value) if name.endswith("srcset") else [value]) if each
                ]
        remove_scripts(tree)
        resolve = url_resolver(parse_url(base), as_browser=self._as_browser)
        outlinks = []
        room = MAX_ANCHOR_CHARS
        for element, target in found:
            try:
                if not (target.isascii() and target.isprintable() and "\\" not in target):  # plain references are clean
                    target = clean_reference(target, encoding)
                url = resolve(target)
            except ValueError:
                continue
            anchor = "" if element is None or room <= 0 else anchor_text(element)
            room -= len(anchor)
            outlinks.append(Outlink(url, anchor))
        return outlinks, nofollow


def _parse_extra_link(text: str) -> tuple[str, str]:
    """Return element and attribute of an entry of ``parser.html.outlinks.more``."""
    found = _EXTRA_LINK.fullmatch(text)
    if found is None:
        raise ConfigurationError(
            "parser.html.outlinks.more: write element/attribute in lower case, such as img/srcset, separated by commas"
        )
    return found[1], found[2]


def _srcset_urls(value: str) -> list[str]:
    """Return the URLs of a ``srcset``.

    >>> _srcset_urls("a.png 1x, b,c.png 2x,d.png")
    ['a.png', 'b,c.png', 'd.png']
    """
    return [found[1].rstrip(",") for found in _SRCSET_CANDIDATE.finditer(value)]
