"""What updatedb passes from map to reduce: the links of pages, turned round, as lines that are made and read in bulk.

A value begins with what it is: a page of the batch, a link to the row, a page that has dropped its link to it. Values
sort in this order, and links by descending score, as 16 digits stand before their JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from nutch2py.interfaces import ScoredLink
from nutch2py.mapreduce.mrjob_protocols import decode_sorted_text, descending_sort_key
from nutch2py.url.keys import reverse_urls

make_scored_link: Callable[[Sequence[Any]], ScoredLink] = partial(tuple.__new__, ScoredLink)
"""``ScoredLink(*fields)`` at half its cost, which each link of a batch pays twice."""
PAGE_KIND, _LINK_KIND, DROPPED_KIND = "!", "1", "2"
_PAGE_BYTE, _LINK_BYTE = ord(PAGE_KIND), ord(_LINK_KIND)
_LINK_HEAD_LENGTH = 17  # characters before the JSON of a link


class InvertedLinks(NamedTuple):
    """Links of a page, turned round: the row keys they lead to, and the values for these between what all share."""

    targets: Sequence[str]
    values: Sequence[str]
    prefix: str = ""
    suffix: str = ""


def invert_links(source: str, links: Sequence[ScoredLink]) -> InvertedLinks:
    """Return what goes to the rows that a page links to; links that are no URLs are left out."""
    if not links:
        return InvertedLinks((), ())
    urls, anchors, scores, distances = zip(*links, strict=True)
    found = reverse_urls(urls)
    targets = [key for key in found if key is not None]
    if len(targets) < len(found):
        kept = [link for link, key in zip(links, found, strict=True) if key is not None]
        _, anchors, scores, distances = zip(*kept, strict=True) if kept else ((), (), (), ())
    page = _to_json(source)
    if len(set(scores)) == len(set(distances)) == 1:  # most pages give each link the same
        before = f"{_LINK_KIND}{descending_sort_key(scores[0])}[{page},"
        return InvertedLinks(
            targets, _to_json_each(anchors), before, f",{_to_json(scores[0])},{_to_json(distances[0])}]"
        )
    each = zip(scores, _to_json_each(anchors), distances, strict=True)
    return InvertedLinks(
        targets,
        [f"{_LINK_KIND}{descending_sort_key(s)}[{page},{anchor},{_to_json(s)},{_to_json(d)}]" for s, anchor, d in each],
    )


class RowLinks(NamedTuple):
    """What the shuffle brought for one row."""

    is_batch_page: bool
    links: list[ScoredLink]
    dropped_sources: list[str]


def collect_row_links(values: Iterator[bytes], max_links: int) -> RowLinks:
    """Read what came for one row; of its links the ``max_links`` of highest score are taken, as in Nutch."""
    page = False
    links: list[bytes] = []
    dropped: list[str] = []
    for value in values:
        kind = value[0]
        if kind == _LINK_BYTE:
            if len(links) < max_links:
                links.append(value[_LINK_HEAD_LENGTH:])
        elif kind == _PAGE_BYTE:
            page = True
        else:
            dropped.append(_from_json(value[1:]))
    found = [*map(make_scored_link, _from_json(b"[%b]" % b",".join(links)))] if links else []
    return RowLinks(page, found, dropped)


def _to_json(value: object) -> str:
    return orjson.dumps(value).decode()


def _to_json_each(texts: Sequence[str]) -> Sequence[str]:
    """Return each text in JSON: made at once, a line each, for there is no line feed in JSON's texts."""
    return orjson.dumps(texts, option=orjson.OPT_INDENT_2).decode()[4:-2].split(",\n  ") if texts else ()


def _from_json(escaped: bytes) -> Any:
    """Return what :func:`_to_json` was given, behind the shuffle."""
    return orjson.loads(decode_sorted_text(escaped) if b"\\" in escaped else escaped)
