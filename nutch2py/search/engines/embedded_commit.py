"""EmbeddedCommit: the documents and terms of one commit of the embedded index."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from nutch2py.backends.embedded_index.index_lookup import find_addresses, read_documents
from nutch2py.backends.index_fields import SKETCH_FIELD
from nutch2py.search.query.query_plan import IndexTerm, PrefixClause
from nutch2py.search.results.search_results import ScoredDocument
from nutch2py.search.suggestions.prefix_terms import MAX_TEXT_CHARACTERS, SUGGEST_FIELDS, PrefixTerm
from nutch2py.search.suggestions.word_edits import prefix_distance

if TYPE_CHECKING:
    import tantivy

_MAX_SIMILAR_TERMS = 1_000  # terms with the same three first letters, compared with a word
_MAX_COUNTED_TERMS = 1_000  # terms with a prefix whose postings are counted
_MIN_SIMILAR_LENGTH = 4  # letters of a term
_TERM_DOCUMENTS = 3  # documents read of a similar term
_MAX_PREFIX_QUERIES = 64  # whose automata are kept: one search uses each of them several times


class EmbeddedCommit:
    """Reads one commit of the embedded index; several threads may use it.

    The planner and the corrector of a searcher read the index through this object, and not through the searcher: so no
    cycle of references keeps the memory of a replaced searcher until the garbage collector runs.
    """

    def __init__(self, searcher: tantivy.Searcher, schema: tantivy.Schema, layout: int) -> None:
        self.searcher, self.schema, self._layout = searcher, schema, layout
        self._prefix_queries: dict[PrefixClause, tantivy.Query] = {}
        self._prefix_postings: dict[PrefixClause, int] = {}

    def count(self) -> int:
        """Return the number of documents."""
        return int(self.searcher.num_docs)

    def document_count(self, field: str) -> int:
        """Return the number of documents, which tantivy uses for the idf of every field."""
        del field
        return self.count()

    def document_frequencies(self, terms: Sequence[IndexTerm]) -> list[int]:
        """Return the number of documents with each term."""
        return [self.searcher.doc_freq(field, term) for field, term in terms]

    def has_field(self, name: str) -> bool:
        """Return whether documents have a field of a plug-in."""
        return bool(self.searcher.terms_with_prefix("other", f"{name}=", limit=1))

    def find_address(self, document_id: str) -> tantivy.DocAddress | None:
        """Return the address of a document, None when it is not in the index."""
        return next((address for _, address in find_addresses(self.searcher, self.schema, [document_id])), None)

    def read_hits(
        self, hits: Sequence[tuple[float, tantivy.DocAddress]], max_characters: int = 0
    ) -> list[ScoredDocument]:
        """Return the documents of scores and addresses, with values of at most ``max_characters``; 0: whole."""
        addresses = [address for _, address in hits]
        stored = read_documents(self.searcher, addresses, self._layout, max_characters)
        return [
            ScoredDocument(score, fields, str(fields.pop(SKETCH_FIELD, "")))
            for (score, _), fields in zip(hits, stored, strict=True)
        ]

    def prefix_terms(self, prefix: str, limit: int) -> list[PrefixTerm]:
        """Return the terms of the dictionary with a prefix; their original spelling is unknown."""
        counted: Counter[str] = Counter()
        for field in SUGGEST_FIELDS:
            counted.update(dict(self.searcher.terms_with_prefix(field, prefix, limit=limit)))
        return [PrefixTerm(term, count, Counter()) for term, count in counted.most_common(limit)]

    def prefix_query(self, clause: PrefixClause) -> tantivy.Query:
        """Return the query of the terms with a prefix, without the weight."""
        import tantivy

        key = clause._replace(weight=1.0)
        query = self._prefix_queries.get(key)
        if query is None:
            query = tantivy.Query.regex_query(self.schema, clause.field, f"{re.escape(clause.prefix)}.*")
            if len(self._prefix_queries) >= _MAX_PREFIX_QUERIES:
                self._prefix_queries = {}
            self._prefix_queries[key] = query
        return query

    def count_prefix_postings(self, clause: PrefixClause) -> int:
        """Return the number of postings of the first terms with a prefix: enough to recognize an expensive prefix."""
        key = clause._replace(weight=1.0)
        number = self._prefix_postings.get(key)
        if number is None:
            counted = self.searcher.terms_with_prefix(clause.field, clause.prefix, limit=_MAX_COUNTED_TERMS)
            if len(self._prefix_postings) >= _MAX_PREFIX_QUERIES:
                self._prefix_postings = {}
            number = self._prefix_postings[key] = sum(count for _, count in counted)
        return number

    def similar_documents(self, word: str, limit: int) -> list[dict[str, Any]]:
        """Return up to ``limit`` documents with words that start alike and may differ from ``word`` by two edits."""
        # The second and the third letter may be swapped, replaced by their successor, or as typed.
        starts = {word[:3], word[0] + word[2] + word[1], word[0] + word[2:4], word[:2] + word[3:4]}
        counted = dict[str, int]()
        for start in sorted(starts):
            counted |= dict(self.searcher.terms_with_prefix("content", start, limit=_MAX_SIMILAR_TERMS))
        letters = frozenset(word)
        distances = {
            term: prefix_distance(term, word, 2)
            for term in counted
            if _MIN_SIMILAR_LENGTH <= len(term) <= len(word) + 2 and len(letters.union(term)) <= len(letters) + 2
        }
        terms = sorted(
            (term for term, distance in distances.items() if distance <= 2),
            key=lambda term: (distances[term] - len(term), -counted[term], term),
        )
        found = (document for term in terms[:limit] for document in self.documents_with_term(term, _TERM_DOCUMENTS))
        return [*islice(found, limit)]

    def documents_with_term(self, term: str, limit: int) -> list[dict[str, Any]]:
        """Return documents with a term in title or content."""
        import tantivy

        query = tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, tantivy.Query.term_query(self.schema, field, term)) for field in SUGGEST_FIELDS]
        )
        hits = self.searcher.search(query, limit).hits
        addresses = [(0.0, address) for _, address in hits]
        return [each.fields for each in self.read_hits(addresses, MAX_TEXT_CHARACTERS)]
