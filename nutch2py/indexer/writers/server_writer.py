"""ServerIndexWriter: base class of writers to a server, with batches and rejected documents."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from nutch2py.backends.servers.server_retry import RequestRejectedError
from nutch2py.errors import IndexingError
from nutch2py.interfaces import IndexWriter
from nutch2py.records.document import NutchDocument, clean_text
from nutch2py.support.reporting import warn

T = TypeVar("T")

_MAX_REJECTED_AT_START = 50
"""Number of rejected documents, with none accepted, after which a job stops: not the documents are wrong."""
_MAX_NAMED_DOCUMENTS = 200  # rejected documents reported by name; others are counted
_SCORE_FACTORS = ("boost", "pagerank")


class DocumentBatch:
    """Documents and deletes to send, the last operation for each id; full at a number of ids or characters.

    ``max_documents``: number of ids; ``max_characters``: characters of text.
    """

    def __init__(self, max_documents: int, max_characters: int) -> None:
        self.max_documents, self.max_characters = max(1, max_documents), max(1, max_characters)
        self._pending: dict[str, dict[str, object] | None] = {}  # None: a delete
        self._size = 0

    def add(self, document_id: str, fields: dict[str, Any]) -> bool:
        """Add a document; return whether the batch is full."""
        self._pending[document_id] = fields
        self._size += sum(sum(map(len, v)) if isinstance(v, list) else len(v) for v in fields.values())
        return self.is_full

    def delete(self, document_id: str) -> bool:
        """Add a delete; return whether the batch is full."""
        self._pending[document_id] = None
        return self.is_full

    @property
    def is_full(self) -> bool:
        """Whether the batch should be sent."""
        return len(self._pending) >= self.max_documents or self._size >= self.max_characters

    def drain(self) -> tuple[dict[str, dict[str, object]], list[str]]:
        """Return documents by id and ids to delete, and empty the batch: a failed batch must not be sent again."""
        pending, self._pending, self._size = self._pending, {}, 0
        added = {document_id: fields for document_id, fields in pending.items() if fields is not None}
        return added, [document_id for document_id, fields in pending.items() if fields is None]


class ServerIndexWriter(IndexWriter):
    """A writer with a batch that counts accepted and rejected documents.

    ``accepted``, ``rejected``: numbers of documents. ``server_name``: the server's name in messages.
    """

    server_name: str
    accepted = 0
    _batch: DocumentBatch

    @abstractmethod
    def _flush(self) -> None:
        """Send the batch."""

    def update(self, document: NutchDocument) -> None:
        """Replace a document, as :meth:`write` does."""
        self.write(document)

    def delete(self, document_id: str) -> None:
        """Add a delete to the batch."""
        if self._batch.delete(clean_text(document_id)):
            self._flush()

    def reject_document(self, url: str, document_id: str, reason: str) -> None:
        """Report a rejected document; raise IndexingError when all documents so far were rejected."""
        self.rejected += 1
        if self.rejected <= _MAX_NAMED_DOCUMENTS:
            warn(f"{self.server_name} rejects the document {document_id}: {reason}")
        if self.rejected >= _MAX_REJECTED_AT_START and not self.accepted:
            raise IndexingError(f"{self.server_name} at {url} rejects every document: {reason}")

    def report_rejected(self) -> None:
        """Report the number of rejected documents, if any."""
        if self.rejected:
            warn(f"{self.server_name} rejected {self.rejected} of {self.rejected + self.accepted} documents")


def send_bisecting(
    items: Sequence[T], send: Callable[[Sequence[T]], None], on_rejected: Callable[[T, RequestRejectedError], None]
) -> None:
    """Send items together; when they are rejected, bisect them to find the ones that the server rejects."""
    try:
        send(items)
    except RequestRejectedError as error:
        if len(items) == 1:
            on_rejected(items[0], error)
            return
        half = len(items) // 2
        send_bisecting(items[:half], send, on_rejected)
        send_bisecting(items[half:], send, on_rejected)


def document_to_json(document: NutchDocument) -> dict[str, object]:
    """Return a document's fields as JSON types, without score factors that are not finite.

    A NaN would become the page's score in every search.
    """
    fields = document.to_json()
    for name in _SCORE_FACTORS:
        if name in fields and not _is_finite(fields[name]):
            del fields[name]
    return fields


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return True  # the server decides
