"""Rankings of a collection: text matching × weights of documents.

The embedded index multiplies relevance by powers of fields when it is written. Here it is written once for each way to
segment Chinese, without weights. All matches of a query are read with their relevance, and weights are applied to them:
the same order, which :func:`agrees` verifies with an index written with the weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from bench.ranking.crawl import Crawl
from bench.ranking.ranks import USUAL, Formula
from nutch2py.conf.configuration import Configuration
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST, MOST = 0.0001, 10_000.0  # the bounds of a weight, as in the index writer
DEEP = 100_000
_EQUAL = 1e-6  # scores are numbers of 32 bits in the index


class Matches(NamedTuple):
    """The matching pages of a query in URL order: relevance of text, and the field boost, of OPIC."""

    urls: list[str]
    relevance: Floats
    opic: Floats

    @classmethod
    def of(cls, found: Iterable[tuple[str, float, float]]) -> Matches:
        """Return the matches from rows of URL, relevance and boost."""
        rows = sorted(found)
        return cls([row[0] for row in rows], np.array([row[1] for row in rows]), np.array([row[2] for row in rows]))


class Weight(NamedTuple):
    """Powers of OPIC and of PageRank, and its formula; ``hosts``: only the best page of each host."""

    opic: float = 0.0
    pagerank: float = 0.0
    formula: Formula = USUAL
    hosts: bool = False

    def __str__(self) -> str:
        names = {"OPIC": self.opic, "PageRank": self.pagerank}
        used = " × ".join(f"{name} ^ {power:g}" for name, power in names.items() if power) or "text alone"
        return f"{used} ({self.formula})" if self.pagerank else used


class Text(NamedTuple):
    """Text matching: Chinese as ``words`` or ``characters``; other search properties."""

    chinese: str = "words"
    settings: tuple[tuple[str, str], ...] = ()


def ranking(matches: Matches, weight: Weight, ranks: Mapping[str, float]) -> list[str]:
    """Return the URLs of the matches, best first."""
    factor = np.clip(matches.opic, LEAST, MOST) ** weight.opic
    if weight.pagerank:
        known = np.array([ranks.get(url, 1.0) for url in matches.urls])
        factor *= np.clip(known, LEAST, MOST) ** weight.pagerank
    order = np.argsort(-matches.relevance * np.clip(factor, LEAST, MOST), kind="stable")
    urls = [matches.urls[place] for place in order.tolist()]
    if not weight.hosts:
        return urls
    best: dict[str, str] = {}
    for url in urls:
        best.setdefault(urlsplit(url).netloc, url)
    return [*best.values()]


def matches(crawl: Crawl, text: Text) -> dict[str, Matches]:
    """Return all matches of each query of the collection by text alone; write a missing index."""
    settings = {
        "index.chinese": text.chinese,
        "index.weight.fields": "",
        "index.embedded.path": str(crawl.work / f"index-{text.chinese}"),
    }
    if not (crawl.work / f"index-{text.chinese}" / "meta.json").exists():
        crawl.run("index", "-reindex", properties=settings)
    return {
        query: Matches.of((str(hit["url"]), score, float(str(hit.get("boost", 1.0)))) for score, hit in found)
        for query, found in _searched(crawl, {**settings, **dict(text.settings)}, DEEP).items()
    }


def agrees(crawl: Crawl, settings: Mapping[str, str], expected: Mapping[str, Sequence[str]]) -> int:
    """Return for how many queries an index with these settings returns the expected first 20, in their order.

    Pages with equal scores, such as a page and its mirror, may be swapped.
    """
    written = {**settings, "index.embedded.path": str(crawl.work / "index-weighted")}
    crawl.run("pagerank", properties=settings)
    crawl.run("index", "-reindex", properties=written)
    found = _searched(crawl, written, 60)
    return sum(
        same_order([(score, str(hit["url"])) for score, hit in found[query]], urls, 20)
        for query, urls in expected.items()
    )


def same_order(found: Sequence[tuple[float, str]], expected: Sequence[str], n: int) -> bool:
    """Return whether the first ``n`` of scores and URLs have the expected order, except for equal scores."""
    expected = expected[:n]
    place = 0
    while place < min(n, len(found)):
        score = found[place][0]
        equal = {url for other, url in found[place:] if math.isclose(other, score, rel_tol=_EQUAL)}
        wanted = {*expected[place : place + len(equal)]}
        if not wanted <= equal or (len(wanted) < len(equal) and place + len(equal) < n):
            return False
        place += len(equal)
    return len(found[:n]) == len(expected)


def _searched(crawl: Crawl, settings: Mapping[str, str], rows: int) -> dict[str, list[tuple[float, dict[str, object]]]]:
    searcher = EmbeddedSearcher(Configuration.load(overrides={**crawl.properties, **settings}))
    return {
        query: [(hit.score, hit.fields) for hit in searcher.find_documents(query, rows)]
        for query in crawl.collection.all_queries
    }
