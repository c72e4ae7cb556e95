"""Chooses weights by the tuning halves of all collections together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.ranking.collection import TUNE
from bench.ranking.measured import PRECISION, QUALITY, Measured, Way
from bench.ranking.ranks import FORMULAS, USUAL, Formula
from bench.ranking.variants import Text, Weight
from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.pagerank.graph_links import GraphLinkRules

OPIC = (0.0, 0.02, 0.05)
PAGERANK = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7)
LOSS = 0.01
"""Allowed loss of quality or precision in a collection without authority, as a share."""
FIELDS = "title^{} anchor^{} content url^1.5 host^2"

TEXT = Way()
BEFORE = Way(weight=Weight(0.02, 0.02))
"""The default chosen by the nine sites alone."""


def default() -> Way:
    """Return the ranking of the default configuration."""
    conf = Configuration.load()
    powers = DocumentWeights(conf).powers
    formula = Formula(conf.get_float("pagerank.external.weight", 0.99), GraphLinkRules(conf).navigation_share)
    return Way(weight=Weight(powers.get("boost", 0.0), powers.get("pagerank", 0.0), formula))


def weights() -> Iterator[Way]:
    """Return all candidate weights of pages."""
    for opic in OPIC:
        yield Way(weight=Weight(opic, 0.0, USUAL))
        yield from (Way(weight=Weight(opic, power, formula)) for formula in FORMULAS for power in PAGERANK)


def texts(weight: Weight) -> Iterator[Way]:
    """Return all candidate weights of fields and phrases, with a weight of pages."""
    for together in ("0", "1", "2", "3", "4"):
        yield Way(Text(settings=(("index.search.together", together),)), weight)
    for title, anchor in ((2, 2), (4, 2), (6, 2), (3, 0), (3, 1), (3, 3), (3, 4)):
        fields = FIELDS.format(title, anchor).replace("anchor^0 ", "")
        yield Way(Text(settings=(("index.search.fields", fields),)), weight)


class Tried(NamedTuple):
    """Value of a ranking: the mean of ``shares`` of the ceiling of quality, and whether it is ``harmless``."""

    way: Way
    value: float
    shares: dict[str, float]
    harmless: bool


def tried(ways: Iterator[Way], collections: Sequence[Measured]) -> list[Tried]:
    """Return the rankings, best first; those that harm collections without authority come last.

    Generated webs count as one collection, by their mean.
    """
    found = []
    for way in ways:
        shares = {each.collection.name: each.share(way, TUNE, QUALITY) for each in collections}
        found.append(Tried(way, _mean(shares), shares, all(_harmless(way, each) for each in collections)))
    return sorted(found, key=lambda each: (not each.harmless, -each.value))


def _mean(shares: dict[str, float]) -> float:
    generated = [share for name, share in shares.items() if name.startswith("planted")]
    others = [share for name, share in shares.items() if not name.startswith("planted")]
    parts = [*others, *([sum(generated) / len(generated)] if generated else [])]
    return sum(parts) / len(parts)


def _harmless(way: Way, measured: Measured) -> bool:
    if measured.collection.authority:
        return True
    plain = Way(way.text)
    return all(
        measured.share(way, TUNE, measure) >= (1 - LOSS) * measured.share(plain, TUNE, measure)
        for measure in (QUALITY, PRECISION)
    )
