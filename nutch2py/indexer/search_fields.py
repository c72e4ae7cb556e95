"""Search fields of a document: terms, exact values, facets and weight, for all indexes alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.analysis.minhash import compute_sketch, distinct_words
from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.backends.index_fields import EXACT_FIELDS, FACET_PREFIX, SKETCH_FIELD, TERMS_PREFIX, TEXT_FIELDS
from nutch2py.conf.configuration import Configuration
from nutch2py.records.document import NutchDocument
from nutch2py.url.display_url import host_forms

_MAX_EXACT_CHARACTERS = 1_000  # longer values are not searched
_MAX_OTHER_CHARACTERS = 20_000
SKETCHES_PROPERTY = "index.sketches"
_MAX_PATH_DEPTH = 4
_UNSEARCHED_FIELDS = frozenset({"id", "boost", "tstamp", "content", "maintext", "rawcontent"})
PAGE_DATE_FIELDS = ("date", "publishedDate", "lastModified", "tstamp")
"""Fields with the date of a page, the most reliable first; the last one is its fetch time."""


class SearchFields(NamedTuple):
    """Search fields of a document.

    Attributes:
        texts: Field of TEXT_FIELDS -> its values, as terms separated by spaces.
        other: Terms ``field=word``.
        exact: Whole values, ``field=value``.
        weight: Factor of relevance.
        date: Date of the page, or of its fetch, in seconds since 1970; 0: unknown.
        facets: Facet -> values.
        sketch: Sketch of the main text, or else of the text; "" without text.

    """

    texts: dict[str, list[str]]
    other: list[str]
    exact: list[str]
    weight: float
    date: int
    facets: dict[str, list[str]]
    sketch: str


def build_search_fields(
    document: NutchDocument, analyzer: Analyzer, weights: DocumentWeights, with_sketch: bool = True
) -> SearchFields:
    """Return the search fields of a document. Texts are analysed by the rules of its language (``lang``)."""
    lang = document.get("lang") or "en"

    def words(text: str) -> list[str]:
        return analyzer.index_terms(text, lang)

    texts: dict[str, list[str]] = {}
    content: list[list[str]] = []
    exact: list[str] = []
    other: list[str] = []
    for name, values in document:
        if name in TEXT_FIELDS:
            if name == "url":
                values = [unquote(value, errors="ignore")[:2000] for value in values]
            analysed = [analyzer.word_and_extra_terms(value, lang) for value in values]
            texts[name] = [" ".join(chain(*each)) for each in analysed]
            content = [terms for terms, _ in analysed] if name == "content" else content
        elif name in EXACT_FIELDS:
            wholes = [value.lower() for value in values if len(value) <= _MAX_EXACT_CHARACTERS]
            if name == "domain":
                wholes = [form for whole in wholes for form in host_forms(whole)]
            exact.extend(f"{name}={whole}" for whole in wholes)
        elif name not in _UNSEARCHED_FIELDS:
            other.extend(_prefix_words(name, value[:_MAX_OTHER_CHARACTERS], words) for value in values)
    for host in document.values("host"):
        sites = [domain for form in host_forms(host.lower()) for domain in _parent_domains(form)]
        exact.extend(f"site={domain}" for domain in dict.fromkeys(sites))
    date = page_date(document)
    facets = {
        name: [value for value in document.values(name) if 0 < len(value) <= _MAX_EXACT_CHARACTERS]
        for name in ("host", "lang", "type")
    }
    facets["type"] = [value for value in facets["type"] if "/" in value]
    facets["path"], facets["date"] = _url_dirs(document.get("url") or ""), _date_periods(date)
    exact.extend(f"{name}={value.lower()}" for name in ("path", "date") for value in facets[name])
    sketch = _document_sketch(document, content) if with_sketch else ""
    if sketch:
        exact.append(f"near={sketch}")
    return SearchFields(texts, other, exact, weights.weight_of(document), date, facets, sketch)


def _document_sketch(document: NutchDocument, content: list[list[str]]) -> str:
    main = document.get("maintext")
    if main:
        return compute_sketch(distinct_words(main), main)
    return compute_sketch(chain.from_iterable(content), " ".join(document.values("content")))


def _prefix_words(name: str, value: str, words: Callable[[str], list[str]]) -> str:
    return " ".join(f"{name}={word}" for word in words(value))


def _parent_domains(host: str) -> list[str]:
    labels = host.strip(".").split(".")
    return [".".join(labels[i:]) for i in range(len(labels))]


def page_date(document: NutchDocument) -> int:
    """Return the date of a page, or of its fetch, in seconds since 1970; 0 when unknown."""
    for name in PAGE_DATE_FIELDS:
        try:
            return int(datetime.fromisoformat(document.get(name) or "").timestamp())
        except (ValueError, OverflowError):
            continue
    return 0


def _url_dirs(url: str) -> list[str]:
    """Return the folders of a page, as ``host/folder/``.

    >>> _url_dirs("http://a.org/docs/api/x.html")
    ['a.org/docs/', 'a.org/docs/api/']
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    names = [name for name in parts.path.split("/")[1:-1] if name][:_MAX_PATH_DEPTH]
    host = parts.netloc.rpartition("@")[2]
    folders = ["/".join([host, *names[:end], ""]) for end in range(1, len(names) + 1)]
    return [folder for folder in folders if host and len(folder) <= _MAX_EXACT_CHARACTERS]


def _date_periods(date: int) -> list[str]:
    """Return year and month of a date, in UTC; an empty list when it is unknown.

    >>> _date_periods(1_000_000_000), _date_periods(0)
    (['2001', '2001-09'], [])
    """
    if not date:
        return []
    try:
        month = datetime.fromtimestamp(date, UTC).strftime("%Y-%m")
    except (ValueError, OverflowError, OSError):
        return []
    return [month[:-3], month]


class TermsFieldBuilder:
    """Builds the fields ``terms_*`` for servers, which :mod:`nutch2py.search` queries; see ``index.terms``."""

    def __init__(self, conf: Configuration) -> None:
        self.is_enabled = conf.get_bool("index.terms", True)
        self._analyzer, self._weights = Analyzer.from_conf(conf), DocumentWeights(conf)
        self._with_sketch = conf.get_bool(SKETCHES_PROPERTY, True)

    def build(self, document: NutchDocument) -> dict[str, str | list[str]]:
        """Return the fields of a document; an empty dict when disabled."""
        if not self.is_enabled:
            return {}
        search_fields = build_search_fields(document, self._analyzer, self._weights, self._with_sketch)
        fields: dict[str, str | list[str]] = {
            f"{TERMS_PREFIX}{name}": values for name, values in search_fields.texts.items()
        }
        fields |= {f"{TERMS_PREFIX}exact": search_fields.exact, f"{TERMS_PREFIX}other": search_fields.other}
        fields |= {f"{TERMS_PREFIX}weight": str(search_fields.weight), f"{TERMS_PREFIX}date": str(search_fields.date)}
        fields |= {f"{TERMS_PREFIX}{FACET_PREFIX}{name}": search_fields.facets[name] for name in ("path", "date")}
        fields |= {SKETCH_FIELD: search_fields.sketch, f"{TERMS_PREFIX}analysis": self._analyzer.version}
        return {name: value for name, value in fields.items() if value}


def strip_terms_fields(fields: dict[str, object]) -> dict[str, object]:
    """Return a document without the fields of :class:`TermsFieldBuilder`, for a server that lacks them."""
    return {name: value for name, value in fields.items() if not name.startswith(TERMS_PREFIX)}
