"""JudgedCollection: documents, queries and relevance judgements; splits of its queries and keyword queries."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from bench.judged.words import words

TUNING, REPORTING, BOTH = "tuning", "reporting", "both"
HALVES = (TUNING, REPORTING)
KEYWORDS = 3
"""Words of a keyword query."""


class Document(NamedTuple):
    """A text with a title, which may be empty."""

    title: str
    text: str


class JudgedCollection(NamedTuple):
    """Documents and queries by id; ``judgements`` has the grade of the relevant documents of each query."""

    name: str
    language: str
    documents: Mapping[str, Document]
    queries: Mapping[str, str]
    judgements: Mapping[str, Mapping[str, int]]

    def choose_queries(self, half: str, limit: int = 0) -> dict[str, str]:
        """Return the queries of a half that have a relevant document; a ``limit`` gives a sample, always the same."""
        chosen = [
            key
            for key in sorted(self.queries, key=_digest)
            if half in {half_of(key), BOTH} and any(self.judgements.get(key, {}).values())
        ]
        return {key: self.queries[key] for key in chosen[: limit or None]}


def half_of(query_id: str) -> str:
    """Return the half of a query: its id alone decides, so that translations of a question share a half.

    >>> half_of("1"), half_of("2")
    ('tuning', 'reporting')
    """
    return HALVES[hashlib.sha256(query_id.encode()).digest()[0] % 2]


def keyword_collection(collection: JudgedCollection, count: int = 150) -> JudgedCollection:
    """Return the collection with keyword queries: three content words of a document's title find the document.

    A document without a title of its own, or with a shorter one, gives words among its first 20. A content word has at
    least three letters (two in Chinese, Japanese and Korean), no digit, and is in at most an eighth of the documents.
    The choice depends on the ids only. Thai has no queries: nothing here cuts its words.
    """
    language, documents = collection.language, collection.documents
    frequency: Counter[str] = Counter()
    for title, text in documents.values():
        frequency.update(set(words(f"{title} {text}", language)))
    titles = Counter(document.title for document in documents.values())
    most, shortest = max(1, len(documents) // 8), 2 if language in {"zh", "ja", "ko"} else 3

    def content_words(text: str, count: int | None = None) -> list[str]:
        return [
            word
            for word in dict.fromkeys(words(text, language)[:count])
            if len(word) >= shortest and frequency[word] <= most and not re.search(r"\d", word)
        ]

    queries: dict[str, str] = {}
    for key in sorted(documents, key=_digest) if language != "th" else ():
        title, text = documents[key]
        content = content_words(title) if titles[title] == 1 else []
        if len(content) < KEYWORDS:
            content = content_words(text, 20)
        if len(content) >= KEYWORDS and len(queries) < count:
            chosen = set(random.Random(key).sample(content, KEYWORDS))
            queries[f"title-{key}"] = " ".join(word for word in content if word in chosen)
    judgements = {key: {key.removeprefix("title-"): 1} for key in queries}
    return collection._replace(name=f"{collection.name} (keywords)", queries=queries, judgements=judgements)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
