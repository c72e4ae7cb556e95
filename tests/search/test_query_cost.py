"""The work of one query is bounded, however long it is, whatever it consists of, and whichever index runs it."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import QueryError
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.engines.server_searcher import ServerSearcher
from nutch2py.search.query.query_plan import BooleanClause, ConstantClause, DisMaxClause, PrefixClause, QueryPlan
from nutch2py.search.search_backends import open_search_backend
from nutch2py.search.suggestions.spelling import SpellingCorrector
from tests.indexer.delivery_suite import write
from tests.indexer.pages import ALL_INDEXES, doc

LENGTHS = 1_000, 4_000, 16_000
"""Characters: the limit of requests, the limit of the searcher, and more than is read."""
TEXT = "crawler index table search pages 北京奥运会开幕 query words of a manual"


def words(length: int) -> Iterator[str]:
    """Yield different words of letters, as many as have a length together."""
    letters = "abcdefghijklmnop"
    for number in range(length // 8):
        yield "q" + "".join(letters[number >> shift & 15] for shift in (0, 4, 8)) + "xyz"


SHAPES: dict[str, Callable[[int], str]] = {
    "known words": lambda length: "crawler index table search pages " * (length // 33),
    "unknown words": lambda length: " ".join(words(length)),
    "long words": lambda length: " ".join(each * 7 for each in words(length // 7)),
    "one word": lambda length: "abcdefghij" * (length // 10),
    "alternatives": lambda length: " OR ".join(words(length)),
    "demands": lambda length: "crawler " + " ".join(f"+{each}" for each in words(length)),
    "exclusions": lambda length: "crawler " + " ".join(f"-{each}" for each in words(length)),
    "alternative exclusions": lambda length: " ".join(f"(crawler OR -{each})" for each in words(length)),
    "nested groups": lambda length: "(crawler OR (" * (length // 13),
    "phrases": lambda length: " ".join(f'"{each} index"' for each in words(length)),
    "one phrase": lambda length: f'"{" ".join(words(length))}"',
    "prefixes": lambda length: " ".join(f"{each[:4]}*" for each in words(length)),
    "fields": lambda length: " ".join(f"title:{each}" for each in words(length)),
    "Chinese run": lambda length: "北京奥运会开幕" * (length // 7),
    "unknown Chinese run": lambda length: "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(length)),
    "Thai run": lambda length: "".join(chr(0x0E01 + number * 7 % 46) for number in range(length)),
    "names and signs": lambda length: "C++ .NET c# e-mail x86 " * (length // 23),
    "operators": lambda length: "AND OR NOT - + ( ) " * (length // 19),
}


def pages() -> Iterator[object]:
    """Yield the pages of the index."""
    for number, lang in enumerate(("en", "de", "fr", "zh", "fi", "ru")):
        yield doc(f"org.a:http/{number}", url=f"http://a.org/{number}", title="Crawler", content=TEXT, lang=lang)


@contextmanager
def counted(searcher: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count the work of searches: terms whose frequencies are read, similar words, plans and their clauses."""
    counts = Counter[str]()
    with monkeypatch.context() as patched:

        def count(owner: type, name: str, number: Callable[..., int]) -> None:
            original = getattr(owner, name)

            def called(*arguments: object) -> object:
                counts[name] += number(*arguments)
                return original(*arguments)

            patched.setattr(owner, name, called)

        statistics = type(searcher.planner.statistics)  # type: ignore[attr-defined]
        count(statistics, "document_frequencies", lambda _, terms: len(terms))
        count(SpellingCorrector, "find_corrections", lambda *_: 1)
        count(SpellingCorrector, "find_homophones", lambda *_: 1)
        count(type(searcher), "_find", lambda _, request: 1)
        count(type(searcher), "_admit", lambda _, plan, rows: clauses_of(plan))
        yield counts


def clauses_of(plan: QueryPlan) -> int:
    """Return the number of clauses of a plan; one with a prefix counts for many terms."""
    if isinstance(plan, BooleanClause):
        return 1 + sum(map(clauses_of, (*plan.must, *plan.should, *plan.must_not)))
    if isinstance(plan, ConstantClause):
        return clauses_of(plan.clause)
    if isinstance(plan, DisMaxClause):
        return sum(50 if isinstance(clause, PrefixClause) else 1 for clause in plan.clauses)
    return 1


MOST = {
    "document_frequencies": 30_000,
    "find_corrections": 16,
    "find_homophones": 16,
    "_find": 6,
    "_admit": 4_000,
}
"""The most work of a query. A query without a hit is planned twice; an edit of a similar word has some terms."""


@pytest.fixture(params=ALL_INDEXES, scope="module")
def searcher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> object:
    """Return the searcher of an index with pages in six languages."""
    settings = {"index.embedded.path": str(tmp_path_factory.mktemp("cost")), "plugin.includes": "indexer-embedded"}
    if request.param != "embedded":
        server = request.getfixturevalue("solr_server" if request.param == "solr" else "opensearch_server")
        server.start()
        server.clear()
        address = "solr.server.url" if request.param == "solr" else "elastic.host"
        settings = {address: server.url, "plugin.includes": f"indexer-{request.param}"}
    conf = Configuration.load(overrides=settings)
    assert write(conf, *pages()) == 0
    return open_search_backend(conf)


@pytest.mark.parametrize("shape", SHAPES)
def test_work_of_query_is_bounded(searcher: EmbeddedSearcher, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    works = []
    for length in LENGTHS:
        with counted(searcher, monkeypatch) as counts, suppress(QueryError):
            searcher.search(SHAPES[shape](2 * length)[:length], with_facets=True)
        works.append(counts)
    assert {name: work for name, work in works[-1].items() if work > MOST[name]} == {}
    for counts in works:
        del counts["_find"]  # languages of a server are read again after some time
    assert works[1] == works[2], "what is beyond the limit costs nothing"


def test_query_of_frequent_words_reads_few_prefixes_and_fillers(searcher: EmbeddedSearcher) -> None:
    plan = searcher.planner.plan(" ".join(f"c{letter}*" for letter in "abcdefghij")).plan
    assert "PrefixClause" in str(plan)
    assert str(plan).count("PrefixClause") <= 4 * 5 * 2
    words_of_page = searcher.planner.plan("of a the in to and is for that it " * 9).plan
    assert words_of_page is not None
    assert clauses_of(words_of_page) < 2_000


def test_released_searcher_needs_no_garbage_collector(conf: Configuration) -> None:
    assert write(conf, *pages()) == 0
    searcher = EmbeddedSearcher(conf)
    gc.collect()
    gc.disable()
    try:
        assert searcher.search("crawlr manual").total
        assert searcher.search("北京奥云会").total
        assert searcher.suggest("craw").queries
        newer = searcher.reopen()
        parts = searcher, searcher.planner, searcher.planner.corrector, searcher.planner.statistics
        released = [*map(weakref.ref, parts)]
        del searcher, parts
        assert [each() for each in released] == [None] * 4
        assert newer.search("crawler").total
    finally:
        gc.enable()


def test_closed_server_searcher_needs_no_garbage_collector(searcher: ServerSearcher) -> None:
    if not isinstance(searcher, ServerSearcher):
        pytest.skip("of servers")
    other = open_search_backend(searcher.conf)
    gc.collect()
    gc.disable()
    try:
        assert other.search("crawlr manual").total
        released = weakref.ref(other)
        other.close()
        del other
        assert released() is None
    finally:
        gc.enable()
