"""How a query finds and ranks, in terms of the index: one rule for the embedded index, Solr and OpenSearch.

Each of them holds the same terms in the same fields (:mod:`nutch2py.indexer.search_fields`) and counts by BM25; a plan
says which terms are looked for where, and what they count. Back ends write it in their own language, and add nothing.
:doc:`docs/ranking.md` says the rule in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from nutch2py.backends.analysis import Analyzer, Unit
from nutch2py.backends.index_folder import EXACT_FIELDS, TEXT_FIELDS
from nutch2py.backends.languages import code_of, says_little
from nutch2py.backends.word_files import texts_of_files, without_comments
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.query_language import And, Not, Or, Query, Some, Text, parse_query, wanted
from nutch2py.search.synonyms import PROPERTY as SYNONYMS
from nutch2py.search.synonyms import Groups, groups_of, synonyms

DEFAULT_FIELDS = "title^3 anchor^2 content url^1.5 host^2"
TIE = 0.1
"""What the rows of a word count beside the best of them."""
FILTER_SCORE = 0.001
DEFAULT_TOGETHER = 2.0
"""What all words side by side count, in the title or in the content; two of them count half of it."""
_ALL_IN_TITLE = 1.0  # all in one field that counts more than the content, of that field's weight beyond it
_MOST_TOGETHER = 8  # words
_FIELD = re.compile(r"(\w+)(?:\^([0-9.]+))?")
DEFAULT_MINIMUM = "3<75% 5<2"
_MINIMUM = re.compile(r"(?:(\d+)<)?(\d+)(%?)")


class Row(NamedTuple):
    """Terms side by side in a field, and what that counts."""

    field: str
    terms: tuple[str, ...]
    weight: float = 1.0


class Best(NamedTuple):
    """Any of the rows. It counts as the best of them, and ``tie`` of the others."""

    rows: tuple[Row, ...]
    tie: float = TIE


class Filter(NamedTuple):
    """A whole value, ``field=value`` of the field ``exact``, or an id. It counts next to nothing."""

    field: str
    term: str


class Everything(NamedTuple):
    """All documents."""


class Group(NamedTuple):
    """All of ``must``, at least ``minimum`` of ``should``, none of ``must_not``. Counts of what matches add up."""

    must: tuple[Plan, ...] = ()
    should: tuple[Plan, ...] = ()
    must_not: tuple[Plan, ...] = ()
    minimum: int = 0


Plan = Best | Filter | Everything | Group


class Rules(NamedTuple):
    """What properties say of searching.

    ``weights``: of the fields; ``minimum``: steps of (more words than these, how many), a share of the words in
    percent where that is negative. ``together``: what words side by side count. ``synonyms``: what finds what.
    ``little``: words, in small letters, that need not be there, beside those of the languages.
    """

    weights: dict[str, float]
    any_word: bool
    minimum: tuple[tuple[int, int], ...]
    together: float = DEFAULT_TOGETHER
    synonyms: Groups = ()
    little: frozenset[str] = frozenset()

    @classmethod
    def of(cls, conf: Configuration) -> Rules:
        """Read ``index.search.fields``, ``.operator``, ``.minimum`` and ``.together``, and the synonyms."""
        operator = conf.get_trimmed("index.search.operator", "and").lower()
        if operator not in ("and", "or"):
            raise ConfigurationError(f"index.search.operator is {operator!r}: write and, or or")
        return cls(
            _weights(conf.get_trimmed("index.search.fields", DEFAULT_FIELDS)),
            operator == "or",
            _steps(conf.get_trimmed("index.search.minimum", DEFAULT_MINIMUM)),
            conf.get_float("index.search.together", DEFAULT_TOGETHER),
            groups_of(conf, texts_of_files(conf, SYNONYMS)),
            frozenset(without_comments(texts_of_files(conf, "index.stopwords.file")).lower().split()),
        )

    def least(self, words: int) -> int:
        """Return how many of so many words must be there.

        >>> rules = Rules({}, False, ((3, -75), (5, 2)))
        >>> [rules.least(n) for n in range(8)]
        [0, 1, 2, 3, 3, 3, 2, 2]
        """
        number = next((number for more_than, number in reversed(self.minimum) if words > more_than), -100)
        return min(words, max(1, words * -number // 100 if number < 0 else number))


class Planned(NamedTuple):
    """A query made ready: ``plan`` is None when it asks for nothing. ``terms``: those to mark in what is found."""

    plan: Plan | None
    terms: frozenset[str]


class Narrowed(NamedTuple):
    """What a search is narrowed to: ``filters`` are (field, value), ``site`` for a host and what is below it.

    ``newest``: ordered by date, the newest first, not by relevance. ``half_life``: that of freshness in days, 0 for
    none; None: the property's. ``collapse``: "", "host" or "near" (:mod:`nutch2py.search.collapse`); None: the
    property's. ``without``: sketches of texts that are not to be found.
    """

    filters: tuple[tuple[str, str], ...] = ()
    newest: bool = False
    half_life: float | None = None
    collapse: str | None = None
    without: tuple[str, ...] = ()

    @classmethod
    def to(cls, filters: dict[str, str], newest: bool = False, half_life: float | None = None) -> Narrowed:
        """Return it for values by field, as a search page names fields."""
        return cls(tuple((exact_name(name), value) for name, value in filters.items()), newest, half_life)

    def also(self, field: str, value: str) -> Narrowed:
        """Return it with one more filter."""
        return self._replace(filters=(*self.filters, (field, value)))

    def applied(self, plan: Plan, planner: Planner) -> Plan:
        """Return the plan, narrowed."""
        filters = tuple(planner.filter(name, value) for name, value in self.filters)
        copies = tuple(planner.filter("near", sketch) for sketch in self.without)
        return Group(must=(plan, *filters), must_not=copies) if filters or copies else plan


NOT_NARROWED = Narrowed()


class Planner:
    """Makes plans of queries, for an index with pages in ``languages`` (codes)."""

    def __init__(self, rules: Rules, analyzer: Analyzer, languages: frozenset[str] = frozenset()) -> None:
        self.rules, self.analyzer, self.languages = rules, analyzer, languages | {"en"}
        self._synonyms = synonyms(rules.synonyms, analyzer, self.languages)

    def plan(self, query: str, ranked: bool = True) -> Planned:
        """Return the plan of a query; with ``ranked`` what rewards words that stand together, too."""
        tree = parse_query(query, self.rules.any_word)
        if tree is None:
            return Planned(None, frozenset())
        tree = self._synonyms.joined(tree, self.analyzer, self.languages)
        plan = self._of(tree, len(self._free(tree)))
        if plan is not None and ranked and (rewards := self._rewards(tree)):
            plan = Group(must=(plan,), should=rewards)
        return Planned(plan, self._marked(tree))

    def filter(self, field: str, value: str) -> Plan:
        """Return what narrows a search to documents with a whole value."""
        return Filter("id", value) if field == "id" else Filter("exact", f"{field}={value.lower()}")

    def _of(self, query: Query, words: int) -> Plan | None:
        """Return the plan of a part of a query that has so many ``words``."""
        if isinstance(query, Text):
            return self._text(query, words)
        if isinstance(query, Some):
            return self._some(query, words)
        if isinstance(query, Or):
            parts = [self._of(part, words) for part in query.parts]
            return _any_of([part for part in parts if part is not None])
        must, must_not = list[Plan](), list[Plan]()
        for part in query.parts if isinstance(query, And) else (query,):
            inner = self._of(part.part if isinstance(part, Not) else part, words)
            if inner is not None:
                (must_not if isinstance(part, Not) else must).append(inner)
        if must_not and not must:
            must.append(Everything())
        return _all_of(must, must_not)

    def _some(self, query: Some, words: int) -> Plan | None:
        """Return the words of which most must be there; those that say little need not, unless there are no others."""
        telling, little = list[Plan](), list[Plan]()
        for text in query.parts:
            plan = self._text(text, words)
            if plan is not None:
                says_nothing = says_little(text.text, self.languages) or text.text.lower() in self.rules.little
                (little if says_nothing else telling).append(plan)
        if not telling:
            telling, little = little, []
        least = self.rules.least(len(telling))
        if least < len(telling):
            asked: Plan = Group(should=tuple(telling), minimum=least)
            return Group(must=(asked,), should=tuple(little)) if little else asked
        return _all_of(telling, should=little)

    def _text(self, text: Text, words: int) -> Plan | None:
        field = text.field
        if field == "id":
            return Filter("id", text.text)
        if field in EXACT_FIELDS:
            return self.filter(field, text.text)
        units = self._units(text)
        plans: list[Plan] = []
        for unit in units:
            ways = [self._way(way, field, words + len(units) - 1) for way in unit.ways]
            if all(isinstance(way, Best) for way in ways):
                plans.append(Best(tuple(row for way in ways if isinstance(way, Best) for row in way.rows)))
            else:
                found = _any_of(ways)
                plans.extend([found] if found is not None else [])
        return _all_of(plans)

    def _units(self, text: Text) -> list[Unit]:
        """Return the words of a text; those of a phrase as one, cut as pages are, so that it is found in them."""
        if not text.phrase:
            units = self.analyzer.query_words(text.text, self.languages)
            return self._synonyms.applied(units) if text.field in ("", *TEXT_FIELDS) else units
        rows = dict.fromkeys(tuple(self.analyzer.words(text.text, code)) for code in ("en", *sorted(self.languages)))
        ways = tuple((row,) for row in rows if row)
        return [Unit(ways)] if ways else []

    def _way(self, way: tuple[tuple[str, ...], ...], field: str, words: int) -> Plan:
        plans: list[Plan] = [self._word(terms, field, words) for terms in way]
        return plans[0] if len(plans) == 1 else Group(must=tuple(plans))

    def _word(self, terms: tuple[str, ...], field: str, words: int) -> Best:
        parts = self.analyzer.parts(terms[0]) if len(terms) == 1 else ()
        rows = []
        if not field:
            for name, weight in self.rules.weights.items():
                # of several words, one that stands in the title alone says less than all of them there
                shared = weight if weight <= 1 or words <= 1 else 1 + (weight - 1) / words
                rows += self._rows(name, terms, parts, shared)
        elif field in TEXT_FIELDS:
            rows += self._rows(field, terms, parts, 1.0)
        else:
            rows.append(Row("other", tuple(f"{field}={term}" for term in terms)))
        return Best(tuple(rows))

    def _rows(self, field: str, terms: tuple[str, ...], parts: tuple[str, ...], weight: float) -> list[Row]:
        # 香港电影 in 香港电影院, which is indexed as 香港 电影 电影院
        return [Row(field, terms, weight), *([Row(field, parts, weight)] if parts else [])]

    def _free(self, query: Query) -> list[str]:
        """Return the words without field and quotes that belong together, in the order typed."""
        parts = query.parts if isinstance(query, And) else (query,)
        found: list[Text] = []
        for part in parts:
            if isinstance(part, Text):
                found.append(part)
            elif isinstance(part, Some):
                found.extend(part.parts)
            elif isinstance(part, And):
                return self._free(part) or [text.text for text in found]
        return [text.text for text in found if not text.phrase and not text.field]

    def _rewards(self, query: Query) -> tuple[Plan, ...]:
        """Return what documents gain in which all words stand in one field, side by side, or two and two."""
        text = " ".join(self._free(query))
        cut = dict.fromkeys(tuple(self.analyzer.words(text, code)) for code in ("en", *sorted(self.languages)))
        rows = [row for row in cut if 2 <= len(row) <= _MOST_TOGETHER]
        if not rows:
            return ()
        first, all_of, two = rows[0], self.rules.together, self.rules.together / 2
        rewards: list[Plan] = []
        if all_of:
            rewards.append(Best(tuple(Row(field, row, all_of) for row in rows for field in ("title", "content"))))
        if all_of and len(first) > 2:
            rewards += [Best((Row("title", pair, two), Row("content", pair, two))) for pair in pairwise(first)]
        # what a word alone counts less in a field that weighs more, all of them together get back
        for name, weight in self.rules.weights.items():
            if weight > 1:
                share = _ALL_IN_TITLE * (weight - 1) * (1 - 1 / len(first))
                rewards += [
                    Group(must=tuple(Best((Row(name, (term,), share),)) for term in dict.fromkeys(row))) for row in rows
                ]
        return tuple(rewards)

    def _marked(self, query: Query) -> frozenset[str]:
        return frozenset(
            term
            for text in wanted(query)
            if text.field in ("", "title", "content")
            for unit in self._units(text)
            for way in unit.ways
            for row in way
            for term in (*row, *(part for one in row for part in self.analyzer.parts(one)))
        )


def _all_of(must: list[Plan], must_not: list[Plan] | None = None, should: list[Plan] | None = None) -> Plan | None:
    if len(must) == 1 and not must_not and not should:
        return must[0]
    return Group(tuple(must), tuple(should or ()), tuple(must_not or ())) if must or must_not or should else None


def _any_of(parts: list[Plan]) -> Plan | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Group(should=tuple(parts), minimum=1)


def _weights(text: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in text.replace(",", " ").split():
        match = _FIELD.fullmatch(part)
        if match is None or match[1] not in TEXT_FIELDS:
            raise ConfigurationError(
                f"index.search.fields has {part!r}: write field^weight with fields of {', '.join(TEXT_FIELDS)}"
            )
        weights[match[1]] = float(match[2] or 1.0)
    return weights


def _steps(text: str) -> tuple[tuple[int, int], ...]:
    """Read how many words must be there, as Solr's mm: 75%, 2, or steps such as "3<75% 5<2"."""
    steps = []
    for part in "<".join(side.strip() for side in (text or "100%").split("<")).split():
        match = _MINIMUM.fullmatch(part)
        if match is None or (match[3] and int(match[2]) > 100):
            raise ConfigurationError(f"index.search.minimum has {part!r}: write a number, 75%, or steps: 3<75% 5<2")
        steps.append((int(match[1] or 0), -int(match[2]) if match[3] else int(match[2])))
    return tuple(sorted(steps))


def exact_name(field: str) -> str:
    """Return the name by which whole values of a field are found: a host, as ``site``, with what is below it."""
    return "site" if field == "host" else field


def known_languages(counts: Mapping[str, int]) -> frozenset[str]:
    """Return the codes of the languages that an index has, of how many pages have each ``lang``."""
    return frozenset(code_of(lang) for lang, count in counts.items() if count)
