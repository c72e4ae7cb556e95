"""indexer-embedded: the index that needs no server, on tantivy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nutch2py.backends.index_columns import Scores, replace_scores
from nutch2py.backends.index_folder import (
    FACET,
    NEAR,
    SCORES_LAYOUT,
    IndexFolder,
    field_of_weight,
    make_schema,
    split_weight,
)
from nutch2py.backends.index_reading import ScoresOfIndex
from nutch2py.conf import Configuration
from nutch2py.contracts import IndexWriter
from nutch2py.document import NutchDocument, clean_text
from nutch2py.indexer.index_writers import no_id
from nutch2py.indexer.search_fields import SKETCHES, Weights, search_fields

if TYPE_CHECKING:
    import tantivy

_BATCH_BYTES = 24_000_000
_HEAP = 64_000_000
_MOST_SCORES = 1_000_000  # held at once, some 200 MB: each commit of them makes all columns anew


class EmbeddedIndexWriter(IndexWriter):
    """Writes the embedded index; see :class:`nutch2py.backends.index_folder.IndexFolder` for where it lies.

    Documents are analysed and gathered without a lock; a batch (``index.embedded.batch`` documents, or 24 MB of text)
    is committed under the lock that all writers share, waited for at most ``index.lock.timeout`` seconds. A commit is
    atomic: a process killed at any point leaves the index as of the last commit.

    Relevance is multiplied by the product over ``index.weight.fields`` of field ^ its power; a field
    that is absent or no number counts as 1, and the product is held within 0.0001 and 10,000, so that a page without
    a score is found last, but found.
    """

    tells_scores = True

    def __init__(self, conf: Configuration) -> None:
        self._pending: dict[str, tantivy.Document | None] = {}  # None: to be deleted
        self._size = 0
        self._scores: dict[str, Scores] = {}
        self._known: ScoresOfIndex | None = None
        self._configure(conf)

    def _configure(self, conf: Configuration) -> None:
        self.folder = IndexFolder.of(conf)
        self.batch = max(1, conf.get_int("index.embedded.batch", 4000))
        self.weights = Weights(conf)
        self._sketches = conf.get_bool(SKETCHES, True)

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Make the index when there is none; with ``reindex``, replace one that another version made."""
        self._configure(conf)
        if reindex:
            self.folder.discard_outdated()
        with self.folder.lock():
            self.folder.open_or_create()

    def check(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Raise an error when the index, if there is one, is not of this version."""
        self.open(conf, parameters)

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Check that the index can be written by this version."""
        self._configure(conf)
        if self.folder.exists:
            self.folder.check_version()
        self._schema = make_schema(self.folder.layout)

    def write(self, document: NutchDocument) -> None:
        """Analyse a document and gather it; it replaces one with the same id."""
        import tantivy

        if "id" not in document:
            raise no_id(document)
        try:
            fields = self._fields(document)
        except (TypeError, UnicodeEncodeError):  # text that a plug-in put in past NutchDocument.add
            fields = self._fields(NutchDocument.from_json(document.to_json(), document.score))
        self._pending[_text_id(document.id)] = tantivy.Document.from_dict(fields, self._schema)
        self._size += sum(len(value) for values in document.fields.values() for value in values)
        self._flush_when_full()

    def update(self, document: NutchDocument) -> None:
        """Replace a document, as :meth:`write` does."""
        self.write(document)

    def delete(self, document_id: str) -> None:
        """Gather a delete."""
        self._pending[_text_id(document_id)] = None
        self._flush_when_full()

    def scores(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``pagerank`` of the documents that are in the index as of its last commit."""
        if len(self._scores) >= _MOST_SCORES:
            self.commit()
        if self._known is None:
            self._known = ScoresOfIndex(self.folder)
        names = {_text_id(each): each for each in ids}
        return {names[each]: score for each, score in self._known.of(names).items()}

    def set_score(self, document_id: str, score: float) -> bool:
        """Gather a score that takes the place of the one that :meth:`scores` told of.

        False in an index of an earlier layout, and where the weight is too far from the one that the document had.
        """
        if self.folder.layout < SCORES_LAYOUT or self._known is None:
            return False
        document_id = _text_id(document_id)
        document, bucket = NutchDocument(), self._known.bucket(document_id)
        if self.weights.powers.keys() - {"pagerank"}:
            document = NutchDocument.from_json(self._known.document(document_id))
            document.remove("pagerank")
        document.add("pagerank", repr(score))
        weight = field_of_weight(self.weights.of(document), bucket, self.folder.layout)
        if weight is None:
            return False
        self._scores[document_id] = Scores(score, weight)
        return True

    def _flush_when_full(self) -> None:
        if len(self._pending) >= self.batch or self._size >= _BATCH_BYTES:
            self.commit()

    def commit(self) -> None:
        """Commit what is gathered; an index is made even if nothing is."""
        if not (self._pending or self._scores) and self.folder.exists:
            return
        with self.folder.lock():
            if self._pending or not self.folder.exists:
                try:
                    self._commit(self.folder.open_or_create())
                except (ValueError, OSError, RuntimeError) as error:
                    raise self.folder.unwritable(error) from error
            self._pending, self._size = {}, 0
            if self._scores:
                self._commit_scores()
        self._known = None

    def _commit_scores(self) -> None:
        replace_scores(self.folder, self._scores)
        self._scores = {}

    def _commit(self, index: tantivy.Index) -> None:
        writer = index.writer(_HEAP, 1)
        try:
            if index.searcher().num_docs:
                for document_id in self._pending:
                    writer.delete_documents_by_term("id", document_id)
            for document in self._pending.values():
                if document is not None:
                    writer.add_document(document)
            writer.commit()
            writer.wait_merging_threads()  # otherwise merges are given up and segments pile up
        finally:
            del writer  # its lock goes with it, and a traceback would keep it

    def close(self) -> None:
        """Commit what is left."""
        if self._pending or self._scores:
            self.commit()

    def describe(self) -> str:
        """Return the settings."""
        return (
            f"EmbeddedIndexWriter\n\tindex.embedded.path : {self.folder.path}\n"
            f"\tindex.embedded.batch : documents committed at once ({self.batch})\n"
            f"\tindex.weight.fields : {self.weights}\n"
        )

    def _fields(self, document: NutchDocument) -> dict[str, Any]:
        import orjson

        found = search_fields(document, self.folder.analyzer, self.weights, self._sketches)
        bucket, weight = split_weight(found.weight, self.folder.layout)
        fields: dict[str, Any] = {
            "id": _text_id(document.id),
            "exact": [f"weight={bucket}", *found.exact],
            "other": found.other,
            "weight": weight,
            "document": orjson.dumps({**document.to_json(), "id": _text_id(document.id), NEAR: found.near}),
            **found.texts,
        }
        if self.folder.layout > 1:
            fields["date"] = found.date
        if self.folder.layout > 2:
            fields |= {f"{FACET}{name}": values for name, values in found.facets.items()}
        if self.folder.layout >= SCORES_LAYOUT and (score := _finite(document.get("pagerank"))) is not None:
            fields["pagerank"] = score
        return fields


def _finite(text: str | None) -> float | None:
    try:
        number = float(text or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _text_id(document_id: str) -> str:
    """Return an id that can be written as UTF-8, the same for a document and for its delete."""
    try:
        document_id.encode()
    except UnicodeEncodeError:
        return clean_text(document_id)
    return document_id
