"""Readers of the files of judged collections: SQuAD's JSON, SMART (``.I``, ``.T``, ``.W``), NPL's and TREC's."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.judged.collection import Document, JudgedCollection
from nutch2py.search.evaluation.trec_files import read_qrels, read_topics


def read_squad(name: str, language: str, files: Sequence[Path], titles: bool = True) -> JudgedCollection:
    """Return the collection of questions whose paragraph is the answer; equal paragraphs are one document.

    Questions without an answer (SQuAD 2) are skipped.
    ``titles``: whether the titles of articles are those of their paragraphs.
    """
    documents: dict[str, Document] = {}
    queries: dict[str, str] = {}
    judgements: dict[str, dict[str, int]] = {}
    known: dict[str, str] = {}
    for file in files:
        data = file.read_bytes()
        for article in json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)["data"]:
            title = article.get("title", "").replace("_", " ") if titles else ""
            for paragraph in article["paragraphs"]:
                text = paragraph["context"]
                # JSQuAD has its titles in the paragraphs, before a separator
                if " [SEP] " in text:
                    text = text.split(" [SEP] ", 1)[1]
                key = known.setdefault(text, str(len(known) + 1))
                documents.setdefault(key, Document(title, text))
                for question in paragraph["qas"]:
                    if question.get("is_impossible") or not question.get("answers"):
                        continue
                    query_id = str(question["id"])
                    queries[query_id] = question["question"]
                    judgements[query_id] = {key: 1}
    return JudgedCollection(name, language, documents, queries, judgements)


def read_smart(name: str, documents: Path, queries: Path, judgements: Path, by_order: bool = False) -> JudgedCollection:
    """Return a collection in SMART's form.

    ``judgements`` has lines of query, document and more.
    ``by_order``: judgements number the queries by their order (Cranfield).
    """
    texts = {key: Document(parts.get("T", ""), parts.get("W", "")) for key, parts in _entries(documents)}
    asked = {
        str(place) if by_order else key: parts.get("W", "") for place, (key, parts) in enumerate(_entries(queries), 1)
    }
    relevant: dict[str, dict[str, int]] = {}
    for line in judgements.read_text("latin-1").splitlines():
        values = line.split()
        if len(values) < 2:
            continue
        query, document = values[0].lstrip("0"), values[1].lstrip("0")
        if by_order and int(values[2]) < 1:
            continue  # Cranfield's -1: no relevance
        relevant.setdefault(query, {})[document] = 1
    found = {key: document for key, document in texts.items() if document.title or document.text}
    return JudgedCollection(name, "en", found, asked, relevant)


def read_npl(name: str, documents: Path, queries: Path, judgements: Path) -> JudgedCollection:
    """Return the NPL collection: parts that end with a slash, each starting with its number."""
    texts = {key: Document("", text) for key, text in _parts(documents)}
    relevant = {key: dict.fromkeys(text.split(), 1) for key, text in _parts(judgements)}
    return JudgedCollection(name, "en", texts, {key: text.lower() for key, text in _parts(queries)}, relevant)


def read_trec(folder: Path, language: str) -> JudgedCollection:
    """Return the collection of a folder: ``documents.jsonl`` or ``documents.trec``, ``topics.txt`` and ``qrels.txt``.

    A line of ``documents.jsonl`` is an object with ``id``, ``title`` and ``text``. ``documents.trec`` has ``<DOC>``
    elements with ``<DOCNO>``, ``<TITLE>`` or ``<HEADLINE>``, and ``<TEXT>``. The folder has the collection's name.
    """
    lines = folder / "documents.jsonl"
    if lines.exists():
        rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines() if line.strip()]
        documents = {str(row["id"]): Document(row.get("title", ""), row["text"]) for row in rows}
    else:
        documents = dict(_trec_documents(folder / "documents.trec"))
    return JudgedCollection(
        folder.name, language, documents, read_topics(folder / "topics.txt"), read_qrels(folder / "qrels.txt")
    )


def _trec_documents(file: Path) -> Iterator[tuple[str, Document]]:
    for element in re.findall(r"<DOC>(.*?)</DOC>", file.read_text("utf-8", errors="replace"), re.DOTALL):
        fields = {
            name: re.sub(r"<[^>]*>", " ", text).strip()
            for name, text in re.findall(r"<(DOCNO|TITLE|HEADLINE|TEXT)>(.*?)</\1>", element, re.DOTALL)
        }
        title = fields.get("TITLE") or fields.get("HEADLINE", "")
        yield fields["DOCNO"], Document(" ".join(title.split()), fields.get("TEXT", ""))


def _entries(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield number and fields of each part that starts with ``.I number``; a field starts with a line ``.T``."""
    for entry in re.split(r"^\.I\s+", file.read_text("latin-1"), flags=re.MULTILINE)[1:]:
        number, _, rest = entry.partition("\n")
        parts = re.split(r"^\.([A-Z])\s*$", rest, flags=re.MULTILINE)
        fields = dict(zip(parts[1::2], (" ".join(part.split()) for part in parts[2::2]), strict=True))
        yield str(int(number)), fields


def _parts(file: Path) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\s*/\s*$", file.read_text("latin-1"), flags=re.MULTILINE):
        number, _, text = part.strip().partition("\n")
        if number:
            yield number.strip(), " ".join(text.split())
