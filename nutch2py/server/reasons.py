"""Why a document was found, in sentences, read from the numbers with which an index explains a score."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from nutch2py.server.wording import Wording

_LEAF = re.compile(r'^\s*([\d.]+(?:[eE]-?\d+)?)\s.*?\b(?:terms_)?(title|content|anchor|url|host|other):"?([^\s")^]+)')
_BOOST = re.compile(r"^\s*[\d.eE-]+\s+Boost x([\d.]+(?:[eE]-?\d+)?) of")
_FACTOR = re.compile(r"^weight: (.*)", re.MULTILINE)
_STANDING = re.compile(r"\((\w+) ([\d.]+(?:[eE]-?\d+)?)\) \^ (-?[\d.]+(?:e-?\d+)?)")
_AGE = re.compile(r"^freshness: ([\d.]+)", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+")


def reasons(words: Wording, query: str, told: str) -> list[str]:
    """Return sentences: which words stand where, where most of the score comes from, what it is multiplied for.

    ``told``: an explanation, a number and what it is of a line.
    """
    places: dict[str, dict[str, float]] = {}
    for value, field, term in _leaves(told):
        terms, word = places.setdefault(field, {}), _typed(query, term)
        terms[word] = terms.get(word, 0.0) + value
    if not places:
        return []
    found = [words("why_one", _listed(terms), words(f"in_{field}")) for field, terms in places.items()]
    sentences = [words("why_in", "; ".join(found))]
    if len(places) > 1:
        best = max(places, key=lambda field: sum(places[field].values()))
        sentences.append(words("why_most", words(f"in_{best}")))
    factor = _FACTOR.search(told)
    if factor and (standing := _STANDING.findall(factor[1])):
        shown = ", ".join(f"{name} {words.decimal(float(value))}" for name, value, _ in standing)
        times = math.prod(float(value) ** float(power) for _, value, power in standing)
        sentences.append(words("why_weight", words.decimal(times), shown))
    if age := _AGE.search(told):
        sentences.append(words("why_fresh", words.decimal(float(age[1]))))
    return sentences


def _leaves(told: str) -> Iterator[tuple[float, str, str]]:
    """Yield what each word in each field brings: value, field and term; the boosts around it are counted in."""
    boosts: list[tuple[int, float]] = []  # indent and factor
    for line in told.splitlines():
        line = line[:1000]
        indent = len(line) - len(line.lstrip())
        while boosts and boosts[-1][0] >= indent:
            boosts.pop()
        if boost := _BOOST.match(line):
            boosts.append((indent, float(boost[1])))
        elif match := _LEAF.match(line):
            yield float(match[1]) * math.prod(factor for _, factor in boosts), match[2], match[3]


def _typed(query: str, term: str) -> str:
    """Return the word of the query that a term was made of: ``crawlers`` for ``crawler``."""
    start = term[: max(3, len(term) - 2)]
    return next((word for word in _WORD.findall(query) if word.lower().startswith(start)), term)


def _listed(terms: dict[str, float]) -> str:
    return ", ".join(f"“{term}”" for term in list(terms)[:8])
