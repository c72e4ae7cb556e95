"""indexer-embedded: writes the embedded index, which needs no server, with tantivy."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.backends.embedded_index.index_directory import SCORE_COLUMNS_LAYOUT, IndexDirectory, make_schema
from nutch2py.backends.embedded_index.index_lookup import IndexScoreReader, find_addresses
from nutch2py.backends.embedded_index.score_columns import DocumentScores, replace_scores
from nutch2py.backends.embedded_index.weight_buckets import split_weight, weight_to_field
from nutch2py.backends.index_fields import FACET_PREFIX, SKETCH_FIELD
from nutch2py.backends.vectors.page_vectors import PageVectors
from nutch2py.backends.vectors.vector_store import VectorStore
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import IndexingError
from nutch2py.indexer.index_writers import missing_id_error
from nutch2py.indexer.search_fields import SKETCHES_PROPERTY, build_search_fields
from nutch2py.interfaces import IndexWriter
from nutch2py.records.document import NutchDocument, clean_text

if TYPE_CHECKING:
    import tantivy

_BATCH_BYTES = 24_000_000
_HEAP = 64_000_000
_MAX_PENDING_SCORES = 1_000_000  # about 200 MB; each commit rewrites all columns


class EmbeddedIndexWriter(IndexWriter):
    """Writes the embedded index.

    Its directory is that of :class:`nutch2py.backends.embedded_index.index_directory.IndexDirectory`. Documents are
    analysed and collected without a lock. A batch (``index.embedded.batch`` documents, or 24 MB of text) is committed
    under the lock that all writers share, with a timeout of ``index.lock.timeout`` seconds. A commit is atomic: a
    process killed at any time leaves the index as of the last commit.

    Relevance is multiplied by the product over ``index.weight.fields`` of field ^ its power. A field that is absent or
    not a number counts as 1. The product is limited to 0.0001 to 10,000, so that a page without a score is ranked last,
    but is found.
    """

    supports_scores = True

    def __init__(self, conf: Configuration) -> None:
        self._pending: dict[str, tantivy.Document | None] = {}  # None: a delete
        self._size = 0
        self._pending_scores: dict[str, DocumentScores] = {}
        self._score_reader: IndexScoreReader | None = None
        self._configure(conf)

    def _configure(self, conf: Configuration) -> None:
        self.index_dir = IndexDirectory.from_conf(conf)
        self.batch_size = max(1, conf.get_int("index.embedded.batch", 4000))
        self.weights = DocumentWeights(conf)
        self._with_sketch = conf.get_bool(SKETCHES_PROPERTY, True)
        self._vectors = PageVectors.from_conf(conf, self.index_dir.vectors)

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Create a missing index; with ``reindex``, replace one of another version."""
        self._configure(conf)
        if reindex:
            self.index_dir.delete_outdated()
        with self.index_dir.lock():
            index = self.index_dir.open_or_create()
            if self._vectors is not None and not reindex:
                delete_orphaned_vectors(self.index_dir.vectors, index)

    def check(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Raise an error when the index exists and is of another version."""
        self.open(conf, parameters)

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Check that this version can write the index."""
        self._configure(conf)
        if self.index_dir.exists:
            self.index_dir.check_version()
        self._schema = make_schema(self.index_dir.layout)

    def write(self, document: NutchDocument) -> None:
        """Analyse a document and add it to the batch; it replaces one with the same id."""
        import tantivy

        if "id" not in document:
            raise missing_id_error(document)
        try:
            fields = self._index_fields(document)
        except (TypeError, UnicodeEncodeError):  # a plug-in has added invalid text without NutchDocument.add
            document = NutchDocument.from_json(document.to_json(), document.score)
            fields = self._index_fields(document)
        self._pending[_encodable_id(document.id)] = tantivy.Document.from_dict(fields, self._schema)
        self._size += sum(len(value) for values in document.fields.values() for value in values)
        if self._vectors is not None:
            self._vectors.add(_encodable_id(document.id), document)
        self._flush_when_full()

    def update(self, document: NutchDocument) -> None:
        """Replace a document, as :meth:`write` does."""
        self.write(document)

    def delete(self, document_id: str) -> None:
        """Add a delete to the batch."""
        self._pending[_encodable_id(document_id)] = None
        if self._vectors is not None:
            self._vectors.delete(_encodable_id(document_id))
        self._flush_when_full()

    def get_scores(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``pagerank`` of the documents in the index as of its last commit."""
        if len(self._pending_scores) >= _MAX_PENDING_SCORES:
            self.commit()
        if self._score_reader is None:
            self._score_reader = IndexScoreReader(self.index_dir)
        names = {_encodable_id(each): each for each in ids}
        return {names[each]: score for each, score in self._score_reader.read_scores(names).items()}

    def get_click_factors(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``clicks`` of documents of the last call of :meth:`get_scores`."""
        reader = self._score_reader
        if reader is None:
            return {}
        return {each: _finite_float(reader.read_document(_encodable_id(each)).get("clicks")) for each in ids}

    def count_documents(self) -> int | None:
        """Return the number of documents as of the last commit."""
        if not self.index_dir.exists:
            return 0
        index = self.index_dir.open()
        index.config_reader("manual")
        return int(index.searcher().num_docs)

    def find_documents(self, ids: Sequence[str]) -> Collection[str]:
        """Return the documents in the index as of its last commit; nothing else is pending in this index."""
        if not self.index_dir.exists:
            return ()
        index = self.index_dir.open()
        index.config_reader("manual")
        names = {_encodable_id(each): each for each in ids}
        return [names[found] for found, _ in find_addresses(index.searcher(), index.schema, names)]

    def set_score(self, document_id: str, score: float) -> bool:
        """Add a score to the batch; it replaces the one that :meth:`get_scores` returned.

        Return False for an index of an earlier layout, and for a weight too far from the previous one.
        """
        if self.index_dir.layout < SCORE_COLUMNS_LAYOUT or self._score_reader is None:
            return False
        document_id = _encodable_id(document_id)
        document, bucket = NutchDocument(), self._score_reader.weight_bucket(document_id)
        if self.weights.powers.keys() - {"pagerank"}:
            document = NutchDocument.from_json(self._score_reader.read_document(document_id))
            document.remove("pagerank")
        document.add("pagerank", repr(score))
        weight = weight_to_field(self.weights.weight_of(document), bucket, self.index_dir.layout)
        if weight is None:
            return False
        self._pending_scores[document_id] = DocumentScores(score, weight)
        return True

    def _flush_when_full(self) -> None:
        if len(self._pending) >= self.batch_size or self._size >= _BATCH_BYTES:
            self.commit()

    def commit(self) -> None:
        """Commit the batch; create a missing index even if the batch is empty."""
        if not (self._pending or self._pending_scores) and self.index_dir.exists:
            return
        changes = self._vectors.take() if self._vectors is not None else None  # outside the lock: it takes long
        with self.index_dir.lock():
            if changes is not None:
                self.index_dir.vectors.write(changes.vectors, changes.keys)
            if self._pending or not self.index_dir.exists:
                try:
                    self._commit(self.index_dir.open_or_create())
                except (ValueError, OSError, RuntimeError) as error:
                    raise self.index_dir.write_error(error) from error
            if changes is not None:
                self.index_dir.vectors.delete(changes.deleted)
            self._pending, self._size = {}, 0
            if self._pending_scores:
                self._commit_scores()
        self._score_reader = None

    def _commit_scores(self) -> None:
        replace_scores(self.index_dir, self._pending_scores)
        self._pending_scores = {}

    def _commit(self, index: tantivy.Index) -> None:
        self.index_dir.remove_uncommitted_deletes()
        writer = index.writer(_HEAP, 1)
        try:
            if index.searcher().num_docs:
                for document_id in self._pending:
                    writer.delete_documents_by_term("id", document_id)
            for document in self._pending.values():
                if document is not None:
                    writer.add_document(document)
            writer.commit()
            writer.wait_merging_threads()  # otherwise merges are aborted and segments accumulate
        finally:
            del writer  # releases its lock, which a traceback would keep

    def close(self) -> None:
        """Commit the batch."""
        if self._pending or self._pending_scores:
            self.commit()

    def describe(self) -> str:
        """Return the settings."""
        encoder = f"\tindex.encoder : {self._vectors.encoder.model}\n" if self._vectors is not None else ""
        return (
            f"EmbeddedIndexWriter\n\tindex.embedded.path : {self.index_dir.path}\n"
            f"\tindex.embedded.batch : documents committed at once ({self.batch_size})\n"
            f"\tindex.weight.fields : {self.weights}\n{encoder}"
        )

    def _index_fields(self, document: NutchDocument) -> dict[str, object]:
        import orjson

        search_fields = build_search_fields(document, self.index_dir.analyzer, self.weights, self._with_sketch)
        bucket, weight = split_weight(search_fields.weight, self.index_dir.layout)
        fields: dict[str, object] = {
            "id": _encodable_id(document.id),
            "exact": [f"weight={bucket}", *search_fields.exact],
            "other": search_fields.other,
            "weight": weight,
            "document": orjson.dumps(
                {**document.to_json(), "id": _encodable_id(document.id), SKETCH_FIELD: search_fields.sketch}
            ),
            **search_fields.texts,
        }
        if self.index_dir.layout > 1:
            fields["date"] = search_fields.date
        if self.index_dir.layout > 2:
            fields |= {f"{FACET_PREFIX}{name}": values for name, values in search_fields.facets.items()}
        if (
            self.index_dir.layout >= SCORE_COLUMNS_LAYOUT
            and (score := _finite_float(document.get("pagerank"))) is not None
        ):
            fields["pagerank"] = score
        return fields


def delete_orphaned_vectors(store: VectorStore, index: tantivy.Index) -> None:
    """Delete vectors without a document, if the store has more vectors than the index has documents."""
    try:
        searcher = index.searcher()
        if store.count() <= searcher.num_docs:
            return
        ids = store.ids()
    except IndexingError:  # the first write replaces a damaged file
        return
    found = {document_id for document_id, _ in find_addresses(searcher, index.schema, ids)}
    store.delete(document_id for document_id in ids if document_id not in found)


def _finite_float(text: str | None) -> float | None:
    try:
        number = float(text or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _encodable_id(document_id: str) -> str:
    """Return an id that can be encoded as UTF-8, the same for a document and for its delete."""
    try:
        document_id.encode()
    except UnicodeEncodeError:
        return clean_text(document_id)
    return document_id
