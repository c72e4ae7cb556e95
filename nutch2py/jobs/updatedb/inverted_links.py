"""Inverted links: what updatedb passes from map to reduce, as lines that are written and read in bulk.

The first character of a value is its kind: a page of the batch, a link to the row, a page that has dropped its link to
the row, or a page whose site names the row as a sitemap. Values sort in this order, and links by descending score: a
link has 16 digits before its JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from nutch2py.interfaces import ScoredLink
from nutch2py.mapreduce.mrjob_protocols import decode_sorted_text, descending_sort_key
from nutch2py.url.keys import reverse_urls

make_scored_link: Callable[[Sequence[object]], ScoredLink] = partial(tuple.__new__, ScoredLink)
"""``ScoredLink(*fields)`` at half the cost; it is called twice for each link of a batch."""
PAGE_KIND, _LINK_KIND, DROPPED_KIND, SITEMAP_KIND = "!", "1", "2", "3"
_PAGE_BYTE, _LINK_BYTE, _SITEMAP_BYTE = ord(PAGE_KIND), ord(_LINK_KIND), ord(SITEMAP_KIND)
_LINK_HEAD_LENGTH = 17  # characters before the JSON of a link


class InvertedLinks(NamedTuple):
    """Inverted links of a page: the row keys of the targets, and their values between a common prefix and suffix."""

    targets: Sequence[str]
    values: Sequence[str]
    prefix: str = ""
    suffix: str = ""


def invert_links(source: str, links: Sequence[ScoredLink]) -> InvertedLinks:
    """Return the values for the rows that a page links to. Links that are not valid URLs are skipped."""
    if not links:
        return InvertedLinks((), ())
    urls, anchors, scores, distances = zip(*links, strict=True)
    keys = reverse_urls(urls)
    targets = [key for key in keys if key is not None]
    if len(targets) < len(keys):
        kept = [link for link, key in zip(links, keys, strict=True) if key is not None]
        _, anchors, scores, distances = zip(*kept, strict=True) if kept else ((), (), (), ())
    page = _to_json(source)
    if len(set(scores)) == len(set(distances)) == 1:  # most pages give all links the same score
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
    """Values of one row, after the shuffle. ``is_sitemap``: its site names it as a sitemap."""

    is_batch_page: bool
    links: list[ScoredLink]
    dropped_sources: list[str]
    is_sitemap: bool = False


def collect_row_links(values: Iterator[bytes], max_links: int) -> RowLinks:
    """Collect the values of one row, with the ``max_links`` links of the highest score, as in Nutch."""
    page = is_sitemap = False
    links: list[bytes] = []
    dropped: list[str] = []
    for value in values:
        kind = value[0]
        if kind == _LINK_BYTE:
            if len(links) < max_links:
                links.append(value[_LINK_HEAD_LENGTH:])
        elif kind == _PAGE_BYTE:
            page = True
        elif kind == _SITEMAP_BYTE:
            is_sitemap = True
        else:
            dropped.append(_from_json(value[1:]))
    scored = [*map(make_scored_link, _from_json(b"[%b]" % b",".join(links)))] if links else []
    return RowLinks(page, scored, dropped, is_sitemap)


def _to_json(value: object) -> str:
    return orjson.dumps(value).decode()


def _to_json_each(texts: Sequence[str]) -> Sequence[str]:
    """Return each text as JSON, encoded in one call: JSON strings contain no line feed, so each is one line."""
    return orjson.dumps(texts, option=orjson.OPT_INDENT_2).decode()[4:-2].split(",\n  ") if texts else ()


def _from_json(escaped: bytes) -> Any:
    """Return the value that :func:`_to_json` encoded, after the shuffle."""
    return orjson.loads(decode_sorted_text(escaped) if b"\\" in escaped else escaped)
