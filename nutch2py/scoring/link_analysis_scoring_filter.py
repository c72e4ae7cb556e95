"""scoring-link: uses the score that a link analysis wrote into the table (``s:s``), unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import ScoredLink, ScoringFilter
from nutch2py.records.cells import float32
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage


class LinkAnalysisScoringFilter(ScoringFilter):
    """Sorts and boosts by the stored score; ``link.analyze.normalize.score`` multiplies the boost."""

    java_class = "org.apache.nutch.scoring.link.LinkAnalysisScoringFilter"
    fields: frozenset[RecordField] = frozenset({WebPage.score})

    sorts_by_score = True
    ignores_seed_url = True

    def __init__(self, conf: Configuration) -> None:
        self.normalization = float32(conf.get_float("link.analyze.normalize.score", 1.0))

    def injected_score(self, url: str, page: WebPage) -> None:
        """Keep the seed's score."""

    def initial_score(self, url: str, page: WebPage) -> None:
        """Start at 0, until the next analysis."""
        page.score = 0.0

    def generator_sort_value(self, url: str, page: WebPage, init: float) -> float:
        """Return score times ``init``."""
        return float32(page.score * init)

    def distribute(self, url: str, page: WebPage, links: list[ScoredLink], total: int) -> list[ScoredLink]:
        """Return the links unchanged."""
        return links

    def update_score(self, url: str, page: WebPage, inlinks: Sequence[ScoredLink]) -> None:
        """Keep the score: only the analysis changes it."""

    def indexer_score(self, url: str, page: WebPage, init: float) -> float:
        """Return the normalized score; as in Nutch, ``init`` is ignored."""
        return float32(self.normalization * page.score)
