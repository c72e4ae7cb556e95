"""Why a document was found, in sentences, read from the numbers with which an index explains a score."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from nutch2py.server.translations import Translations

_TERM_SCORE = re.compile(
    r'^\s*([\d.]+(?:[eE]-?\d+)?)\s.*?\b(?:terms_)?(title|content|anchor|url|host|other):"?([^\s")^]+)'
)
_BOOST = re.compile(r"^\s*[\d.eE-]+\s+Boost x([\d.]+(?:[eE]-?\d+)?) of")
_WEIGHT = re.compile(r"^weight: (.*)", re.MULTILINE)
_WEIGHT_FACTOR = re.compile(r"\((\w+) ([\d.]+(?:[eE]-?\d+)?)\) \^ (-?[\d.]+(?:e-?\d+)?)")
_FRESHNESS = re.compile(r"^freshness: ([\d.]+)", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+")


def explain_score(i18n: Translations, query: str, explanation: str) -> list[str]:
    """Return sentences: which words stand where, where most of the score comes from, what it is multiplied for.

    ``explanation``: an explanation, a number and what it is of a line.
    """
    places: dict[str, dict[str, float]] = {}
    for value, field, term in _term_scores(explanation):
        terms, word = places.setdefault(field, {}), _query_word(query, term)
        terms[word] = terms.get(word, 0.0) + value
    if not places:
        return []
    found = [i18n("why_one", _quote_terms(terms), i18n(f"in_{field}")) for field, terms in places.items()]
    sentences = [i18n("why_in", "; ".join(found))]
    if len(places) > 1:
        best = max(places, key=lambda field: sum(places[field].values()))
        sentences.append(i18n("why_most", i18n(f"in_{best}")))
    factor = _WEIGHT.search(explanation)
    if factor and (standing := _WEIGHT_FACTOR.findall(factor[1])):
        shown = ", ".join(f"{name} {i18n.format_decimal(float(value))}" for name, value, _ in standing)
        times = math.prod(float(value) ** float(power) for _, value, power in standing)
        sentences.append(i18n("why_weight", i18n.format_decimal(times), shown))
    if age := _FRESHNESS.search(explanation):
        sentences.append(i18n("why_fresh", i18n.format_decimal(float(age[1]))))
    return sentences


def _term_scores(told: str) -> Iterator[tuple[float, str, str]]:
    """Yield what each word in each field brings: value, field and term; the boosts around it are counted in."""
    boosts: list[tuple[int, float]] = []  # indent and factor
    for line in told.splitlines():
        line = line[:1000]
        indent = len(line) - len(line.lstrip())
        while boosts and boosts[-1][0] >= indent:
            boosts.pop()
        if boost := _BOOST.match(line):
            boosts.append((indent, float(boost[1])))
        elif match := _TERM_SCORE.match(line):
            yield float(match[1]) * math.prod(factor for _, factor in boosts), match[2], match[3]


def _query_word(query: str, term: str) -> str:
    """Return the word of the query that a term was made of: ``crawlers`` for ``crawler``."""
    start = term[: max(3, len(term) - 2)]
    return next((word for word in _WORD.findall(query) if word.lower().startswith(start)), term)


def _quote_terms(terms: dict[str, float]) -> str:
    return ", ".join(f"“{term}”" for term in list(terms)[:8])
