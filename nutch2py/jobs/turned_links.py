"""What updatedb passes from map to reduce: the links of pages, turned round, as lines that are made and read in bulk.

A value begins with what it is: a page of the batch, a link to the row, a page that has dropped its link to it. Values
sort in this order, and links by descending score, as 16 digits stand before their JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from nutch2py.contracts import ScoredLink
from nutch2py.mapreduce.protocol import descending, text_of
from nutch2py.url.keys import reverse_urls

new_link: Callable[[Sequence[Any]], ScoredLink] = partial(tuple.__new__, ScoredLink)
"""``ScoredLink(*fields)`` at half its cost, which each link of a batch pays twice."""
PAGE, _LINK, DROPPED = "!", "1", "2"
_IS_PAGE, _IS_LINK = ord(PAGE), ord(_LINK)
_HEAD = 17  # characters before the JSON of a link


class Turned(NamedTuple):
    """Links of a page, turned round: the row keys they lead to, and the values for these between what all share."""

    targets: Sequence[str]
    values: Sequence[str]
    before: str = ""
    after: str = ""


def turn(source: str, links: Sequence[ScoredLink]) -> Turned:
    """Return what goes to the rows that a page links to; links that are no URLs are left out."""
    if not links:
        return Turned((), ())
    urls, anchors, scores, distances = zip(*links, strict=True)
    found = reverse_urls(urls)
    targets = [key for key in found if key is not None]
    if len(targets) < len(found):
        kept = [link for link, key in zip(links, found, strict=True) if key is not None]
        _, anchors, scores, distances = zip(*kept, strict=True) if kept else ((), (), (), ())
    page = _json(source)
    if len(set(scores)) == len(set(distances)) == 1:  # most pages give each link the same
        before = f"{_LINK}{descending(scores[0])}[{page},"
        return Turned(targets, _json_of_each(anchors), before, f",{_json(scores[0])},{_json(distances[0])}]")
    each = zip(scores, _json_of_each(anchors), distances, strict=True)
    return Turned(targets, [f"{_LINK}{descending(s)}[{page},{anchor},{_json(s)},{_json(d)}]" for s, anchor, d in each])


class Group(NamedTuple):
    """What the shuffle brought for one row."""

    page: bool
    links: list[ScoredLink]
    dropped: list[str]


def collect(values: Iterator[bytes], most: int) -> Group:
    """Read what came for one row; of its links the ``most`` of highest score are taken, as in Nutch."""
    page = False
    links: list[bytes] = []
    dropped: list[str] = []
    for value in values:
        kind = value[0]
        if kind == _IS_LINK:
            if len(links) < most:
                links.append(value[_HEAD:])
        elif kind == _IS_PAGE:
            page = True
        else:
            dropped.append(_read_json(value[1:]))
    found = [*map(new_link, _read_json(b"[%b]" % b",".join(links)))] if links else []
    return Group(page, found, dropped)


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _json_of_each(texts: Sequence[str]) -> Sequence[str]:
    """Return each text in JSON: made at once, a line each, for there is no line feed in JSON's texts."""
    return orjson.dumps(texts, option=orjson.OPT_INDENT_2).decode()[4:-2].split(",\n  ") if texts else ()


def _read_json(escaped: bytes) -> Any:
    """Return what :func:`_json` was given, behind the shuffle."""
    return orjson.loads(text_of(escaped) if b"\\" in escaped else escaped)
