"""EmbeddedSearcher: queries of the embedded index."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from nutch2py.backends.index_folder import EXACT_FIELDS, TEXT_FIELDS, WEIGHT_BUCKETS, IndexFolder
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.search.query_language import And, Not, Or, Query, Text, parse_query, wanted

if TYPE_CHECKING:
    import tantivy

DEFAULT_FIELDS = "title^3 anchor^2 content url^1.5 host^2"
_TIE = 0.1
_PHRASE_BOOST = 2.0
_FILTER_SCORE = 0.001
_FIELD = re.compile(r"(\w+)(?:\^([0-9.]+))?")


class Found(NamedTuple):
    """A document that matches: its fields as they were sent, and relevance × weight."""

    score: float
    fields: dict[str, Any]


class EmbeddedSearcher:
    """Answers queries from the index as of its last commit.

    A word counts where it fits best among ``index.search.fields`` (Solr's ``qf``: ``field^weight``, and a tenth of
    the other fields, as dismax has it); relevance is BM25 and is multiplied by the document's weight (boost and
    PageRank) for every match, not for the best ones only, so the order is exact. Words that stand together count
    more. One object can answer any number of queries, from one thread at a time; :meth:`reload` shows it newer
    commits.
    """

    def __init__(self, conf: Configuration) -> None:
        self.folder = IndexFolder.of(conf)
        self.analyzer = self.folder.analyzer
        self.index = self.folder.open()
        self.index.config_reader("manual")
        self.schema = self.index.schema
        operator = conf.get_trimmed("index.search.operator", "and").lower()
        if operator not in ("and", "or"):
            raise ConfigurationError(f"index.search.operator is {operator!r}: write and, or or")
        self.any_word = operator == "or"
        self.weights = _weights(conf.get_trimmed("index.search.fields", DEFAULT_FIELDS))
        self._searcher = self.index.searcher()

    def reload(self) -> None:
        """See what has been committed since the index was opened."""
        self.index.reload()
        self._searcher = self.index.searcher()

    def count(self) -> int:
        """Return the number of documents."""
        return int(self._searcher.num_docs)

    def get(self, document_id: str) -> dict[str, Any] | None:
        """Return the fields of one document, None when it is not in the index."""
        import tantivy

        found = self._searcher.search(tantivy.Query.term_query(self.schema, "id", document_id), 1).hits
        return self._stored(found[0][1]) if found else None

    def search(self, query: str, start: int = 0, rows: int = 10) -> tuple[int, list[Found], frozenset[str]]:
        """Return how many documents match, those from ``start`` on, and the terms to mark in them."""
        tree = parse_query(query, self.any_word)
        wanted_terms = frozenset(
            term
            for text in wanted(tree)
            if text.field in ("", "title", "content")
            for word in self._asked(text)
            for term in (*word, *(part for one in word for part in self.analyzer.parts(one)))
        )
        compiled = self._ranked(tree)
        if compiled is None:
            return 0, [], wanted_terms
        try:
            result = self._searcher.search(compiled, max(rows, 1), offset=start, weight_by_field="weight")
            hits = [Found(score, self._stored(address)) for score, address in result.hits[:rows]]
        except (ValueError, OSError) as error:
            raise IndexingError(f"the index {self.folder.path} cannot be searched: {error}") from error
        return _total(result), hits, wanted_terms

    def _ranked(self, tree: Query | None) -> tantivy.Query | None:
        """Return tantivy's query with all that ranks, None for one that asks for nothing."""
        compiled = self._compile(tree) if tree is not None else None
        if compiled is None:
            return None
        if (phrase := self._together(tree)) is not None:
            import tantivy

            compiled = tantivy.Query.boolean_query([(tantivy.Occur.Must, compiled), (tantivy.Occur.Should, phrase)])
        return self._weighted(compiled)

    def count_matching(self, query: str, exact: str = "") -> int:
        """Return how many documents match; ``exact`` (``site=apache.org``) must be among their whole values."""
        import tantivy

        tree = parse_query(query, self.any_word)
        compiled = self._compile(tree) if tree is not None else None
        if compiled is None:
            return 0
        if exact:
            term = tantivy.Query.term_query(self.schema, "exact", exact, "basic")
            compiled = tantivy.Query.boolean_query([(tantivy.Occur.Must, compiled), (tantivy.Occur.Must, term)])
        return _total(self._searcher.search(compiled, 1))

    def near(self, word: str, distance: int, most: int) -> list[dict[str, Any]]:
        """Return documents with a word in title or content that differs from ``word`` in ``distance`` letters or less.

        ``distance``: 0 to 2, a swap of neighbours being one. At most ``most`` documents, in no order.
        """
        import tantivy

        terms = self.analyzer.words(word)
        if len(terms) != 1:
            return []
        query = _boolean(
            [
                (tantivy.Occur.Should, tantivy.Query.fuzzy_term_query(self.schema, field, terms[0], distance))
                for field in ("title", "content")
            ]
        )
        hits = self._searcher.search(query, most).hits if query is not None else []
        return [self._stored(address) for _, address in hits]

    def explain(self, query: str, document_id: str) -> str | None:
        """Return how the relevance of a document comes about, as JSON; None when it is not found by the query."""
        import tantivy

        compiled = self._ranked(parse_query(query, self.any_word))
        term = tantivy.Query.term_query(self.schema, "id", document_id, "basic")
        found = self._searcher.search(term, 1).hits
        if compiled is None or not found:
            return None
        try:
            return str(compiled.explain(self._searcher, found[0][1]).to_json())
        except ValueError:  # the document does not match
            return None

    def _weighted(self, query: tantivy.Query) -> tantivy.Query:
        """Return the query boosted by each document's power of 100; most indexes have one or two of these powers."""
        import tantivy

        buckets = [b for b in WEIGHT_BUCKETS if self._searcher.doc_freq("exact", f"weight={b}")]
        if buckets in ([], [0]):
            return query
        must, should = tantivy.Occur.Must, tantivy.Occur.Should
        parts = []
        for bucket in buckets:
            term = tantivy.Query.term_query(self.schema, "exact", f"weight={bucket}", "basic")
            inside = tantivy.Query.boolean_query([(must, query), (must, tantivy.Query.const_score_query(term, 0.0))])
            parts.append((should, tantivy.Query.boost_query(inside, 100.0**bucket)))
        return tantivy.Query.boolean_query(parts)

    def _stored(self, address: tantivy.DocAddress) -> dict[str, Any]:
        import orjson

        stored: bytes = self._searcher.doc(address)["document"][0]
        fields: dict[str, Any] = orjson.loads(stored)
        return fields

    def _asked(self, text: Text) -> list[tuple[str, ...]]:
        """Return the words of a text; those of a phrase as one, cut as pages are, so that it is found in them."""
        if text.phrase:
            terms = tuple(self.analyzer.words(text.text))
            return [terms] if terms else []
        return self.analyzer.query_words(text.text)

    def _compile(self, query: Query) -> tantivy.Query | None:
        """Return tantivy's query, None for one that asks for nothing, such as punctuation."""
        import tantivy

        must, should, must_not = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot
        if isinstance(query, Text):
            return self._text(query)
        if isinstance(query, Or):
            parts = [self._compile(part) for part in query.parts]
            return _boolean([(should, part) for part in parts if part is not None])
        clauses = []
        for part in query.parts if isinstance(query, And) else (query,):
            inner = self._compile(part.part if isinstance(part, Not) else part)
            if inner is not None:
                clauses.append((must_not if isinstance(part, Not) else must, inner))
        if clauses and all(occur == must_not for occur, _ in clauses):
            clauses.append((must, tantivy.Query.all_query()))
        return _boolean(clauses)

    def _text(self, text: Text) -> tantivy.Query | None:
        import tantivy

        field = text.field
        if field == "id":
            return self._filter("id", text.text)
        if field in EXACT_FIELDS:
            return self._filter("exact", f"{field}={text.text.lower()}")
        words = self._asked(text)
        if not field:
            clauses = [self._anywhere(word) for word in words]
        elif field in TEXT_FIELDS:
            clauses = [self._in_field(field, word) for word in words]
        else:
            clauses = [self._row("other", tuple(f"{field}={term}" for term in word)) for word in words]
        return _boolean([(tantivy.Occur.Must, clause) for clause in clauses])

    def _filter(self, field: str, term: str) -> tantivy.Query:
        """Return a query that says yes or no: it does not change the order, which is that of weights if it is alone."""
        import tantivy

        return tantivy.Query.const_score_query(
            tantivy.Query.term_query(self.schema, field, term, "basic"), _FILTER_SCORE
        )

    def _anywhere(self, word: tuple[str, ...]) -> tantivy.Query:
        import tantivy

        fields = [
            tantivy.Query.boost_query(self._in_field(field, word), weight) for field, weight in self.weights.items()
        ]
        return tantivy.Query.disjunction_max_query(fields, _TIE)

    def _in_field(self, field: str, word: tuple[str, ...]) -> tantivy.Query:
        found = self._row(field, word)
        parts = self.analyzer.parts(word[0]) if len(word) == 1 else ()
        if not parts:
            return found
        import tantivy

        # 香港电影 in 香港电影院, which is indexed as 香港 电影 电影院
        return tantivy.Query.disjunction_max_query([found, self._row(field, parts)], 0.0)

    def _row(self, field: str, terms: tuple[str, ...]) -> tantivy.Query:
        import tantivy

        if len(terms) == 1:
            return tantivy.Query.term_query(self.schema, field, terms[0])
        return tantivy.Query.phrase_query(self.schema, field, [*terms])

    def _together(self, query: Query | None) -> tantivy.Query | None:
        """Return the query that rewards documents in which the words stand side by side, None for one word."""
        parts = query.parts if isinstance(query, And) else (query,)
        texts = [part.text for part in parts if isinstance(part, Text) and not part.phrase and not part.field]
        terms = tuple(self.analyzer.words(" ".join(texts)))
        if not 2 <= len(terms) <= 8:
            return None
        import tantivy

        rows = [self._row(field, terms) for field in ("title", "content")]
        return tantivy.Query.boost_query(tantivy.Query.disjunction_max_query(rows, _TIE), _PHRASE_BOOST)


def _total(result: tantivy.SearchResult) -> int:
    total: int | None = result.count  # type: ignore[attr-defined]  # the stub lacks it
    return total or 0


def _boolean(clauses: list[tuple[Any, tantivy.Query]]) -> tantivy.Query | None:
    import tantivy

    return tantivy.Query.boolean_query(clauses) if clauses else None


def _weights(text: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in text.replace(",", " ").split():
        match = _FIELD.fullmatch(part)
        if match is None or match[1] not in TEXT_FIELDS:
            raise ConfigurationError(
                f"index.search.fields has {part!r}: write field^weight with fields of {', '.join(TEXT_FIELDS)}"
            )
        weights[match[1]] = float(match[2] or 1.0)
    return weights
