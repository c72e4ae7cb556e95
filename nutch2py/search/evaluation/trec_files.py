"""Files of TREC: topics, relevance judgements (qrels) and runs.

Topics are lines of id and query, separated by a tab, or ``<top>`` elements with ``<num>`` and ``<title>``. A line of
qrels has query id, iteration, document and grade; a line of a run has query id, ``Q0``, document, rank, score and tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import unescape
from pathlib import Path

from nutch2py.errors import InputError
from nutch2py.search.evaluation.ranking_metrics import read_text

_TOPIC_START, _TOPIC_END = "<top>", "</top>"
_FIELD = re.compile(r"<(num|title)>([^<]*)", re.IGNORECASE)
_LABEL = re.compile(r"^\s*(?:Number|Topic)\s*:", re.IGNORECASE)


def read_topics(path: Path) -> dict[str, str]:
    """Return the queries of a topics file by id; raise InputError for an invalid line or topic."""
    text = read_text(path)
    pairs = _topic_elements(path, text) if "<top>" in text.lower() else _topic_lines(path, text)
    topics: dict[str, str] = {}
    for key, query in pairs:
        if key in topics:
            raise InputError(f"{path}: the query id {key} occurs twice")
        topics[key] = query
    return topics


def _topic_lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        key, _, query = line.partition("\t")
        if not key.strip() or not query.strip():
            raise InputError(f"{path}:{number}: write query id and query, separated by a tab")
        yield key.strip(), query.strip()


def _split_topics(text: str) -> list[str]:
    """Return the texts between ``<top>`` and ``</top>`` in any case."""
    lower = text.lower() if text.isascii() else re.sub("[A-Z]", lambda letter: letter[0].lower(), text)
    topics = []
    start = lower.find(_TOPIC_START)
    while start >= 0 and (end := lower.find(_TOPIC_END, start)) >= 0:
        topics.append(text[start + len(_TOPIC_START) : end])
        start = lower.find(_TOPIC_START, end)
    return topics


def _topic_elements(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield id and title of each ``<top>``; its elements need no end tags, as in TREC's own files."""
    for number, topic in enumerate(_split_topics(text), 1):
        fields = {name.lower(): " ".join(_LABEL.sub("", value).split()) for name, value in _FIELD.findall(topic)}
        if not fields.get("num") or not fields.get("title"):
            raise InputError(f"{path}: topic {number} has no <num> or no <title>")
        yield fields["num"], unescape(fields["title"])


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return the grades of documents by query id; raise InputError for an invalid line."""
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            query, _, document, grade = line.split()
            grades.setdefault(query, {})[document] = int(grade)
        except ValueError:
            raise InputError(
                f"{path}:{number}: write query id, iteration, document and grade (a whole number)"
            ) from None
    return grades


def format_run(rankings: Mapping[str, Sequence[str]], tag: str) -> Iterable[str]:
    """Yield the lines of a run file, best document first.

    Scores are numbers of places from the end: trec_eval sorts by score in single precision and breaks ties by document,
    so relevance scores could change the order.
    """
    for query, documents in rankings.items():
        for rank, document in enumerate(documents, 1):
            yield f"{query} Q0 {document} {rank} {len(documents) - rank + 1} {tag}"
