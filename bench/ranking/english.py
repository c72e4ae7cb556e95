"""The Cranfield collection: 1,400 abstracts on aerodynamics, 225 questions, judged by their authors (Cleverdon 1967).

Its only links are lists of all pages: it measures text alone, in English. It is downloaded from a public repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from html import escape
from pathlib import Path

from bench.ranking.collection import Collection, by_turns
from bench.repositories import checked_out
from nutch2py.search.evaluation.ranking_metrics import RELEVANCE_THRESHOLD, Judgement

REPOSITORY, COMMIT = "noramtboraas/information-retrieval", "4ea1b8e02da1db64b68b0364d50620b3c95528dc"
START = "http://cranfield.example/"
_LIST = 100  # pages in a list
_RELEVANCE = {"1": 1.0, "2": 1.0, "3": 0.5, "4": 0.1}
"""Cleverdon's codes: complete answer, high degree of relevance, useful as background, minimum interest."""


def cranfield(checkouts: Path) -> Collection:
    """Return the collection; fetch a missing repository."""
    folder = checked_out(REPOSITORY, COMMIT, ["/cran*"], checkouts)
    return collection(*((folder / name).read_text("latin-1") for name in ("cran.all.1400", "cran.qry", "cranqrel")))


def collection(documents: str, questions: str, relevant: str) -> Collection:
    """Return the collection from its three files."""
    texts = {number: (parts.get("T", ""), parts.get("W", "")) for number, parts in _entries(documents)}
    pages = {f"{START}{number}": partial(_html, *text) for number, text in texts.items()}
    lists = [f"{START}list/{first}" for first in range(0, len(texts), _LIST)]
    for first, url in zip(range(0, len(texts), _LIST), lists, strict=True):
        pages[url] = partial(_html, f"list {first}", "", [*pages][first : first + _LIST])
    pages[START] = partial(_html, "start", "", lists)
    # Judgements number the questions by their order, not by their numbers.
    queries = [re.sub(r"[^\w ]+", " ", parts["W"]).strip() for _, parts in _entries(questions)]
    judgements: dict[str, dict[str, Judgement]] = {query: {} for query in queries}
    for line in relevant.splitlines():
        question, document, code = line.split()[:3]
        judgements[queries[int(question) - 1]][f"{START}{document}"] = Judgement(_RELEVANCE.get(code, 0.0))
    answered = [q for q in queries if any(each.relevance >= RELEVANCE_THRESHOLD for each in judgements[q].values())]
    return Collection("cranfield", f"{REPOSITORY} {COMMIT[:9]}", False, [START], pages, by_turns(answered), judgements)


def _entries(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield number and fields of each part that starts with ``.I number``; a field starts with a line ``.T``."""
    for entry in re.split(r"^\.I\s+", text, flags=re.MULTILINE)[1:]:
        number, _, rest = entry.partition("\n")
        parts = re.split(r"^\.([A-Z])\s*$", rest, flags=re.MULTILINE)
        fields = dict(zip(parts[1::2], (" ".join(part.split()) for part in parts[2::2]), strict=True))
        yield str(int(number)), fields


def _html(title: str, text: str, links: list[str] | None = None) -> str:
    items = "".join(f'<li><a href="{url}">{url.removeprefix(START)}</a>' for url in links or ())
    body = f"<h1>{escape(title)}</h1><p>{escape(text.removeprefix(title))}</p><ul>{items}</ul>"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"<body>{body}</body></html>"
    )
