"""QueryPlanner: turns a query into a plan of matching and ranking.

One word of the query must match, and all words rank: a document's score is the sum over its words. A word has one idf
for all fields, languages and synonyms, as in BM25F, taken from the index's :class:`TermStatistics`.
docs/ranking.md describes the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple, Protocol

from nutch2py.backends.analysis.analyzer import Analyzer, QueryWord
from nutch2py.backends.analysis.stopwords import is_stopword
from nutch2py.backends.index_fields import EXACT_FIELDS, TEXT_FIELDS
from nutch2py.search.query.query_language import (
    AndNode,
    NotNode,
    OrNode,
    QueryNode,
    TextNode,
    WordsNode,
    iter_positive_texts,
    iter_texts,
    parse_query,
    replace_words,
)
from nutch2py.search.query.query_plan import (
    BooleanClause,
    ConstantClause,
    Correction,
    DisMaxClause,
    FilterClause,
    IndexTerm,
    MatchAllClause,
    PhraseClause,
    PlannedQuery,
    PrefixClause,
    QueryPlan,
    make_filter,
)
from nutch2py.search.query.query_relaxation import (
    MAX_WORDS_NEXT_TO_QUOTES,
    is_demanded,
    is_free,
    iter_free_texts,
    relax,
)
from nutch2py.search.query.query_settings import QuerySettings
from nutch2py.search.query.synonyms import get_synonym_expander
from nutch2py.search.query.term_weights import OTHER_FIELD, TermStatistics, TermWeights

_SAME_FIELD_BOOST = 1.0  # all words in one field, as a share of the field's weight above 1
_MAX_PHRASE_WORDS = 8  # words
_MAX_PAIRS = 16
_LONG_QUERY = 2  # words; in a longer query, pairs of words count less
_FILLER_WEIGHT = 0.2
_MAX_PLANNED_WORDS = 64
"""Words of a query that are searched; Solr accepts 1,024 clauses, of which a word has some in each field."""
_MAX_FILLERS = 16
"""Fillers of a query that are searched: nearly every page has each of them."""
_MIN_PREFIX_LENGTH = 2
_COMPOUND_PART_WEIGHT = 0.4
"""Weight of a document with all parts of a compound next to one with the compound."""
_UNMARKED_WEIGHT = 0.4
"""Weight of a document with a word without its marks, or with others, next to one with the word of the query."""
_MAX_RARE_FREQUENCY = 2
"""Documents with a word up to which far more frequent similar words are searched, too."""
_MAX_CORRECTED_WORDS = 8
_MAX_CORRECTION_ATTEMPTS = 8  # words of a query for which similar words are looked for: each costs several requests
_MAX_PREFIXES = 4
"""Prefixes of a query that are expanded, each to all terms of the index with it; further ones are words."""
_MAX_UNITS = 256
"""Words of a query that are looked up in the index, in all its texts; runs without spaces have hundreds."""
_MAX_FREE_CHARACTERS = 1_000
"""Characters of the words without operators that are compared as a phrase and in pairs."""
_MAX_JOINED_LENGTH = 24  # letters of two words that may be one
_SINGLE_WORD = re.compile(r"\W*([^\W\d_]+)\W*")
_FIELD_ALIASES = {"intitle": "title", "inurl": "url", "inanchor": "anchor", "intext": "content", "filetype": "type"}
_MEDIA_TYPES = {
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "epub": "application/epub+zip",
    "htm": "text/html",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "odt": "application/vnd.oasis.opendocument.text",
    "pdf": "application/pdf",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "rtf": "application/rtf",
    "txt": "text/plain",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
}
"""Media types of ``filetype:`` whose subtype is not the extension; ``type`` has the subtypes as values, too."""
_PUNCTUATION_AROUND = re.compile(r"^\W+|\W+$")


class WordCorrector(Protocol):
    """Finds similar words of an index."""

    def find_corrections(self, word: str, frequency: int) -> Sequence[Correction]:
        """Return the words that a word with a number of documents was probably meant to be, the best first."""

    def find_homophones(self, text: str) -> str:
        """Return a Chinese text with homophones for its unknown words, "" if none is sure."""


class _PlannedWord(NamedTuple):
    """A word with its plan.

    ``idf``: its idf in the index; ``is_known``: a document may have it; ``is_certain``: a document has it; ``exact``:
    the part of the plan that counts as a match of the word, None for all of it.
    """

    plan: QueryPlan
    idf: float
    is_known: bool
    is_certain: bool = False
    exact: DisMaxClause | None = None


class QueryPlanner:
    """Plans queries for an index with pages in ``languages`` (codes).

    Words are searched by the rules of English, too, which find names (Gandhis: Gandhi) and words as they are typed.
    """

    def __init__(
        self,
        settings: QuerySettings,
        analyzer: Analyzer,
        languages: frozenset[str] = frozenset(),
        statistics: TermStatistics | None = None,
        corrector: WordCorrector | None = None,
    ) -> None:
        self.settings, self.analyzer, self.languages = settings, analyzer, languages | {"en"}
        self._foreign_languages = self.languages - languages if languages else frozenset[str]()
        self.statistics, self.corrector = statistics, corrector
        self._synonyms = get_synonym_expander(settings.synonym_groups, analyzer, self.languages)

    def plan_all_words(self, query: str) -> QueryPlan | None:
        """Return a plan that matches documents with all words of a query, for counts; fillers need not match."""
        tree = parse_query(query)
        if tree is None:
            return None
        tree = self._synonyms.join_words(_resolve_fields(tree, self.statistics), self.analyzer, self.languages)
        return _PlanBuilder(self, tree, is_ranked=False, demands_all=True).build().plan

    def plan(
        self,
        query: str,
        *,
        is_ranked: bool = True,
        is_relaxed: bool = False,
        is_verbatim: bool = False,
        searches_fillers: bool = False,
    ) -> PlannedQuery:
        """Return the plan of a query.

        Args:
            query: The query.
            is_ranked: False for a plan that only matches, as for counts.
            is_relaxed: Demand nothing because of quotes, ``+`` and ``AND``, and split joined words and unknown Chinese
                words, for a query without a hit.
            is_verbatim: Search no similar words for those that the index does not know.
            searches_fillers: A filler matches as any other word does.

        """
        tree = parse_query(query)
        if tree is None:
            return PlannedQuery(None, frozenset())
        tree = _resolve_fields(tree, self.statistics)
        if sum(1 for _ in iter_free_texts(tree)) > MAX_WORDS_NEXT_TO_QUOTES:
            tree = relax(tree, phrases_only=True)
        has_demands = any(is_demanded(text) for text in iter_positive_texts(tree))
        if is_relaxed and has_demands:
            tree = relax(tree)
        tree = self._synonyms.join_words(tree, self.analyzer, self.languages)
        builder = _PlanBuilder(
            self, tree, is_ranked, corrects=not is_verbatim, splits_words=is_relaxed, searches_fillers=searches_fillers
        )
        replaced = builder.replaced_words
        return builder.build()._replace(
            has_demands=has_demands,
            is_relaxed=is_relaxed and has_demands,
            corrected_query=replace_words(query, replaced) if replaced else "",
        )

    def plan_with_hits(self, query: str, has_hits: Callable[[QueryPlan], bool]) -> PlannedQuery:
        """Return the plan of a query, relaxed if its demands or its joined words leave no hit, at last to its fillers.

        A relaxed plan has no similar words: the quotes and ``+`` mean these words and no others.
        """
        planned = self.plan(query)
        may_miss = planned.has_demands or planned.is_uncertain
        if planned.plan is None or not may_miss or has_hits(planned.plan):
            return planned
        for searches_fillers in (False, True):
            relaxed = self.plan(query, is_relaxed=True, is_verbatim=True, searches_fillers=searches_fillers)
            if relaxed.plan is not None and has_hits(relaxed.plan):
                return relaxed
        return planned

    def correct_query(self, query: str) -> str:
        """Return the query with similar words for those that the index does not know; "" if there are none.

        Words in quotes and after ``+`` are corrected, too, as a suggestion.
        """
        planned = self.plan(query, is_ranked=False)
        if not planned.corrected_query and planned.has_demands:
            planned = self.plan(query, is_ranked=False, is_relaxed=True)
        return planned.corrected_query

    def is_filler(self, word: str) -> bool:
        """Return whether a word says little in a language of the index: the, wie, 什么; punctuation is ignored."""
        word = _PUNCTUATION_AROUND.sub("", word)
        return is_stopword(word, self.languages) or word.lower() in self.settings.fillers

    def query_words(self, text: TextNode) -> list[QueryWord]:
        """Return the words of a text; a phrase is one word with the terms of pages, so that it matches them."""
        if not text.phrase:
            units = self.analyzer.query_words(text.text, self.languages)
            return self._synonyms.expand(units) if text.field in ("", *TEXT_FIELDS) else units
        rows = self.index_rows(text.text)
        return [QueryWord(tuple((row,) for row in rows))] if rows else []

    def foreign_alternatives(self, text: str) -> set[tuple[tuple[str, ...], ...]]:
        """Return the alternatives of a word that only languages without pages have: har of harnessing in Swedish."""
        if not self._foreign_languages:
            return set()
        foreign, own = (
            {row for unit in self.analyzer.query_words(text, codes) for row in unit.alternatives}
            for codes in (self._foreign_languages, self.languages - self._foreign_languages)
        )
        return foreign - own

    def index_rows(self, text: str) -> list[tuple[str, ...]]:
        """Return the terms of a text in pages of each language, without duplicates and empty ones."""
        codes = ("en", *sorted(self.languages))
        return [row for row in dict.fromkeys(tuple(self.analyzer.index_terms(text, code)) for code in codes) if row]


class _PlanBuilder:
    """Builds the plan of one query: reads all statistics at once, then weighs the terms."""

    def __init__(
        self,
        planner: QueryPlanner,
        tree: QueryNode,
        is_ranked: bool,
        demands_all: bool = False,
        corrects: bool = False,
        splits_words: bool = False,
        searches_fillers: bool = False,
    ) -> None:
        self._planner, self._settings, self._analyzer = planner, planner.settings, planner.analyzer
        self._is_ranked, self._demands_all = is_ranked, demands_all
        self._searches_fillers = searches_fillers
        self._tree = tree
        self._is_uncertain = False
        prefixes = ((text, prefix) for text in dict.fromkeys(iter_texts(self._tree)) if (prefix := _prefix_of(text)))
        self._prefixes = dict(islice(prefixes, _MAX_PREFIXES))
        self._units = {
            text: [] if text in self._prefixes else planner.query_words(text) for text in iter_texts(self._tree)
        }
        if splits_words:
            self._units = {
                text: units if text.phrase else [piece for unit in units for piece in self._split(unit)]
                for text, units in self._units.items()
            }
        left = _MAX_UNITS
        for units in self._units.values():
            del units[left:]
            left -= len(units)
        self._free_texts = [*iter_free_texts(self._tree)]
        self._marked_terms = self._mark_units()
        self._joined = self._join_neighbours()
        self._word_count = sum(
            len(self._units[text]) for text in self._free_texts if not planner.is_filler(text.text)
        ) or len(self._free_texts)
        self._unknown_words: list[str] = []
        self._weights = TermWeights(planner.statistics, tuple(self._settings.field_weights))
        self._corrections: dict[TextNode, Sequence[Correction]] = {}
        self.replaced_words: dict[str, str] = {}
        if corrects and planner.corrector is not None:
            joined = (
                term for unit in self._joined.values() for row in unit.alternatives for terms in row for term in terms
            )
            found = (each for term in joined for each in self._weights.index_terms("", term))
            self._weights.read((*self._iter_unit_terms(), *found))
            self._use_joined_words()
            self._find_corrections(planner.corrector)
        meant = " ".join(replace_words(text.text, self.replaced_words) for text in self._free_texts)
        self._free_rows = planner.index_rows(meant[:_MAX_FREE_CHARACTERS]) if is_ranked else []
        if is_ranked and self._marked_terms:
            self._free_rows = [self._marked_terms]
        corrected = (term for found in self._corrections.values() for each in found for term in each.terms)
        free = (term for row in self._free_rows for term in row)
        more = (each for term in (*corrected, *free) for each in self._weights.index_terms("", term))
        self._weights.read((*self._iter_unit_terms(), *more))

    def build(self) -> PlannedQuery:
        plan = self._plan_node(self._tree)
        if plan is not None and self._is_ranked and (boosts := self._proximity_boosts()):
            plan = BooleanClause(must=(plan,), should=boosts)
        return PlannedQuery(
            plan,
            self._highlight_terms(),
            unknown_words=tuple(dict.fromkeys(self._unknown_words)),
            is_uncertain=self._is_uncertain,
        )

    def _split(self, unit: QueryWord) -> list[QueryWord]:
        """Return the words of a joined word, such as ``QED-kort``, and the characters of a Chinese one."""
        (terms, *_) = unit.alternatives[0]
        if len(terms) > 1:
            rows = [row for alternative in unit.alternatives for row in alternative if len(row) == len(terms)]
            return [QueryWord(tuple(((term,),) for term in dict.fromkeys(same))) for same in zip(*rows, strict=True)]
        characters = [each for each in self._analyzer.han_characters(terms[0]) if not self._planner.is_filler(each)]
        return [unit, *(QueryWord((((each,),),)) for each in characters if len(terms[0]) > 1)]

    def _mark_units(self) -> tuple[str, ...]:
        """Give the words of a query with marks their terms with marks; return these terms."""
        planner = self._planner
        terms = self._analyzer.marked_query_terms((text.text for text in self._free_texts), planner.languages)
        for text, term in zip(self._free_texts, terms, strict=False):
            units = self._units[text]
            if term and len(units) == 1:
                self._units[text] = [units[0]._replace(marked=term)]
        return tuple(filter(None, terms))

    # statistics

    def _iter_unit_terms(self) -> Iterator[IndexTerm]:
        """Yield the terms of the query's words in all their fields."""
        for text, units in self._units.items():
            if text.field in EXACT_FIELDS or text.field == "id":
                continue
            marked = (((unit.marked,),) for unit in units if unit.marked)
            parts = (rows for unit in units for rows in (*unit.alternatives, unit.parts))
            for row in (row for rows in (*parts, *marked) for row in rows):
                for term in (*row, *(self._analyzer.compound_parts(row[0]) if len(row) == 1 else ())):
                    yield from self._weights.index_terms(text.field, term)

    def _find_corrections(self, corrector: WordCorrector) -> None:
        """Find similar words for the words without field and operator that the index hardly knows."""
        attempts = 0
        for text in filter(is_free, iter_positive_texts(self._tree)):
            match, units = _SINGLE_WORD.fullmatch(text.text), self._units[text]
            if match is None or not units or self._planner.is_filler(text.text):
                continue
            if attempts == _MAX_CORRECTION_ATTEMPTS:
                return
            if self._analyzer.han_characters(units[0].alternatives[0][0][0]):
                if not all(map(self._frequency_of, units)):
                    attempts += 1
                    self._replace_homophones(corrector, text, match[1])
                continue
            if len(units) != 1:
                continue
            foreign = self._planner.foreign_alternatives(text.text)
            own = tuple(each for each in units[0].alternatives if each not in foreign)
            frequency = self._frequency_of(units[0]._replace(alternatives=own))
            if frequency > _MAX_RARE_FREQUENCY or len(self._corrections) == _MAX_CORRECTED_WORDS:
                continue
            attempts += 1
            if corrections := corrector.find_corrections(match[1], frequency):
                if foreign:
                    terms = {term for row in foreign for sequence in row for term in sequence}
                    if not terms.isdisjoint(corrections[0].terms):  # the other rules find the similar word
                        continue
                    self._units[text] = [units[0]._replace(alternatives=own)]
                self._corrections[text] = corrections
                self.replaced_words[match[1]] = corrections[0].word

    def _join_neighbours(self) -> dict[tuple[TextNode, TextNode], QueryWord]:
        """Return the joined spelling of neighbouring words, such as ``sourdough`` of ``sour dough``."""
        joined: dict[tuple[TextNode, TextNode], QueryWord] = {}
        for one, other in islice(pairwise(self._free_texts), _MAX_PAIRS):
            first, second = _SINGLE_WORD.fullmatch(one.text), _SINGLE_WORD.fullmatch(other.text)
            if first is None or second is None or len(first[1]) + len(second[1]) > _MAX_JOINED_LENGTH:
                continue
            if self._planner.is_filler(one.text) or self._planner.is_filler(other.text):
                continue
            units = self._planner.query_words(TextNode(first[1] + second[1]))
            if len(units) == 1 and all(len(row) == 1 == len(row[0]) for row in units[0].alternatives):
                joined[one, other] = units[0]
        return joined

    def _use_joined_words(self) -> None:
        """Search neighbouring words as one, too, if the index has that more often than the rarer of the two."""
        for pair, unit in self._joined.items():
            frequency = self._frequency_of(unit)
            words = [self._units[text] for text in pair]
            if frequency and all(len(units) == 1 for units in words):
                if frequency < min(self._frequency_of(units[0]) for units in words):
                    continue
                for text, (word,) in zip(pair, words, strict=True):
                    alternatives = dict.fromkeys((*word.alternatives, *unit.alternatives))
                    self._units[text] = [word._replace(alternatives=tuple(alternatives))]

    def _frequency_of(self, unit: QueryWord) -> int:
        """Return the number of documents with a term of a word, of the most frequent one in the default fields."""
        terms = (term for alternative in unit.alternatives for row in alternative for term in row)
        return max(
            (self._weights.frequency(*each) for term in terms for each in self._weights.index_terms("", term)),
            default=0,
        )

    def _replace_homophones(self, corrector: WordCorrector, text: TextNode, word: str) -> None:
        """Search a Chinese word as its homophone, if it has one that is sure."""
        if meant := corrector.find_homophones(self._analyzer.fold(word)):
            self._units[text] = self._planner.query_words(text._replace(text=meant))
            self.replaced_words[word] = meant

    # nodes

    def _plan_node(self, node: QueryNode) -> QueryPlan | None:
        """Return the plan of a part of a query."""
        if isinstance(node, TextNode):
            return self._plan_words((node,)) if is_free(node) else self._plan_demanded_text(node)
        if isinstance(node, WordsNode):
            return self._plan_words(node.parts)
        if isinstance(node, OrNode):
            return _any_of([plan for part in node.parts if (plan := self._plan_node(part)) is not None])
        must, should, must_not = list[QueryPlan](), list[QueryPlan](), list[QueryPlan]()
        for part in node.parts if isinstance(node, AndNode) else (node,):
            plan = self._plan_node(part.part if isinstance(part, NotNode) else part)
            if plan is None:
                continue
            if isinstance(part, NotNode):
                must_not.append(plan)
            elif not self._demands_all and (
                isinstance(part, WordsNode) or (isinstance(part, TextNode) and is_free(part))
            ):
                should.append(plan)
            else:
                must.append(plan)
        if all(isinstance(plan, FilterClause) for plan in must):  # filters do not rank: a word must match
            must, should = [*should, *must], []
        if must_not and not must:
            must.append(MatchAllClause())
        return _all_of(must, must_not, should)

    def _plan_words(self, texts: Sequence[TextNode]) -> QueryPlan | None:
        """Return the plan of words of which one must match; fillers only if the index has no other word."""
        words, fillers = list[tuple[QueryWord, TextNode]](), list[tuple[QueryWord, TextNode]]()
        prefixes: list[_PlannedWord] = []
        for text in texts:
            if prefix := self._prefixes.get(text):
                prefixes.append(_PlannedWord(self._plan_prefix(prefix, text.field), 0.0, True))
            is_filler = self._planner.is_filler(text.text)
            units = self._units[text]
            for unit in units:
                is_small = is_filler or (len(units) > 1 and self._planner.is_filler(unit.alternatives[0][0][0]))
                (fillers if is_small else words).append((unit, text))
        del words[_MAX_PLANNED_WORDS:], fillers[_MAX_FILLERS:]
        planned = [self._plan_word(unit, text.field, False) for unit, text in words]
        self._unknown_words += [text.text for (_, text), word in zip(words, planned, strict=True) if not word.is_known]
        planned = [
            self._add_corrections(word, self._corrections[text]) if text in self._corrections else word
            for (_, text), word in zip(words, planned, strict=True)
        ]
        content = [*prefixes, *planned]
        if self._demands_all and content:
            return _all_of([word.plan for word in content])
        base = [word for word in content if word.is_known]
        planned_fillers = [self._plan_word(unit, text.field, bool(base)) for unit, text in fillers]
        extra = [word.plan for word in planned_fillers if word.is_known]
        if not base or self._searches_fillers:
            base, extra = [*base, *(word for word in planned_fillers if word.is_known)], []
        # a phrase of words that the index knows may be in no document
        self._is_uncertain |= not any(word.is_certain for word in base)
        if not base:
            return _any_of([word.plan for word in (*content, *planned_fillers)])
        should = [word.plan for word in base]
        if not self._is_ranked:
            return _any_of(should)
        delta = self._settings.coordination_of(len(base))
        if delta:
            should += [
                ConstantClause(word.exact or word.plan, delta * word.idf)
                for word in base
                if isinstance(word.plan, DisMaxClause)
            ]
        matching = _any_of(should)
        return BooleanClause(must=(matching,), should=tuple(extra)) if extra and matching is not None else matching

    def _plan_demanded_text(self, text: TextNode) -> QueryPlan | None:
        """Return the plan of a text that must match as a whole: with a field, in quotes, or required."""
        field = text.field
        if field == "id" or field in EXACT_FIELDS:
            return make_filter(field, text.text)
        if prefix := self._prefixes.get(text):
            return self._plan_prefix(prefix, field)
        units = self._units[text][:_MAX_PLANNED_WORDS]
        return _all_of([self._plan_word(unit, field, False).plan for unit in units])

    def _plan_prefix(self, prefix: str, field: str) -> QueryPlan:
        """Return the plan of words with a prefix, compared with the terms of pages, which are stems."""
        folded = self._analyzer.fold(prefix).lower()
        if not field:
            clauses = [PrefixClause(name, folded, weight) for name, weight in self._settings.field_weights.items()]
        else:
            clauses = [
                PrefixClause(field, folded) if field in TEXT_FIELDS else PrefixClause(OTHER_FIELD, f"{field}={folded}")
            ]
        return DisMaxClause(tuple(clauses))

    def _plan_word(self, unit: QueryWord, field: str, is_filler: bool) -> _PlannedWord:
        """Return the plan of a word: its best alternative in its best field."""
        rows: list[PhraseClause] = []
        multiple: list[QueryPlan] = []  # alternatives of several sequences
        for alternative in unit.alternatives:
            if len(alternative) == 1:
                rows += self._iter_clauses(alternative[0], field)
                continue
            parts = [self._weights.weigh([*self._iter_clauses(terms, field)]) for terms in alternative]
            if all(parts):
                multiple.append(BooleanClause(must=tuple(map(_dis_max, parts))))
        idfs = [
            self._weights.term_idf(clause.field, clause.terms[0])
            for clause in rows
            if len(clause.terms) == 1 and self._weights.frequency(clause.field, clause.terms[0])
        ]
        shared = min(idfs, default=None)
        weighed = self._weights.weigh(rows, shared)
        exact = self._weights.weigh([*self._iter_clauses((unit.marked,), field)]) if unit.marked else []
        if exact:
            weighed = [clause._replace(weight=clause.weight * _UNMARKED_WEIGHT) for clause in weighed] + exact
            shared = self._weights.term_idf(exact[0].field, unit.marked)
        if is_filler:
            weighed = [clause._replace(weight=clause.weight * _FILLER_WEIGHT) for clause in weighed]
        for terms in unit.parts:
            parts = [self._weights.weigh([*self._iter_clauses((term,), field)]) for term in terms]
            if all(parts):
                lower = ([each._replace(weight=each.weight * _COMPOUND_PART_WEIGHT) for each in some] for some in parts)
                multiple.append(BooleanClause(must=tuple(map(_dis_max, lower))))
        if not multiple:
            sums = [sum(self._weights.term_idf(clause.field, term) for term in clause.terms) for clause in weighed]
            idf = shared if shared is not None else min(sums, default=0.0)
            unmatched = rows or [*self._iter_clauses(unit.alternatives[0][0], field)]
            plan = _dis_max(weighed or unmatched)
            return _PlannedWord(plan, idf, bool(weighed), bool(idfs), _dis_max(exact) if exact else None)
        plans = [*([_dis_max(weighed)] if weighed else []), *multiple]
        return _PlannedWord(_any_of(plans) or _dis_max(rows), shared or 0.0, bool(plans), bool(idfs))

    def _add_corrections(self, word: _PlannedWord, corrections: Sequence[Correction]) -> _PlannedWord:
        """Return the plan of a word with those of similar words, which weigh less."""
        clauses = [*word.plan.clauses] if word.is_known and isinstance(word.plan, DisMaxClause) else []
        idf = word.idf if clauses else 0.0
        for each in corrections:
            meant = self._plan_word(QueryWord(tuple(((term,),) for term in each.terms)), "", False)
            if meant.is_known and isinstance(meant.plan, DisMaxClause):
                clauses += [clause._replace(weight=clause.weight * each.weight) for clause in meant.plan.clauses]
                idf = idf or meant.idf * each.weight
        return _PlannedWord(_dis_max(clauses), idf, True, True) if clauses else word

    def _iter_clauses(self, terms: tuple[str, ...], field: str) -> Iterator[PhraseClause]:
        """Yield the terms as a phrase in each field, with the field's weight."""
        parts = self._analyzer.compound_parts(terms[0]) if len(terms) == 1 else ()
        # 香港电影 matches 香港电影院, which is indexed as 香港 电影 电影院.
        sequences = (terms, parts) if parts else (terms,)
        if not field:
            for name, weight in self._settings.field_weights.items():
                # One of several words in the title alone means less than all of them there.
                words = self._word_count
                shared = weight if weight <= 1 or words <= 1 else 1 + (weight - 1) / words
                yield from (PhraseClause(name, each, shared) for each in sequences)
        elif field in TEXT_FIELDS:
            yield from (PhraseClause(field, each) for each in sequences)
        else:
            yield PhraseClause(OTHER_FIELD, tuple(f"{field}={term}" for term in terms))

    # rewards

    def _proximity_boosts(self) -> tuple[QueryPlan, ...]:
        """Return clauses that reward documents with all words in one field, adjacent, or in adjacent pairs."""
        settings = self._settings
        rows = [row for row in self._free_rows if len(row) >= 2]
        if not rows:
            return ()
        boosts: list[QueryPlan] = []
        short = [row for row in rows if len(row) <= _MAX_PHRASE_WORDS]
        if settings.phrase_boost and short:
            self._add(
                boosts,
                [PhraseClause(field, row, settings.phrase_boost) for row in short for field in ("title", "content")],
            )
        if settings.phrase_boost and len(rows[0]) > 2:
            share = min(1.0, _LONG_QUERY / self._word_count)
            pair_boost = settings.phrase_boost / 2 * share
            longest = max(map(len, rows))
            for at in range(min(longest - 1, _MAX_PAIRS)):
                pairs = dict.fromkeys(pair for row in rows if len(row) == longest for pair in [row[at : at + 2]])
                self._add(
                    boosts,
                    [PhraseClause(field, pair, pair_boost) for pair in pairs for field in ("title", "content")],
                )
        # All words together regain the weight that a single word loses in a field with a higher weight.
        for name, weight in settings.field_weights.items():
            for row in short if weight > 1 else ():
                share = _SAME_FIELD_BOOST * (weight - 1) * (1 - 1 / len(row))
                terms = dict.fromkeys(row)
                clauses = self._weights.weigh([PhraseClause(name, (term,), share) for term in terms])
                if len(clauses) == len(terms):
                    boosts.append(BooleanClause(must=tuple(DisMaxClause((clause,)) for clause in clauses)))
        return tuple(boosts)

    def _add(self, boosts: list[QueryPlan], clauses: list[PhraseClause]) -> None:
        if weighed := self._weights.weigh(clauses):
            boosts.append(DisMaxClause(tuple(weighed)))

    def _highlight_terms(self) -> frozenset[str]:
        return frozenset(
            term
            for text in iter_positive_texts(self._tree)
            if text.field in ("", "title", "content")
            for unit in self._units[text]
            for alternative in unit.alternatives
            for row in alternative
            for term in (*row, *(part for one in row for part in self._analyzer.compound_parts(one)))
        ).union(term for found in self._corrections.values() for each in found for term in each.terms)


