"""PageVectors: makes the vectors of documents in batches, and only for texts that changed."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from nutch2py.backends.encoders.encoder_selection import TextEncoder, open_encoder
from nutch2py.backends.vectors.vector_store import StoredVector, VectorKey, VectorStore
from nutch2py.conf.configuration import Configuration
from nutch2py.records.document import NutchDocument, clean_text

_BATCH_SIZE = 64  # texts; those of similar length are encoded together
_MAX_CHARACTERS = 20_000
"""Characters of a text that an encoder gets; models read some thousand at most."""


class VectorChanges(NamedTuple):
    """Changes of the store for a batch of documents.

    Attributes:
        vectors: New vectors by document id.
        keys: New keys of vectors whose texts are unchanged.
        deleted: Ids of documents without a vector.

    """

    vectors: dict[str, StoredVector]
    keys: dict[str, VectorKey]
    deleted: set[str]


class PageVectors:
    """Collects documents, and encodes those whose text the store has not, 64 at once.

    ``encoded``: number of texts encoded so far.
    """

    def __init__(self, encoder: TextEncoder, store: VectorStore) -> None:
        self.encoder, self.store = encoder, store
        self.encoded = 0
        self._waiting: dict[str, tuple[VectorKey, str]] = {}
        self._changes = VectorChanges({}, {}, set())

    @classmethod
    def from_conf(cls, conf: Configuration, store: VectorStore) -> PageVectors | None:
        """Return the vectors for an index; None when no encoder is configured."""
        encoder = open_encoder(conf)
        return cls(encoder, store) if encoder is not None else None

    def add(self, document_id: str, document: NutchDocument) -> None:
        """Add a document; it replaces the vector of an earlier version."""
        self.delete(document_id)
        text = self._text_of(document)
        if not text:
            return
        self._changes.deleted.discard(document_id)
        digest = blake2b(text.encode(), digest_size=16).digest()
        self._waiting[document_id] = VectorKey(self.encoder.model, digest, document.get("digest") or ""), text
        if len(self._waiting) >= _BATCH_SIZE:
            self._encode_waiting()

    def delete(self, document_id: str) -> None:
        """Delete the vector of a document."""
        for pending in (self._waiting, self._changes.vectors, self._changes.keys):
            pending.pop(document_id, None)
        self._changes.deleted.add(document_id)

    def take(self) -> VectorChanges:
        """Return the changes since the last call."""
        self._encode_waiting()
        changes, self._changes = self._changes, VectorChanges({}, {}, set())
        return changes

    def vectors_of(self, changes: VectorChanges) -> Mapping[str, StoredVector]:
        """Return the vectors of all documents of some changes: the new ones, and those of unchanged texts."""
        return {**self.store.read([*changes.keys]), **changes.vectors}

    def _text_of(self, document: NutchDocument) -> str:
        """Return title and main text of a document; "" for one in another language than the encoder's."""
        language = (document.get("lang") or "").lower().partition("-")[0]
        if self.encoder.languages and language and language not in self.encoder.languages:
            return ""
        parts = [*document.values("title")[:1], document.get("maintext") or " ".join(document.values("content"))]
        return clean_text("\n".join(parts)[:_MAX_CHARACTERS]).strip()

    def _encode_waiting(self) -> None:
        known = self.store.read_keys([*self._waiting])
        changed = list[str]()
        for document_id, (key, _) in self._waiting.items():
            if document_id in known and known[document_id][:2] == key[:2]:
                self._changes.keys[document_id] = key
            else:
                changed.append(document_id)
        if changed:
            vectors = self.encoder.encode([self._waiting[each][1] for each in changed])
            for document_id, vector in zip(changed, vectors, strict=True):
                if vector.any():
                    key = self._waiting[document_id][0]
                    self._changes.vectors[document_id] = StoredVector.from_array(key, vector)
                else:
                    self._changes.deleted.add(document_id)
            self.encoded += len(changed)
        self._waiting.clear()
