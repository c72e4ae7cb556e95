"""The baseline: BM25 of bm25s in Lucene's form over title and text of each document."""

from __future__ import annotations

from collections.abc import Mapping

from bench.judged.collection import JudgedCollection
from bench.judged.words import terms

K1, B = 1.2, 0.75


class Bm25:
    """BM25 over the documents of a collection; words by language (:mod:`bench.judged.words`), no stop words."""

    def __init__(self, collection: JudgedCollection) -> None:
        import bm25s

        self.language = collection.language
        self.ids = [*collection.documents]
        texts = [f"{title} {text}" for title, text in collection.documents.values()]
        self.retriever = bm25s.BM25(method="lucene", k1=K1, b=B)
        self.retriever.index(terms(texts, self.language), show_progress=False)

    def rankings(self, queries: Mapping[str, str], rows: int) -> dict[str, list[str]]:
        """Return the ids of the best documents of each query; documents with no word of it are not among them."""
        cut = terms([*queries.values()], self.language)
        return {key: self._ranking(each, rows) for key, each in zip(queries, cut, strict=True)}

    def _ranking(self, query: list[str], rows: int) -> list[str]:
        known = [term for term in query if term in self.retriever.vocab_dict]
        if not known:
            return []
        scores = self.retriever.get_scores(known)
        best = (-scores).argsort(kind="stable")[:rows]
        return [self.ids[place] for place in best if scores[place] > 0]
