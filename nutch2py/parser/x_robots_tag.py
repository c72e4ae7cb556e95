"""Robots directives of the header X-Robots-Tag, which apply to content of any type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nutch2py.conf.configuration import Configuration

_VALUED_DIRECTIVES = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})
_OBEYED_DIRECTIVES = frozenset({"noindex", "nofollow", "noarchive"})


def agent_names(conf: Configuration) -> frozenset[str]:
    """Return the names, in lower case, under which the header may address this crawler."""
    names = [conf.get_trimmed("http.agent.name"), *conf.get_strings("http.robots.agents")]
    return frozenset(name.lower() for name in names if name)


def read_robots_directives(headers: Mapping[str, str], agent_names: Iterable[str]) -> frozenset[str]:
    """Return which of noindex, nofollow and noarchive the headers give to a crawler of these names.

    A directive after ``name:`` applies to that crawler only, and so do the following ones up to the next name.

    >>> sorted(read_robots_directives({"X-Robots-Tag": "nofollow, otherbot: noindex, noarchive"}, ["mybot"]))
    ['nofollow']
    """
    value = headers.get("X-Robots-Tag") or headers.get("x-robots-tag")
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
            directive = part.strip()
            found |= {"noindex", "nofollow"} if directive == "none" else {directive} & _OBEYED_DIRECTIVES
    return frozenset(found)
