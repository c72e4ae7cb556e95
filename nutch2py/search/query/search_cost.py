"""Estimates of the CPU time of a search before it runs: from the text of the query, and from its plan.

The unit is a millisecond of a core of 2024. The factors are a fit to 560 queries on 100,000 pages, from single words to
the limits of a query; estimate and measurement correlate by .95. What counts is which searches cost many times as much
as others, not the exact time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from nutch2py.search.query.query_plan import (
    BooleanClause,
    ConstantClause,
    DisMaxClause,
    IndexTerm,
    MatchAllClause,
    PhraseClause,
    PrefixClause,
    QueryPlan,
    matching_plan,
)

_BASE_MILLIS = 4.0
_MILLIS_PER_ROW = 0.35  # snippet and fields of a hit
_MILLIS_PER_CLAUSE = 0.04
_MILLIS_PER_POSTING = 65e-6  # of a word
_MILLIS_PER_PHRASE_POSTING = 20e-6  # of a word in a phrase that only ranks
_MILLIS_PER_MATCHED_PHRASE_POSTING = 100e-6  # of a word in a phrase that must match: positions are compared
_MILLIS_PER_PREFIX_POSTING = 30e-6
_MILLIS_PER_WORD, _MILLIS_PER_PREFIX, _MILLIS_PER_PHRASE = 1.5, 12.0, 4.0  # of the plan
_SCALED_DOCUMENTS = 100_000
_TEXTS = re.compile(r"""[^\W_]\*(?!\w)|["“”]|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]|[^\W_]+""")
_UNSPACED_SHARE = 0.4  # words a character, in scripts without spaces


class PostingStatistics(Protocol):
    """Numbers of documents of an index."""

    def count(self) -> int:
        """Return the number of documents."""

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term."""

    def count_prefix_postings(self, clause: PrefixClause) -> int:
        """Return the number of postings of terms with a prefix, of some of them if there are many."""


def scale_limit(millis: float, documents: int) -> float:
    """Return a limit of the cost for an index of a number of documents: all searches of a larger one cost more.

    >>> scale_limit(50, 1_000), scale_limit(50, 1_000_000)
    (50.0, 500.0)
    """
    return millis * max(1.0, documents / _SCALED_DOCUMENTS)


def estimate_planning(query: str) -> float:
    """Return the estimated milliseconds in which a query is planned: unknown words and prefixes are looked up.

    >>> estimate_planning("how to crawl"), estimate_planning("kube* pod"), round(estimate_planning("北京奥运会"), 1)
    (4.5, 15.0, 3.0)
    """
    millis = 0.0
    for text in _TEXTS.findall(query):
        if text.endswith("*"):
            millis += _MILLIS_PER_PREFIX
        elif text in '"“”':
            millis += _MILLIS_PER_PHRASE / 2
        else:
            millis += _MILLIS_PER_WORD * (_UNSPACED_SHARE if text > "\u0e00" else 1.0)
    return millis


def estimate_search(plan: QueryPlan, rows: int, statistics: PostingStatistics) -> float:
    """Return the estimated milliseconds in which a plan is run and its ``rows`` hits are shown."""
    clauses = [*_iter_clauses(plan)]
    terms = {(clause.field, term) for clause in clauses if isinstance(clause, PhraseClause) for term in clause.terms}
    counted = [*terms]
    frequencies = dict(zip(counted, statistics.document_frequencies(counted), strict=True))
    millis = _BASE_MILLIS + _MILLIS_PER_ROW * rows + _MILLIS_PER_CLAUSE * len(clauses)
    for clause in clauses:
        if isinstance(clause, PrefixClause):
            millis += _MILLIS_PER_PREFIX_POSTING * statistics.count_prefix_postings(clause)
        elif isinstance(clause, PhraseClause):
            postings = sum(frequencies[clause.field, term] for term in clause.terms)
            millis += (_MILLIS_PER_POSTING if len(clause.terms) == 1 else _MILLIS_PER_PHRASE_POSTING) * postings
        else:
            millis += _MILLIS_PER_POSTING * statistics.count()
    return millis + sum(
        _MILLIS_PER_MATCHED_PHRASE_POSTING * sum(frequencies[clause.field, term] for term in clause.terms)
        for clause in _iter_clauses(matching_plan(plan))
        if isinstance(clause, PhraseClause) and len(clause.terms) > 1
    )


def _iter_clauses(plan: QueryPlan) -> Iterator[PhraseClause | PrefixClause | MatchAllClause]:
    """Yield the clauses of a plan that read postings, each as often as a search does."""
    if isinstance(plan, BooleanClause):
        for part in (*plan.must, *plan.should, *plan.must_not):
            yield from _iter_clauses(part)
    elif isinstance(plan, ConstantClause):
        yield from plan.clause.clauses
    elif isinstance(plan, DisMaxClause):
        yield from plan.clauses
    elif isinstance(plan, MatchAllClause):
        yield plan
