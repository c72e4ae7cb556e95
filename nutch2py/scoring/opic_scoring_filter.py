"""scoring-opic: each page distributes its cash in equal shares to the pages that it links to.

A variant of Abiteboul, Preda, Cobena: Adaptive On-Line Page Importance Computation (WWW 2003). All arithmetic is
32-bit: a double holds the sum, product and quotient of two 32-bit floats precisely enough that rounding it gives the
same float as Java's arithmetic.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import partial

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import ScoredLink, ScoringFilter
from nutch2py.records.cells import decode_float, encode_float, float32
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import MetadataKey, WebPage

_FLOAT = struct.Struct(">f")
# half the cost of calling the class
_create_link: Callable[[Sequence[object]], ScoredLink] = partial(tuple.__new__, ScoredLink)
_ZERO_CASH = encode_float(0.0)


def host_of_url(url: str) -> str:
    """Return the host of a URL in lower case, without user info and port; empty if it has none.

    >>> host_of_url("http://me:pw@Foo.COM:8983/x@y:1")
    'foo.com'
    >>> host_of_url("http://[::1]:80/")
    '[::1]'
    """
    _, found, rest = url.partition("://")
    if not found:
        return ""
    for end in "/?#":
        rest = rest.partition(end)[0]
    rest = rest.rpartition("@")[2]
    host = rest[: rest.find("]") + 1] if rest.startswith("[") else rest.partition(":")[0]
    return host.lower()


def sum_float32(start: float, scores: Sequence[float]) -> float:
    """Return the sum in the given order, rounded to 32 bits after every addition."""
    pack, unpack = _FLOAT.pack, _FLOAT.unpack
    total = start
    try:
        for score in scores:
            (total,) = unpack(pack(total + score))
    except OverflowError:  # above the largest float: infinity, as in Java
        total = start
        for score in scores:
            total = float32(total + score)
    return total


class OPICScoringFilter(ScoringFilter):
    """Scores by OPIC. ``mtdt:_csh_`` holds the cash, ``s:s`` the sum of all cash ever received."""

    java_class = "org.apache.nutch.scoring.opic.OPICScoringFilter"
    fields: frozenset[RecordField] = frozenset({WebPage.metadata, WebPage.score})
    generator_fields: frozenset[RecordField] = frozenset({WebPage.score})

    sorts_by_score = True
    ignores_seed_url = True

    def __init__(self, conf: Configuration) -> None:
        self.score_power = float32(conf.get_float("indexer.score.power", 0.5))
        self.internal_weight = float32(conf.get_float("db.score.link.internal", 1.0))
        self.external_weight = float32(conf.get_float("db.score.link.external", 1.0))
        self.counts_filtered_links = conf.get_bool("db.score.count.filtered", False)

    def injected_score(self, url: str, page: WebPage) -> None:
        """Give a seed its score as cash."""
        page.metadata[MetadataKey.CASH] = encode_float(page.score)

    def initial_score(self, url: str, page: WebPage) -> None:
        """Start at 0: the cash of inlinks adds up to the score."""
        page.score = 0.0
        page.metadata[MetadataKey.CASH] = _ZERO_CASH

    def generator_sort_value(self, url: str, page: WebPage, init: float) -> float:
        """Return score times ``init``."""
        return float32(page.score * init)

    def distribute(self, url: str, page: WebPage, links: list[ScoredLink], total: int) -> list[ScoredLink]:
        """Distribute all cash to the links; without links the cash is lost.

        A share is cash / ``total``. Links that an earlier filter dropped take a share only with
        ``db.score.count.filtered``. A page with sitemap links only distributes among these (Nutch 2 divides by 0 and
        distributes infinity).
        """
        cell = page.metadata.get(MetadataKey.CASH)
        cash = 0.0 if cell is None else decode_float(cell)
        if cash == 0.0:
            return links
        page.metadata[MetadataKey.CASH] = _ZERO_CASH
        if not links:
            return links
        shares = total if total > 0 and self.counts_filtered_links else min(total, len(links)) or len(links)
        unit = float32(cash / shares)
        internal, external = float32(unit * self.internal_weight), float32(unit * self.external_weight)
        if internal == external:
            return [_create_link((to, anchor, internal, distance)) for to, anchor, _, distance in links]
        host = host_of_url(url)
        return [
            ScoredLink(to, anchor, internal if host_of_url(to) == host else external, distance)
            for to, anchor, _, distance in links
        ]

    def update_score(self, url: str, page: WebPage, inlinks: Sequence[ScoredLink]) -> None:
        """Add the sum of ``inlinks`` (descending) to the score and to the cash."""
        received = sum_float32(0.0, [score for _, _, score, _ in inlinks])
        page.score = float32(page.score + received)
        metadata = page.metadata
        cell = metadata.get(MetadataKey.CASH)
        cash = 0.0 if cell is None else decode_float(cell)
        metadata[MetadataKey.CASH] = encode_float(cash + received)

    def indexer_score(self, url: str, page: WebPage, init: float) -> float:
        """Return score to the power ``indexer.score.power``, times ``init``; 0 for a score without such a power."""
        try:
            damped = math.pow(page.score, self.score_power)
        except ValueError:  # a negative score, or 0 to a negative power
            return 0.0
        return float32(float32(damped) * init)
