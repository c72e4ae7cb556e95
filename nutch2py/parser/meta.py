"""Directives in the head of an HTML page: robots, refresh, pragma, base (Nutch's HTMLMetaProcessor)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nutch2py.contracts import HTMLMetaTags
from nutch2py.url.parts import parse_url, resolve

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# Integer.parseInt: a sign, then decimal digits and nothing else, within 32 bits
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_MAX_INT = 2**31 - 1


def read_meta_tags(elements: Iterable[LexborNode], url: str) -> HTMLMetaTags:
    """Return the directives of a page fetched from ``url``. ``elements``: the ``meta`` and ``base`` of its head.

    Only the head counts: what users write into a body (comments, posts) must not steer the crawler.
    """
    tags = HTMLMetaTags()
    for node in elements:
        attributes = node.attributes
        if node.tag == "base":
            href = attributes.get("href")
            if href is not None:
                tags.base_href = _resolved(url, href) or tags.base_href
            continue
        content = attributes.get("content")
        if content is None:
            continue
        name = attributes.get("name")
        if name is not None:
            name = name.lower()
            tags.general.setdefault(name, []).append(content)
            if name == "robots":
                _robots(tags, content.lower())
        equivalent = attributes.get("http-equiv")
        if equivalent is not None:
            equivalent = equivalent.lower()
            tags.http_equiv[equivalent] = content
            if equivalent == "pragma":
                tags.no_cache |= "no-cache" in content.lower()
            elif equivalent == "refresh":
                _refresh(tags, content, url)
    return tags


def absolute_base(elements: Iterable[LexborNode]) -> str | None:
    """Return the page's base for its links: the first ``base href`` of the head that is an absolute URL, else None.

    A relative one is passed over, as Nutch 2 does (DOMContentUtils.getBase), though the HTML standard would resolve it.
    """
    for node in elements:
        href = (node.attributes.get("href") or "").strip() if node.tag == "base" else ""
        if href:
            try:
                parse_url(href)
            except ValueError:
                continue
            return href
    return None


def canonical_link(tree: LexborHTMLParser, base: str) -> str | None:
    """Return the absolute URL of the first ``link rel=canonical`` that is one, without its fragment; None without.

    Only the head counts, as RFC 6596 and search engines have it.
    """
    for node in () if tree.head is None else tree.head.css("link[rel][href]"):
        attributes = node.attributes
        if "canonical" in (attributes["rel"] or "").lower().split():
            url = _resolved(base, (attributes["href"] or "").strip())
            if url is not None and url.startswith(("http://", "https://")):
                return url.partition("#")[0]
    return None


def _robots(tags: HTMLMetaTags, directives: str) -> None:
    if "none" in directives:
        tags.no_index = tags.no_follow = True
    tags.no_index |= "noindex" in directives
    tags.no_follow |= "nofollow" in directives
    tags.no_cache |= "noarchive" in directives


def _refresh(tags: HTMLMetaTags, content: str, url: str) -> None:
    """Read ``seconds; url=target``. Without a target that is a URL the page refreshes itself."""
    time, semicolon, _ = content.partition(";")
    if _INTEGER.fullmatch(time) and abs(int(time)) <= _MAX_INT:
        tags.refresh_time = int(time)
    if tags.refresh_time is None:
        return
    target = None
    if semicolon:
        start = content.lower().find("url=")
        target = _resolved(url, content[start + 4 if start >= 0 else content.index(";") + 1 :])
    tags.refresh_href = target or url


def _resolved(base: str, href: str) -> str | None:
    try:
        return resolve(base, href)
    except ValueError:
        return None
