"""Explains in sentences why a document matches, from the score explanation of an index."""

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
    """Return sentences on the matching terms by field, the main source of the score, and its factors.

    ``explanation``: lines of a number and its description, indented as a tree.
    """
    fields: dict[str, dict[str, float]] = {}
    for value, field, term in _term_scores(explanation):
        terms, word = fields.setdefault(field, {}), _query_word(query, term)
        terms[word] = terms.get(word, 0.0) + value
    if not fields:
        return []
    matches = [i18n("why_one", _quote_terms(terms), i18n(f"in_{field}")) for field, terms in fields.items()]
    sentences = [i18n("why_in", "; ".join(matches))]
    if len(fields) > 1:
        best = max(fields, key=lambda field: sum(fields[field].values()))
        sentences.append(i18n("why_most", i18n(f"in_{best}")))
    weight = _WEIGHT.search(explanation)
    if weight and (factors := _WEIGHT_FACTOR.findall(weight[1])):
        shown = ", ".join(f"{name} {i18n.format_decimal(float(value))}" for name, value, _ in factors)
        product = math.prod(float(value) ** float(power) for _, value, power in factors)
        sentences.append(i18n("why_weight", i18n.format_decimal(product), shown))
    if freshness := _FRESHNESS.search(explanation):
        sentences.append(i18n("why_fresh", i18n.format_decimal(float(freshness[1]))))
    return sentences


def _term_scores(explanation: str) -> Iterator[tuple[float, str, str]]:
    """Yield the score of each term in each field, with enclosing boosts: value, field and term."""
    boosts: list[tuple[int, float]] = []  # indent and factor
    for line in explanation.splitlines():
        line = line[:1000]
        indent = len(line) - len(line.lstrip())
        while boosts and boosts[-1][0] >= indent:
            boosts.pop()
        if boost := _BOOST.match(line):
            boosts.append((indent, float(boost[1])))
        elif match := _TERM_SCORE.match(line):
            yield float(match[1]) * math.prod(factor for _, factor in boosts), match[2], match[3]


def _query_word(query: str, term: str) -> str:
    """Return the query word of an analyzed term: ``crawlers`` for ``crawler``."""
    start = term[: max(3, len(term) - 2)]
    return next((word for word in _WORD.findall(query) if word.lower().startswith(start)), term)


def _quote_terms(terms: dict[str, float]) -> str:
    return ", ".join(f"“{term}”" for term in list(terms)[:8])