def _resolve_fields(node: QueryNode, statistics: TermStatistics | None) -> QueryNode:
    """Return a query with the fields' own names; a text with an unknown field is a text."""
    if isinstance(node, NotNode):
        return NotNode(_resolve_fields(node.part, statistics))
    if isinstance(node, AndNode | OrNode):
        return type(node)(tuple(_resolve_fields(part, statistics) for part in node.parts))
    if isinstance(node, WordsNode) or not node.field:
        return node
    field = _FIELD_ALIASES.get(node.field.lower(), node.field)
    if node.field.lower() == "filetype":
        extension = node.text.lower().lstrip(".")
        return node._replace(field=field, text=_MEDIA_TYPES.get(extension, extension))
    is_known = field in TEXT_FIELDS or field in EXACT_FIELDS or field == "id"
    if is_known or statistics is None or statistics.has_field(field):
        return node._replace(field=field)
    return node._replace(field="", text=f"{node.field} {node.text}")


def _prefix_of(text: TextNode) -> str:
    """Return the prefix of a text such as ``kube*``, "" for another text.

    >>> _prefix_of(TextNode("kube*")), _prefix_of(TextNode("k*")), _prefix_of(TextNode("kube*", phrase=True))
    ('kube', '', '')
    """
    prefix = text.text.removesuffix("*")
    is_prefix = prefix != text.text and len(prefix) >= _MIN_PREFIX_LENGTH and prefix.isalnum() and not text.phrase
    return prefix if is_prefix else ""


def _dis_max(clauses: Sequence[PhraseClause | PrefixClause]) -> DisMaxClause:
    return DisMaxClause(tuple(clauses))


def _all_of(
    must: list[QueryPlan], must_not: list[QueryPlan] | None = None, should: list[QueryPlan] | None = None
) -> QueryPlan | None:
    if len(must) == 1 and not must_not and not should:
        return must[0]
    return (
        BooleanClause(tuple(must), tuple(should or ()), tuple(must_not or ())) if must or must_not or should else None
    )


def _any_of(parts: list[QueryPlan]) -> QueryPlan | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else BooleanClause(should=tuple(parts), minimum_match=1)
