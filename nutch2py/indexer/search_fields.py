"""What an index is asked by: a document's words, cut alike for the embedded index, Solr and OpenSearch."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import unquote

from nutch2py.backends.analysis import Analyzer
from nutch2py.backends.index_folder import EXACT_FIELDS, MAX_WEIGHT, MIN_WEIGHT, TERMS, TEXT_FIELDS
from nutch2py.conf import Configuration
from nutch2py.document import NutchDocument

_MAX_EXACT = 1_000  # characters; a longer value is none that anybody types
_MAX_OTHER = 20_000
_NOT_SEARCHED = frozenset({"id", "boost", "tstamp", "content", "maintext", "rawcontent"})
_DATES = ("date", "publishedDate", "lastModified", "tstamp")


class SearchFields(NamedTuple):
    """``texts``: field of TEXT_FIELDS -> its values, as terms with blanks between; ``other``: terms ``field=word``.

    ``exact``: whole values, ``field=value``. ``weight``: what relevance is multiplied by. ``date``: seconds since 1970
    of when a page was written, as far as is known, or fetched; 0: unknown.
    """

    texts: dict[str, list[str]]
    other: list[str]
    exact: list[str]
    weight: float
    date: int


class Weights:
    """What the relevance of a document is multiplied by: the product of ``index.weight.fields`` ^ a power."""

    def __init__(self, conf: Configuration) -> None:
        self.fields = conf.get_strings("index.weight.fields", ("boost", "pagerank"))
        self.power = conf.get_float("index.weight.power", 0.02)

    def of(self, document: NutchDocument) -> float:
        """Return the weight; a field that is absent or no number counts as 1."""
        weight = 1.0
        for name in self.fields:
            try:
                value = float(document.get(name) or 1.0)
            except ValueError:
                continue
            if not math.isnan(value):
                weight *= min(max(value, MIN_WEIGHT), MAX_WEIGHT) ** self.power
        return min(max(weight, MIN_WEIGHT), MAX_WEIGHT)


def search_fields(document: NutchDocument, analyzer: Analyzer, weights: Weights) -> SearchFields:
    """Return what a document is found by. Texts are cut by the rules of its language (``lang``)."""
    lang = document.get("lang") or "en"

    def words(text: str) -> list[str]:
        return analyzer.words(text, lang)

    texts: dict[str, list[str]] = {}
    exact: list[str] = []
    other: list[str] = []
    for name, values in document:
        if name in TEXT_FIELDS:
            if name == "url":
                values = [unquote(value, errors="ignore")[:2000] for value in values]
            texts[name] = [" ".join(words(value)) for value in values]
        elif name in EXACT_FIELDS:
            exact.extend(f"{name}={value.lower()}" for value in values if len(value) <= _MAX_EXACT)
        elif name not in _NOT_SEARCHED:
            other.extend(_named(name, value[:_MAX_OTHER], words) for value in values)
    for host in document.values("host"):
        exact.extend(f"site={domain}" for domain in _domains(host.lower()))
    return SearchFields(texts, other, exact, weights.of(document), _date(document))


def _named(name: str, value: str, words: Callable[[str], list[str]]) -> str:
    return " ".join(f"{name}={word}" for word in words(value))


def _domains(host: str) -> list[str]:
    labels = host.strip(".").split(".")
    return [".".join(labels[i:]) for i in range(len(labels))]


def _date(document: NutchDocument) -> int:
    for name in _DATES:
        try:
            return int(datetime.fromisoformat(document.get(name) or "").timestamp())
        except (ValueError, OverflowError):
            continue
    return 0


class ServerTerms:
    """The fields ``terms_*`` that servers are sent, by which :mod:`nutch2py.search` asks them; see ``index.terms``."""

    def __init__(self, conf: Configuration) -> None:
        self.wanted = conf.get_bool("index.terms", True)
        self._analyzer, self._weights = Analyzer.of(conf), Weights(conf)

    def of(self, document: NutchDocument) -> dict[str, str | list[str]]:
        """Return the fields of a document, none where they are not wanted."""
        if not self.wanted:
            return {}
        found = search_fields(document, self._analyzer, self._weights)
        fields: dict[str, str | list[str]] = {f"{TERMS}{name}": values for name, values in found.texts.items()}
        fields |= {f"{TERMS}exact": found.exact, f"{TERMS}other": found.other}
        fields |= {f"{TERMS}weight": str(found.weight), f"{TERMS}date": str(found.date)}
        fields[f"{TERMS}analysis"] = self._analyzer.version
        return {name: value for name, value in fields.items() if value}


def without_terms(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a document without the fields of :class:`ServerTerms`, for a server that has none of these."""
    return {name: value for name, value in fields.items() if not name.startswith(TERMS)}
