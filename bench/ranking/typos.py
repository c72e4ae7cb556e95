"""Typing errors: scripts/bench typos FOLDER... [-words N]: random single edits of words of embedded indexes.

Each query is one word of a page with one edit: a letter inserted, deleted or replaced, or two swapped; half of the
edits are in the last four letters. A query is right when one of the first three hits has the word.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.results.search_results import field_values
from nutch2py.search.suggestions.word_edits import letters_like

_WORD = re.compile(r"(?<![\w\-'’])[^\W\d_]+(?![\w\-'’])")
_ALL_DOCUMENTS = "-xyzzyxyzzy"


class TypoResult(NamedTuple):
    """Result of a measurement. ``missed``: the word, and the query. ``seconds``: CPU time of each query, sorted."""

    queries: int
    missed: list[tuple[str, str]]
    seconds: list[float]

    @property
    def share(self) -> float:
        """The share of queries that are right."""
        return 1 - len(self.missed) / self.queries


def measure_typos(searcher: EmbeddedSearcher, queries: int, min_length: int = 5, seed: int = 0) -> TypoResult:
    """Search random single edits of random words of an index with at least ``min_length`` letters."""
    chance = random.Random(seed)
    ids_by_term: dict[str, set[str]] = {}
    terms: dict[str, str] = {}
    for document in (found.fields for found in searcher.find_documents(_ALL_DOCUMENTS, searcher.count())):
        text = "\n".join([*field_values(document, "title"), *field_values(document, "content")])
        language = str(document.get("lang", "en"))
        for term in searcher.analyzer.index_terms(text, language):
            ids_by_term.setdefault(term, set()).add(str(document["id"]))
        for word in {word.lower() for word in _WORD.findall(text)}:
            terms.setdefault(word, searcher.analyzer.index_terms(word, language)[0])
    words = sorted(word for word in terms if len(word) >= min_length)
    missed, seconds = list[tuple[str, str]](), list[float]()
    for _ in range(queries):
        word = chance.choice(words)
        query = random_edit(word, chance)
        started = time.process_time()
        hits = searcher.search(query, 0, 3).hits
        seconds.append(time.process_time() - started)
        if ids_by_term[terms[word]].isdisjoint(hit.id for hit in hits):
            missed.append((word, query))
    return TypoResult(queries, missed, sorted(seconds))


def random_edit(word: str, chance: random.Random) -> str:
    """Return a word with one random edit, in half of the cases in its last four letters."""
    letters = letters_like(word)
    edited = word
    while edited == word:
        at = chance.randrange(max(0, len(word) - 4) if chance.random() < 0.5 else 0, len(word))
        letter, before, after = chance.choice(letters), word[:at], word[at + 1 :]
        swapped = before + after[:1] + word[at] + after[1:]
        edited = chance.choice((before + letter + word[at:], before + after, before + letter + after, swapped))
    return edited


def main(argv: Sequence[str] | None = None) -> int:
    """Measure embedded indexes and print a table."""
    parser = argparse.ArgumentParser(prog="bench typos", description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="folder of an embedded index")
    parser.add_argument("-words", type=int, default=1_000, metavar="N", help="number of queries of each index (1,000)")
    parser.add_argument("-letters", type=int, default=5, metavar="N", help="least number of letters of a word (5)")
    args = parser.parse_args(argv)
    print("| index | queries | right page in the first three | CPU ms: median | 95 % |\n|---|--:|--:|--:|--:|")
    for folder in args.folders:
        searcher = EmbeddedSearcher(Configuration.load(overrides={"index.embedded.path": folder}))
        found = measure_typos(searcher, args.words, args.letters)
        middle, late = (found.seconds[int(share * found.queries)] * 1000 for share in (0.5, 0.95))
        print(f"| {folder} | {found.queries:,} | {found.share:.1%} | {middle:.1f} | {late:.1f} |", flush=True)
    return 0
