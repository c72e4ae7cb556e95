"""Click factors of documents: clicks divided by expected clicks, which takes the position bias out.

Users examine the first results more often than the later ones, so that plain click counts favour what already is on
top. The model (clicks over expected clicks) estimates the click rate of each position from the whole log. The expected
clicks of a document are the sum of these rates over the positions at which it was shown. Its factor is
``(clicks + prior) / (expected clicks + prior)``, limited to 0.5 to 2: a document that is clicked as often as others
at its positions has the factor 1, and the prior keeps documents that were rarely shown close to 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_clicks import CLICK_FACTORS_PREFIX
from nutch2py.records.webpage import DerivedRow
from nutch2py.search.search_log.logged_search import SearchSource
from nutch2py.search.search_log.search_log_store import SearchWithClicks, open_log_store, read_searches
from nutch2py.support.clock import MS_PER_DAY, now_ms
from nutch2py.support.reporting import print_output
from nutch2py.table import DataStore, prefix_range

_PRIOR_CLICKS = 10.0
"""Expected clicks at which a document's own clicks weigh as much as the assumption that it is like others."""
_PRIOR_IMPRESSIONS = 20.0
"""Impressions at which a position's own click rate weighs as much as that of all positions."""
_MIN_FACTOR, _MAX_FACTOR = 0.5, 2.0
_LEAST_CHANGE = 0.01
"""Factors closer to 1 are not stored."""
_MAX_DOCUMENTS = 50_000
_FACTORS_PER_ROW = 1_000


class ClickModel(NamedTuple):
    """Factors and click rates learned from a log.

    Attributes:
        factors: Factor by document id, for documents whose factor is not 1.
        click_rates: Click rate by position.
        searches: Number of searches.
        clicks: Number of clicks on results whose id was logged.
    """

    factors: dict[str, float]
    click_rates: dict[int, float]
    searches: int
    clicks: int


def learn_click_model(searches: Iterable[SearchWithClicks]) -> ClickModel:
    """Return the model of logged searches."""
    impressions, clicks_by_position = Counter[int](), Counter[int]()
    shown_at: defaultdict[str, Counter[int]] = defaultdict(Counter)
    clicks_of = Counter[str]()
    number = 0
    for search, _, clicks in searches:
        number += 1
        ids = dict(enumerate(search.ids, search.start + 1))
        impressions.update(ids.keys())
        for position, document_id in ids.items():
            shown_at[document_id][position] += 1
        clicked = [each.position for each in clicks if each.position in ids]
        clicks_by_position.update(clicked)
        clicks_of.update(ids[each] for each in clicked)
    rates = _click_rates(impressions, clicks_by_position)
    factors = dict[str, float]()
    for document_id, positions in shown_at.items():
        expected = sum(rates[position] * count for position, count in positions.items())
        factor = (clicks_of[document_id] + _PRIOR_CLICKS) / (expected + _PRIOR_CLICKS)
        factor = round(min(max(factor, _MIN_FACTOR), _MAX_FACTOR), 4)
        if abs(factor - 1) >= _LEAST_CHANGE:
            factors[document_id] = factor
    most_different = sorted(factors, key=lambda each: (-max(factors[each], 1 / factors[each]), each))
    kept = {each: factors[each] for each in islice(most_different, _MAX_DOCUMENTS)}
    return ClickModel(kept, rates, number, clicks_by_position.total())


def _click_rates(impressions: Counter[int], clicks: Counter[int]) -> dict[int, float]:
    """Return the click rate of each position, smoothed by the rate of all positions."""
    if not impressions:
        return {}
    mean = clicks.total() / impressions.total()
    return {
        position: (clicks[position] + mean * _PRIOR_IMPRESSIONS) / (count + _PRIOR_IMPRESSIONS)
        for position, count in sorted(impressions.items())
    }


def store_click_factors(store: DataStore[DerivedRow], factors: Mapping[str, float]) -> None:
    """Replace the stored factors."""
    old_keys = [*store.keys(prefix_range(CLICK_FACTORS_PREFIX))]
    items = [*factors.items()]
    chunks = {
        f"{CLICK_FACTORS_PREFIX}{start // _FACTORS_PER_ROW:04d}": dict(items[start : start + _FACTORS_PER_ROW])
        for start in range(0, len(items), _FACTORS_PER_ROW)
    }
    with store.batch() as batch:
        for key, chunk in chunks.items():
            row = DerivedRow()
            row.data = msgspec.json.encode(chunk)
            batch.put(key, row)
        for key in old_keys:
            if key not in chunks:
                batch.delete(key)


def learn_and_store(conf: Configuration, days: float, source: SearchSource) -> int:
    """Learn click factors from the log and store them; print what was learned.

    Returns:
        Exit code 1 if the log has no clicks of these days; then the stored factors are kept.
    """
    store = open_log_store(conf)
    try:
        since = max(0, now_ms() - int(days * MS_PER_DAY))
        model = learn_click_model(each for each in read_searches(store, since) if each.search.source == source)
        if not model.clicks:
            print_output("no clicks in the search log")
            return 1
        store_click_factors(store, model.factors)
    finally:
        store.close()
    print_output(f"searches:\t{model.searches}")
    print_output(f"clicks:\t{model.clicks}")
    print_output(f"pages with a click factor:\t{len(model.factors)}")
    for position, rate in islice(model.click_rates.items(), 10):
        print_output(f"click rate at position {position}:\t{rate * 100:.1f} %")
    return 0
