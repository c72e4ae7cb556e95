"""TermWeights: weights by which a term has one idf in all fields of an index, as in BM25F.

An index ranks each field by BM25 with an idf of the field, so that a common word would count much in the title, because
titles rarely have it. The weight of a clause is multiplied by the wanted idf and divided by the field's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from nutch2py.backends.index_fields import TEXT_FIELDS
from nutch2py.search.query.query_plan import IndexTerm, PhraseClause

OTHER_FIELD = "other"
"""The index field with the fields of plug-ins, as ``name=term``."""


class TermStatistics(Protocol):
    """Numbers of documents of an index."""

    def document_count(self, field: str) -> int:
        """Return the number of documents by which the index computes the idf of a field's terms; "" for all of them."""

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term."""

    def has_field(self, name: str) -> bool:
        """Return whether documents have a field of a plug-in, in ``other``."""


class TermWeights:
    """Weights for one query.

    Args:
        statistics: Statistics of the index; None: all terms are known, and weights stay as they are.
        default_fields: Fields that a word without field searches.
    """

    def __init__(self, statistics: TermStatistics | None, default_fields: tuple[str, ...]) -> None:
        self._statistics, self._default_fields = statistics, default_fields
        self._frequencies: dict[IndexTerm, int] = {}
        self._field_sizes: dict[str, int] = {}
        self._idfs: dict[IndexTerm, float] = {}
        self._document_count = statistics.document_count("") if statistics is not None else 1

    def read(self, terms: Iterable[IndexTerm]) -> None:
        """Read the document frequencies of terms, those not yet read with one request."""
        new = dict.fromkeys(term for term in terms if term not in self._frequencies)
        if self._statistics is None or not new:
            return
        self._idfs = {}
        self._frequencies.update(zip(new, self._statistics.document_frequencies([*new]), strict=True))
        for field in {field for field, _ in new} - self._field_sizes.keys():
            self._field_sizes[field] = self._statistics.document_count(field)

    def frequency(self, field: str, term: str) -> int:
        """Return the number of documents with a term in a field, 0 for one that was not read."""
        return self._frequencies.get((field, term), 0)

    def index_terms(self, field: str, term: str) -> list[IndexTerm]:
        """Return a term in the fields of the index that a field of the query stands for; "": the default fields."""
        if not field:
            return [(name, term) for name in self._default_fields]
        return [(field, term)] if field in TEXT_FIELDS else [(OTHER_FIELD, f"{field}={term}")]

    def weigh(self, clauses: list[PhraseClause], shared_idf: float | None = None) -> list[PhraseClause]:
        """Return the clauses that can match, with weights by which each term has one idf in all fields.

        Args:
            clauses: Alternatives, of which the best counts.
            shared_idf: The idf of single terms; None: of the most frequent field of each term.

        """
        if self._statistics is None:
            return clauses
        weighed = []
        for clause in clauses:
            if any(self._frequencies.get((clause.field, term)) == 0 for term in clause.terms):
                continue
            own = sum(self._own_idf(clause.field, term) for term in clause.terms)
            if shared_idf is not None and len(clause.terms) == 1:
                target = shared_idf
            else:
                target = sum(self.term_idf(clause.field, term) for term in clause.terms)
            weighed.append(clause._replace(weight=clause.weight * target / own) if own > 0 else clause)
        return weighed

    def term_idf(self, field: str, term: str) -> float:
        """Return the idf of a term by the field that has it most often, among all documents of the index."""
        fields = self._default_fields if field in self._default_fields else (field,)
        key = fields[0], term
        idf = self._idfs.get(key)
        if idf is None:
            known = (self._frequencies.get((name, term)) for name in fields)
            frequency = max((number for number in known if number is not None), default=1)
            idf = self._idfs[key] = _idf(self._document_count, frequency)
        return idf

    def _own_idf(self, field: str, term: str) -> float:
        """Return the idf that the index uses for a term of a field."""
        return _idf(self._field_sizes.get(field, 1), self._frequencies.get((field, term), 1))


def _idf(documents: int, frequency: int) -> float:
    """Return the idf of BM25, as tantivy and Lucene compute it."""
    frequency = min(frequency, documents)
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))
