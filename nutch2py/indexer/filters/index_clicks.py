"""index-clicks: the click factor of a page, learned from the search log (``searchlog -learn``)."""

from __future__ import annotations

from functools import cached_property

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import IndexingFilter
from nutch2py.records.document import NutchDocument, format_java_float
from nutch2py.records.webpage import DerivedRow, WebPage
from nutch2py.table import DataStore, TableQuery, open_store, prefix_range

CLICK_FACTORS_PREFIX = "search/clicks/"
"""Prefix of the rows of the derived table with click factors by document id, as JSON in ``data``."""


def read_click_factors(store: DataStore[DerivedRow]) -> dict[str, float]:
    """Return the learned factors by document id; empty before the first ``searchlog -learn``."""
    factors = dict[str, float]()
    if store.exists():
        for _, row in store.scan(TableQuery(frozenset({DerivedRow.data}), prefix_range(CLICK_FACTORS_PREFIX))):
            try:
                factors |= msgspec.json.decode(row.data or b"", type=dict[str, float])
            except msgspec.MsgspecError:
                continue  # of a later version
    return factors


class ClickIndexingFilter(IndexingFilter):
    """Adds ``clicks`` to documents with a learned factor: 1 for as many clicks as expected at the shown positions."""

    fields = frozenset()

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf

    @cached_property
    def factors(self) -> dict[str, float]:
        """Factors by document id."""
        return read_click_factors(open_store(self.conf, DerivedRow))

    def filter(self, document: NutchDocument, url: str, page: WebPage) -> NutchDocument | None:
        """Add the field."""
        factor = self.factors.get(document.get("id") or "")
        if factor is not None:
            document.add("clicks", format_java_float(factor))
        return document
