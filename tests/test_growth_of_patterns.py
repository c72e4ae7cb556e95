"""Every regular expression that sees the bytes of the web is measured: a new one cannot be forgotten.

Named patterns of a module are measured by texts that nearly match them. Any other call of :mod:`re`
is listed here, with the test that measures it or the reason why none has to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import nutch2py.backends
import nutch2py.fetcher
import nutch2py.indexer
import nutch2py.parser
import nutch2py.search
import nutch2py.server
import nutch2py.url
from nutch2py.indexer.filters import index_creativecommons, index_more
from nutch2py.parser.filters import language_identifier
from tests.growth import assert_linear, methods_of, near_misses, patterns_of, repetitions, use_of
from tests.import_graph import trees

ROOMS: dict[str, ModuleType] = {
    "backends": nutch2py.backends,
    "fetcher": nutch2py.fetcher,
    "indexer": nutch2py.indexer,
    "parser": nutch2py.parser,
    "search": nutch2py.search,
    "server": nutch2py.server,
    "url": nutch2py.url,
}
SHORT = {
    "indexer:document_dates:_ZONE_SUFFIX": "only 64 characters of a date are parsed",
    "indexer:document_dates:_ZONE_BEFORE_YEAR": "only 64 characters of a date are parsed",
    "parser:html.html_limits:_ATTRIBUTE_PARTS": "its input ends with an attribute: see tests/parser/test_growth.py",
    "search:engines.explanation_tree:_TERM_PATTERN": "a query has 1,000 characters at most",
}
"""Patterns that see a text of bounded length or form only, and why."""
_OPERATORS = "is made of, or reads, what operators write"
INLINE: dict[str, str] = {
    "backends.analysis.analyzer:_BIGRAM_START": "two sets of one character",
    "backends.analysis.analyzer:_token_pattern": "runs of sets of characters: see test_growth_of_functions",
    "backends.analysis.folding:Folding": "two characters: test_growth_of_functions has the analyzer",
    "backends.analysis.folding:_any_character_pattern": "one character",
    "backends.analysis.word_forms:PlainLetters": "one character",
    "backends.servers.elastic_client:ElasticClient": "reads what OpenSSL says",
    "backends.servers.elastic_client:parse_elastic_addresses": _OPERATORS,
    "backends.servers.solr_client:resolve_solr_addresses": _OPERATORS,
    "indexer.filters.index_creativecommons:license_terms": "one character: test_inline",
    "indexer.filters.index_more:_FILENAME_PATTERNS": "test_inline",
    "parser.filters.language_identifier:language_code": "one character: test_inline",
    "parser.filters.parsefilter_regex:parse_rules": _OPERATORS,
    "parser.formats.office.ooxml:OoxmlParser": "names of parts: tests/parser/formats/test_growth.py",
    "parser.html.html_limits:_attribute_count_pattern": "tests/parser/test_growth.py: limits",
    "parser.mime.text_start:_read_start": "attributes in the first 65,536 bytes, one name and runs of white space",
    "parser.formats.mail:_raw_encoding": "two line ends",
    "parser.mime.mime_table:MimeTable": _OPERATORS,
    "parser.mime.mime_table:_build_matcher": "reads the first 8,192 bytes; what operators write",
    "parser.charset.whatwg_decoders:_EucJpDecoder": "at most three bytes",
    "parser.charset.whatwg_decoders:_Gb18030Decoder": "at most four bytes",
    "parser.charset.whatwg_decoders:_PairDecoder": "at most two bytes",
    "parser.charset.whatwg_decoders:_ShiftJisDecoder": "at most two bytes",
    "parser.charset.whatwg_decoders:_expand": "reads a constant",
    "parser.charset.whatwg_decoders:decoder_of": "reads names of codecs",
    "parser.parser_factory:ParserFactory": _OPERATORS,
    "parser.parser_factory:_claims_type": "names of media types, of our own table",
    "parser.html.nesting_depth:_RAW_TEXT_END": "tests/parser/test_nesting_depth.py",
    "search.evaluation.evaluator:_docno_pattern": _OPERATORS,
    "search.evaluation.trec_files:_split_topics": "one character",
    "search.results.snippet:_compile_prefixes": "first letters of words, at starts of words; runs of one set",
    "search.suggestions.spelling:SpellingCorrector": "a word",
    "search.suggestions.prefix_terms:start_pattern": "first letters of a word, at starts of words; runs of one set",
    "search.suggestions.suggester:Suggester": "runs of one set",
    "search.query.query_hints:find_query_hints": "one character",
    "search.results.snippet:_parts_pattern": "first letters of words of a query: tests/search/test_snippet.py",
    "server.cached_page:_terms_pattern": "some words of a query, each with at most five signs before the next",
    "server.cached_page:query_terms": "one character",
    "search.engines.solr_edismax_searcher:SolrEdismaxSearcher": "one character: test_inline",
    "url.regex.regex_complexity:_category": _OPERATORS,
    "url.filters.automaton_url_filter:AutomatonURLFilter": _OPERATORS,
    "url.filters.automaton_url_filter:_read_atom": _OPERATORS,
    "url.filters.regex_url_filter:RegexURLFilter": _OPERATORS,
    "url.filters.url_validator:_compile_pattern": "tests/url/test_growth.py",
    "url.filters.url_validator:?": "tests/url/test_growth.py",
    "url.regex.java_regex:compile_java": _OPERATORS,
    "url.java_uri:_run_of": "tests/url/test_growth.py",
    "url.regex.regex_prefilter:_required_literals": _OPERATORS,
}
"""Other calls of ``re``, by module and function, with the test that measures them or why none has to."""
PATTERNS: dict[str, re.Pattern[Any]] = {
    f"{room}:{name}": pattern
    for room, package in ROOMS.items()
    for name, pattern in patterns_of(package).items()
    if f"{room}:{name}" not in SHORT
}


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_time_is_linear(name: str) -> None:
    room, _, inside = name.partition(":")
    methods = methods_of(ROOMS[room]).get(inside, set()) & {
        "match",
        "fullmatch",
        "search",
        "finditer",
        "findall",
        "sub",
        "split",
    }
    pattern = PATTERNS[name]
    assert_linear(use_of(pattern, methods), near_misses(pattern), 8192)


@pytest.mark.parametrize("function", [
    index_creativecommons.license_terms,
    index_more.disposition_filename,
    language_identifier.language_code,
    lambda text: re.split("[-_]", text),
], ids=["terms_of", "file_name", "language_code", "split"])  # fmt: skip
def test_inline_pattern_time_is_linear(function: Callable[[str], object]) -> None:
    pieces = ["a", "/", "-", "_", " ", "'", '"', "filename=", "filename='", 'filename="a', "=", "x;"]
    assert_linear(function, repetitions(pieces, ["", "filename='"], ["", "\n"]), 32_768)


def inline() -> dict[str, int]:
    """Find the calls of ``re`` that make no pattern under a name of a module, by module and function."""
    found: dict[str, int] = {}
    for module, tree in trees("nutch2py").items():
        if module.split(".")[1:2] and module.split(".")[1] in ROOMS:
            for statement in tree.body:
                named = isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call)
                for node in ast.walk(statement):
                    if isinstance(node, ast.Call) and _is_re(node.func) and not (named and node is statement.value):
                        name = (
                            f"{module.removeprefix('nutch2py.')}:{getattr(statement, 'name', '') or _target(statement)}"
                        )
                        found[name] = found.get(name, 0) + 1
    return found


def _is_re(function: ast.expr) -> bool:
    names = ("compile", "match", "fullmatch", "search", "split", "findall", "finditer", "sub", "subn")
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in names
    )


def _target(statement: ast.stmt) -> str:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return target.id if isinstance(target, ast.Name) else "?"


def test_every_inline_regex_has_a_reason() -> None:
    assert inline().keys() == INLINE.keys()
