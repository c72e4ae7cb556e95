"""Looks up documents of the embedded index by id, with their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nutch2py.backends.embedded_index.index_directory import SCORE_COLUMNS_LAYOUT, IndexDirectory
from nutch2py.backends.embedded_index.weight_buckets import WEIGHT_BUCKETS
from nutch2py.records.document import format_java_float
from nutch2py.support.invariants import not_none

if TYPE_CHECKING:
    import tantivy


def find_addresses(
    searcher: tantivy.Searcher, schema: tantivy.Schema, ids: Iterable[str]
) -> Iterator[tuple[str, tantivy.DocAddress]]:
    """Yield the existing documents among ``ids``, each with its address."""
    import tantivy

    for document_id in ids:
        term = tantivy.Query.term_query(schema, "id", document_id, "basic")
        for _, address in searcher.search(term, 1, count=False).hits:
            yield document_id, address


def read_documents(
    searcher: tantivy.Searcher, addresses: Sequence[tantivy.DocAddress], layout: int, max_characters: int = 0
) -> list[dict[str, Any]]:
    """Return the fields of documents, with the current ``pagerank``, which may be newer than the document.

    ``max_characters``: longer values are cut as they are read, so that large documents do not add up; 0: none.
    """
    from msgspec import json  # orjson.loads needs memory of 13 times its input

    documents: list[dict[str, Any]] = []
    for each in addresses:
        fields = json.decode(searcher.doc(each)["document"][0])
        documents.append(truncate_values(fields, max_characters) if max_characters else fields)
    if layout >= SCORE_COLUMNS_LAYOUT:
        scores = searcher.fast_field_values("pagerank", [*addresses])
        for document, score in zip(documents, scores, strict=True):
            if score is not None and (text := format_java_float(score)) != document.get("pagerank"):
                document["pagerank"] = text
    return documents


def truncate_values(fields: dict[str, Any], max_characters: int) -> dict[str, Any]:
    """Return the fields of a document with values of at most so many characters."""
    for name, value in fields.items():
        if isinstance(value, str) and len(value) > max_characters:
            fields[name] = value[:max_characters]
        elif isinstance(value, list):
            rest, kept = max_characters, []
            for each in value:
                kept.append(each[:rest] if isinstance(each, str) else each)
                rest -= len(each) if isinstance(each, str) else 1
                if rest <= 0:
                    break
            fields[name] = kept
    return fields


class IndexScoreReader:
    """Reads scores and addresses of documents as of the last commit; an index that does not exist has no documents."""

    def __init__(self, index_dir: IndexDirectory) -> None:
        self._layout = index_dir.layout
        self._addresses: dict[str, tantivy.DocAddress] = {}
        self._buckets: dict[tuple[int, int], int] = {}
        self._searcher: tantivy.Searcher | None = None
        if index_dir.exists:
            index = index_dir.open()
            index.config_reader("manual")
            self._schema, self._searcher = index.schema, index.searcher()
            if self._layout >= SCORE_COLUMNS_LAYOUT:
                self._load_buckets(self._searcher)

    def _load_buckets(self, searcher: tantivy.Searcher) -> None:
        """Load the documents whose weights are far from 1, which are few."""
        import tantivy

        for bucket in WEIGHT_BUCKETS:
            if bucket:
                term = tantivy.Query.term_query(self._schema, "exact", f"weight={bucket}", "basic")
                hits = searcher.search(term, max(searcher.num_docs, 1), count=False).hits
                self._buckets |= {(each.segment_ord, each.doc): bucket for _, each in hits}

    def read_scores(self, ids: Iterable[str]) -> dict[str, float | None]:
        """Return the scores of the existing documents among ``ids``, None for a document without a score."""
        if self._searcher is None:
            return {}
        self._addresses = addresses = dict(find_addresses(self._searcher, self._schema, ids))
        if self._layout >= SCORE_COLUMNS_LAYOUT:
            scores = self._searcher.fast_field_values("pagerank", [*addresses.values()])
            return {document_id: _to_float(score) for document_id, score in zip(addresses, scores, strict=True)}
        return {document_id: _to_float(self.read_document(document_id).get("pagerank")) for document_id in addresses}

    def weight_bucket(self, document_id: str) -> int:
        """Return the bucket of a document of the last call of :meth:`read_scores`."""
        address = self._addresses[document_id]
        return self._buckets.get((address.segment_ord, address.doc), 0)

    def read_document(self, document_id: str) -> dict[str, Any]:
        """Return the fields of a document of the last call of :meth:`read_scores`."""
        return read_documents(not_none(self._searcher, "searcher"), [self._addresses[document_id]], self._layout)[0]


def _to_float(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):  # a field of several values, or of text
        return None
