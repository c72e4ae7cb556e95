"""Directives in the head of an HTML page: robots, refresh, pragma, base (Nutch's HTMLMetaProcessor)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from nutch2py.interfaces import HTMLMetaTags
from nutch2py.parser.html.dom import attribute_value, is_in_svg_or_math
from nutch2py.parser.links.url_reference import clean_reference
from nutch2py.parser.robots_directives import parse_meta_robots
from nutch2py.url.url_parts import resolve_url

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# the shared declarative refresh steps of the HTML standard: a negative time is none
_REFRESH_CONTENT = re.compile(
    r"[\t\n\f\r ]*+([0-9]*+)(?:(?<=[0-9])|(?=\.))[0-9.]*+(?:$|(?=[;,\t\n\f\r ]))[\t\n\f\r ]*+[;,]?[\t\n\f\r ]*+"
    r"(?:url[\t\n\f\r ]*+=[\t\n\f\r ]*+)?+(?:\"([^\"]*+)|'([^']*+)|(.*+))",
    re.IGNORECASE | re.DOTALL,
)
_MAX_SECONDS_DIGITS = 9  # a longer delay has no effect in practice


def read_meta_tags(
    elements: Iterable[LexborNode], url: str, encoding: str = "utf-8", agent_names: Collection[str] = ()
) -> HTMLMetaTags:
    """Return the directives of a page fetched from ``url``.

    Only the head is read: text that users write into a body (comments, posts) must not control the crawler. A base
    counts anywhere, since browsers resolve links against it. A base or refresh in a ``noscript`` is ignored: it is for
    browsers without scripts. A refresh is resolved against a preceding base, its query in the page's ``encoding``.

    Args:
        elements: The ``meta`` and ``base`` elements of :func:`nutch2py.parser.html.dom.head_elements`.
        url: URL of the page.
        encoding: Encoding of the page.
        agent_names: Names of this crawler, in lower case, whose directives count like those of ``robots``.
    """
    tags = HTMLMetaTags()
    elements = [*elements]
    outside: set[int] = set()
    base: str | None = None
    for node in elements:
        attributes = node.attributes
        if node.tag == "base":
            href = attributes.get("href")
            if href is not None and not _in_noscript(node, outside) and not is_in_svg_or_math(node):
                tags.base_href = _resolve_href(url, href) or tags.base_href
                base = base or find_document_base([node], url)
            continue
        content = attributes.get("content")
        if content is None:
            continue
        name = attributes.get("name")
        if name is not None:
            name = name.lower()
            tags.general.setdefault(name, []).append(content)
            if name == "robots" or name in agent_names:
                _apply_robots(tags, content)
        equivalent = attributes.get("http-equiv")
        if equivalent is not None:
            equivalent = equivalent.lower()
            tags.http_equiv[equivalent] = content
            if equivalent == "pragma":
                tags.no_cache |= "no-cache" in content.lower()
            elif equivalent == "refresh" and not _in_noscript(node, outside):
                _apply_refresh(tags, content, url, base or url, encoding)
    return tags


def find_document_base(elements: Iterable[LexborNode], url: str) -> str:
    """Return the base URL of a page's links: its first ``base href``, resolved, else its own URL."""
    outside: set[int] = set()
    for node in elements:
        href = node.attributes.get("href") if node.tag == "base" else None
        if href is not None and not _in_noscript(node, outside) and not is_in_svg_or_math(node):
            base = _resolve_href(url, href.strip())
            return base if base and not base.startswith(("data:", "javascript:")) else url
    return url


def find_canonical_link(tree: LexborHTMLParser, elements: Iterable[LexborNode], url: str) -> str | None:
    """Return the absolute URL of the first valid ``link rel=canonical`` without its fragment, or None.

    Only the head counts (RFC 6596). ``elements``: those of :func:`find_document_base`.
    """
    for node in () if tree.head is None else tree.head.css("link[rel][href]"):
        attributes = node.attributes
        if "canonical" in attribute_value(attributes, "rel").lower().split():
            found = _resolve_href(find_document_base(elements, url), attribute_value(attributes, "href").strip())
            if found is not None and found.startswith(("http://", "https://")):
                return found.partition("#")[0]
    return None


def _apply_robots(tags: HTMLMetaTags, content: str) -> None:
    directives = parse_meta_robots(content)
    tags.no_index |= "noindex" in directives
    tags.no_follow |= "nofollow" in directives
    tags.no_cache |= "noarchive" in directives


def _in_noscript(node: LexborNode, outside: set[int]) -> bool:
    """Return whether a node is inside a noscript. ``outside``: cache of nodes known to be outside of any."""
    parent = node.parent
    while parent is not None and parent.mem_id not in outside:
        if parent.tag == "noscript":
            return True
        outside.add(parent.mem_id)
        parent = parent.parent
    return False


def _apply_refresh(tags: HTMLMetaTags, content: str, url: str, base: str, encoding: str) -> None:
    """Read ``seconds; url=target``. Without a valid target the page refreshes itself."""
    found = _REFRESH_CONTENT.match(content)
    if found is None or len(found[1]) > _MAX_SECONDS_DIGITS:
        return
    seconds = int(found[1] or 0)
    target = (found[2] or found[3] or found[4] or "").strip()
    tags.refresh_time = seconds
    tags.refresh_href = (_resolve_href(base, target, encoding) if target else None) or url


def _resolve_href(base: str, href: str, encoding: str = "utf-8") -> str | None:
    try:
        return resolve_url(base, clean_reference(href, encoding))
    except ValueError:
        return None
