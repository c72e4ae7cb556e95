"""Robots directives of pages: the header X-Robots-Tag, the meta element robots, and the policy for cached copies.

The header applies to content of any type, the element to HTML. A page with noarchive gets the metadata entry
``caching.forbidden`` with the value of ``parser.caching.forbidden.policy``: none, all or content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import MetadataKey, WebPage

_HEADER = "X-Robots-Tag"
_VALUED_DIRECTIVES = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})
# e.g. max-image-preview:none
_VALUED_DIRECTIVE = re.compile(r"\bmax-[a-z-]{1,40}+[\t\n\f\r ]{0,9}:[\t\n\f\r ]{0,9}[^\t\n\f\r ,;]*+")
_DIRECTIVE_SEPARATOR = re.compile(r"[^a-z-]+")
_OBEYED_DIRECTIVES = frozenset({"noindex", "nofollow", "noarchive"})


def agent_names(conf: Configuration) -> frozenset[str]:
    """Return the names, in lower case, under which the header may address this crawler."""
    names = [conf.get_trimmed("http.agent.name"), *conf.get_strings("http.robots.agents")]
    return frozenset(name.lower() for name in names if name)


def parse_x_robots_tag(headers: Mapping[str, str], agent_names: Iterable[str]) -> frozenset[str]:
    """Return which of noindex, nofollow and noarchive the headers give to a crawler of these names.

    A directive after ``name:`` applies to that crawler only, and so do the following ones up to the next name.

    >>> sorted(parse_x_robots_tag({"X-Robots-Tag": "nofollow, otherbot: noindex, noarchive"}, ["mybot"]))
    ['nofollow']
    """
    value = headers.get(_HEADER) or next((headers[name] for name in headers if name.lower() == _HEADER.lower()), "")
    if not value:
        return frozenset()
    mine = {name.lower() for name in agent_names}
    found: set[str] = set()
    addressed = True
    for part in value.lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in _VALUED_DIRECTIVES:
            addressed = name.strip() in mine
            part = rest
        if addressed:
            found.add(part.strip())
    return _obeyed_directives(found)


def reads_robots_header(conf: Configuration) -> bool:
    """Return whether X-Robots-Tag counts (``parser.robots.header``); Nutch does not read it."""
    return conf.get_bool("parser.robots.header", True)


def parse_meta_robots(content: str) -> frozenset[str]:
    """Return which of noindex, nofollow and noarchive the content of a meta element robots has."""
    return _obeyed_directives(_DIRECTIVE_SEPARATOR.split(_VALUED_DIRECTIVE.sub(" ", content.lower())))


def _obeyed_directives(words: Iterable[str]) -> frozenset[str]:
    found = frozenset(words)
    return found & _OBEYED_DIRECTIVES | (frozenset({"noindex", "nofollow"}) if "none" in found else frozenset())


class CachingPolicy:
    """Stores in a page that it forbids cached copies, with ``parser.caching.forbidden.policy`` as the value."""

    def __init__(self, conf: Configuration) -> None:
        self._policy = conf.get("parser.caching.forbidden.policy", "content").encode()

    def forbid(self, page: WebPage) -> None:
        """Store that the page forbids cached copies."""
        page.metadata[MetadataKey.CACHING_FORBIDDEN] = self._policy

    def allow(self, page: WebPage) -> None:
        """Remove the entry of an earlier version of the page; Nutch never does."""
        page.metadata.pop(MetadataKey.CACHING_FORBIDDEN, None)


def caching_restriction(page: WebPage) -> str | None:
    """Return the policy that applies to cached copies of a page, ``all`` or ``content``; None if it allows them."""
    policy = page.metadata.get(MetadataKey.CACHING_FORBIDDEN)
    return None if policy is None or policy == b"none" else policy.decode("utf-8", "replace")
