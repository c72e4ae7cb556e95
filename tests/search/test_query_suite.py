"""One suite of queries in five languages, with the order of named pages, for every index."""

import itertools
import json
import re
from datetime import datetime

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.query.freshness import FreshnessSettings
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.query.query_settings import QuerySettings
from nutch2py.search.results.collapse import NO_SKETCHES_MESSAGE
from nutch2py.search.search_backends import open_search_backend, search
from tests.conftest import ROOT
from tests.indexer.delivery_suite import write
from tests.search.query_suite import PAGES, QUERIES, documents, name_of, wrong


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """Return a configuration with an embedded index of the pages."""
    conf = Configuration.load(overrides={"index.embedded.path": str(tmp_path_factory.mktemp("asked") / "index")})
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for document in documents():
        writer.write(document)
    writer.close()
    return conf


def test_query_suite_is_complete():
    named = {name for expected in QUERIES.values() for name in expected.replace("|", " ").replace("/", " ").split()}
    assert named <= PAGES.keys()
    assert len(QUERIES) >= 60


def test_embedded_index_returns_expected_pages_in_order(embedded):
    assert wrong(lambda query: [hit.id for hit in search(embedded, query, rows=100).hits]) == []


def written(server, **settings):
    """Return a configuration whose search asks a server, after the pages were sent there."""
    server.start()
    server.clear()
    conf = Configuration.load(overrides={name.replace("_", "."): value for name, value in settings.items()})
    assert write(conf, *documents()) == 0
    return conf


@pytest.fixture(scope="module")
def in_solr(solr_server):
    """Return a configuration with a real Solr."""
    return written(solr_server, solr_server_url=solr_server.url, plugin_includes="indexer-solr")


@pytest.fixture(scope="module")
def in_opensearch(opensearch_server):
    """Return a configuration with a real OpenSearch."""
    return written(opensearch_server, elastic_host=opensearch_server.url, plugin_includes="indexer-elastic")


BEGINNINGS = (
    "cra", "Pyth", "the da", "engine sea", "in", "ca", "caf", "naï", "Hä", "Haus", "gär", "Buc", "软", "軟", "资料",
    "自由软", "数据", "crawlers of the we", "デー", "検", "東京", "x", "xyz", "none such",
    'title:"', "(", "robots.t", "a*", "-",
)  # fmt: skip


def agrees(conf, embedded):
    """Check that an index finds the suite's pages, and the same as the embedded index, in the same order."""
    index, own = open_search_backend(conf), open_search_backend(embedded)
    assert wrong(lambda query: [hit.id for hit in index.search(query, 0, 100).hits]) == []
    for query in QUERIES:
        one, other = ([*map(shown, each.search(query, 0, 100).hits)] for each in (index, own))
        assert sorted(one) == sorted(other), query
        assert same_order(index.search(query, 0, 100).hits, own.search(query, 0, 100).hits), query
    filters = {"lang": "zh", "host": "zh-tw.example.org"}
    for query in ("软件", "博客", "数据库"):
        one, other = (each.search(query, options=SearchOptions.from_filters(filters)) for each in (index, own))
        assert one.total == other.total > 0
        for narrower in ({}, {"host": "zh-tw.example.org"}, {"date": "2021"}, {"date": "2021-02", "lang": "zh"}):
            assert facets_of(index, query, narrower) == facets_of(own, query, narrower)
    ages_alike(index, own)
    collapses_alike(index, own)
    for typed in BEGINNINGS:
        one, other = index.suggest(typed), own.suggest(typed)
        assert sorted(one.queries) == sorted(other.queries), typed
        assert sorted(one.pages) == sorted(other.pages), typed
    assert index.suggest("crawlers of the we").queries == ["crawlers of the web"]
    assert index.suggest("软").queries[0] == "软件"
    for query in ("crawlr", "tutoriol python", "dataabse", "mashcinen"):
        assert index.correct_query(query) == own.correct_query(query) != ""
        one, other = (each.search(query, 0, 100) for each in (index, own))
        assert one.corrected_query == other.corrected_query == own.correct_query(query)
        assert same_order(one.hits, other.hits), query
    key = index.search("crawler", 0, 1).hits[0].id
    assert "idf" in (index.explain("crawler", key) or "")
    assert index.explain("museum", key) is None
    assert (index.get_document(key) or {})["title"] == "Web crawler"
    assert index.get_document("none") is None
    assert index.count() == own.count() == len(PAGES)


def facets_of(index, query, filters):
    return index.search(query, 0, 0, SearchOptions.from_filters(filters), with_facets=True).facets


def ages_alike(index, own):
    """Check that newer pages gain by the same formula for every half-life."""
    dates = {document.id: int(datetime.fromisoformat(document.get("tstamp")).timestamp()) for document in documents()}
    for query, days in itertools.product(("软件", "index", "haus OR garten"), (0.001, 30, 700, 36_500)):
        fresh, _ = FreshnessSettings(Configuration()).resolve(days)
        plain = {hit.id: hit.score for hit in index.search(query, 0, 100, SearchOptions(half_life_days=0.0)).hits}
        assert len(plain) > 1
        result = index.search(query, 0, 100, SearchOptions(half_life_days=days))
        for hit in result.hits:
            assert hit.score == pytest.approx(plain[hit.id] * fresh.factor(dates[hit.id]), rel=0.002), (query, days)
        newest = own.search(query, 0, 100, SearchOptions(half_life_days=days)).hits
        assert same_order(result.hits, newest), (query, days)
        walked, cursor = [], "*"
        while cursor:
            result = index.search(query, 0, 2, SearchOptions(half_life_days=days), cursor=cursor)
            cursor = result.cursor
            walked += [hit.id for hit in result.hits]
        assert sorted(walked) == sorted(plain), (query, days)


def collapses_alike(index, own):
    """Check that hits have the same sketches in every index, can be excluded by them, and collapse by host."""
    plain = index.search("index", 0, 100, SearchOptions())
    sketches = {hit.id: hit.sketch for hit in plain.hits}
    assert sketches == {hit.id: hit.sketch for hit in own.search("index", 0, 100, SearchOptions()).hits}
    assert all(sketches.values())
    for left_out, sketch in sketches.items():
        rest = index.search("index", 0, 100, SearchOptions(excluded_sketches=(sketch,)))
        assert (rest.total, {hit.id for hit in rest.hits}) == (plain.total - 1, sketches.keys() - {left_out})
    for by in ("host", "near"):
        one, other = (each.search("软件 OR index", 0, 10, SearchOptions(collapse_mode=by)) for each in (index, own))
        assert [(hit.id, hit.more) for hit in one.hits] == [(hit.id, hit.more) for hit in other.hits]
        assert (one.total, one.collapsed_total, one.note) == (other.total, other.collapsed_total, other.note)


def follows_files_alike(conf, embedded, folder):
    """Check that synonyms, stopwords and the granularity of queries apply in every index."""
    (folder / "synonyms.txt").write_text("zoo, 软件\nweb crawler, Suchmaschine, 検索", encoding="utf-8")
    (folder / "little.txt").write_text("please", encoding="utf-8")
    both = []
    for each in (conf, embedded):
        changed = each.copy()
        changed.set("index.synonyms.file", str(folder / "synonyms.txt"))
        changed.set("index.stopwords.file", str(folder / "little.txt"))
        changed.set("index.chinese.queries", "fine")
        both.append(open_search_backend(changed))
    found = {}
    for query in ("zoo", "please zoo", "軟體", "web crawler", "検索", "suchmaschinen", "金融危机", "什么是博客"):
        one, other = ({name_of(hit.id) for hit in index.search(query, 0, 100).hits} for index in both)
        assert one == other
        found[query] = one
    assert found["zoo"] == found["please zoo"] == {"snake", "ruanjian", "yingjian", "ruanti-tw"} == found["軟體"]
    assert (
        {"crawler", "suche", "kensaku", "jidousha"} <= found["web crawler"] == found["検索"] == found["suchmaschinen"]
    )
    assert found["金融危机"] == {"jingrong", "yinhang"}
    assert found["什么是博客"] == {"boke", "buluoge-tw"}


def shown(hit):
    return hit.id, hit.title.highlight("<", ">"), hit.snippet.highlight("<", ">")


def ordered(hits, best=0.0):
    """Return the names of the hits; those of one score, to one part in fifty, in the order of names.

    Hits with less than a share ``best`` of the first one's score are omitted.
    """
    groups = []
    for hit in (each for each in hits if each.score >= best * hits[0].score):
        if groups and hit.score > groups[-1][0] * 0.98:
            groups[-1][1].append(hit.id)
        else:
            groups.append((hit.score, [hit.id]))
    return [sorted(names) for _, names in groups]


def same_order(one, other):
    """Return whether the hits with at least half of the best score are in one order; the rest are nearly equal."""
    first, second = ordered(one, 0.5), ordered(other, 0.5)
    return first[: len(second)] == second[: len(first)]


def test_embedded_index_uses_dictionary_files(embedded, tmp_path):
    follows_files_alike(embedded, embedded, tmp_path)


@pytest.mark.server("solr_server")
def test_solr_returns_same_pages_in_same_order(in_solr, embedded, tmp_path):
    agrees(in_solr, embedded)
    follows_files_alike(in_solr, embedded, tmp_path)


@pytest.mark.server("opensearch_server")
def test_opensearch_returns_same_pages_in_same_order(in_opensearch, embedded, tmp_path):
    agrees(in_opensearch, embedded)
    follows_files_alike(in_opensearch, embedded, tmp_path)


def finds_without_sketches(conf):
    """Check that an index older than sketches accepts documents, is searchable, and reports missing sketches."""
    assert write(conf, *documents()) == 0
    found = open_search_backend(conf).search("index", options=SearchOptions(collapse_mode="near", half_life_days=30.0))
    assert (len(found.hits), found.note) == (found.total, NO_SKETCHES_MESSAGE)
    assert open_search_backend(conf).search("index", 0, 10, SearchOptions(collapse_mode="host")).note == ""


@pytest.mark.server("solr_server")
def test_collection_without_fingerprints_is_searchable(solr_server):
    solr_server.start()
    solr_server.configset("before", lambda schema: re.sub(r'  <dynamicField name="terms_facet_\*".*\n', "", schema))
    url = solr_server.core("before", "before")
    try:
        finds_without_sketches(
            Configuration.load(overrides={"solr.server.url": url, "plugin.includes": "indexer-solr"})
        )
    finally:
        solr_server.unload("before")


@pytest.mark.server("opensearch_server")
@pytest.mark.parametrize("dynamic", ["strict", "false"])
def test_index_without_fingerprints_is_searchable(opensearch_server, dynamic):
    opensearch_server.start()
    made = json.loads((ROOT / "schema" / "elastic" / "index.json").read_text(encoding="utf-8"))
    del made["mappings"]["properties"]["terms_facet_near"]
    opensearch_server.call("PUT", f"before-{dynamic}", {**made, "mappings": {**made["mappings"], "dynamic": dynamic}})
    given = {"elastic.host": opensearch_server.url, "elastic.index": f"before-{dynamic}"}
    try:
        finds_without_sketches(Configuration.load(overrides={**given, "plugin.includes": "indexer-elastic"}))
    finally:
        opensearch_server.call("DELETE", f"before-{dynamic}")


def test_words_in_other_script_are_highlighted(embedded):
    assert search(embedded, "软件开发").hits[0].title.highlight("<", ">") == "<軟體開發>"
    titles = {hit.title.highlight("<", ">") for hit in search(embedded, "博客").hits}
    assert titles == {"<部落格>教學", "写<博客>"}
    assert search(embedded, "Haus").hits[0].title.highlight("<", ">") == "<Häuser> bauen"


@pytest.mark.parametrize(
    ("pages", "queries", "query", "found"),
    [
        ("fine", "coarse", "奥运", ["aoyun"]),
        ("coarse", "coarse", "奥运", []),
        ("fine", "coarse", "金融危机", ["jingrong"]),
        ("fine", "fine", "金融危机", ["jingrong", "yinhang"]),
        ("coarse", "fine", "北京奥运会", ["aoyun"]),
    ],
)
def test_chinese_granularity_setting_applies_to_pages_and_queries(tmp_path, pages, queries, query, found):
    given = {"index.embedded.path": str(tmp_path / "index"), "index.chinese.pages": pages}
    conf = Configuration.load(overrides={**given, "index.chinese.queries": queries})
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for document in documents():
        if document.get("lang") == "zh":
            writer.write(document)
    writer.close()
    hits = search(conf, query).hits
    assert [name_of(hit.id) for hit in hits] == found
    assert all(hit.title.highlights or hit.snippet.highlights for hit in hits)
    other = Configuration.load(overrides={**given, "index.chinese.pages": "coarse" if pages == "fine" else "fine"})
    with pytest.raises(IndexingError, match="another text analysis"):
        search(other, query)
    with pytest.raises(ConfigurationError, match=r"index\.chinese\.queries"):
        search(Configuration.load(overrides={**given, "index.chinese.queries": "middling"}), query)


@pytest.mark.parametrize(
    ("minimum", "least"),
    [
        ("100%", [1, 2, 4, 8]),
        ("2", [1, 2, 2, 2]),
        ("2<50%", [1, 2, 2, 4]),
        ("3<75%", [1, 2, 3, 6]),
        ("3 < 75%  5<2", [1, 2, 3, 2]),
        ("0", [1, 1, 1, 1]),
    ],
)
def test_minimum_match_setting_is_parsed(minimum, least):
    rules = QuerySettings.from_conf(Configuration({"index.search.minimum": minimum}))
    assert [rules.expected_words(words) for words in (1, 2, 4, 8)] == least


@pytest.mark.parametrize("minimum", ["most", "101%", "2<", "-1", "3<75% 5<"])
def test_invalid_minimum_match_is_rejected(minimum):
    with pytest.raises(ConfigurationError, match=r"index\.search\.minimum"):
        QuerySettings.from_conf(Configuration({"index.search.minimum": minimum}))


def test_question_finds_pages_with_few_of_its_words(embedded):
    query = "where can somebody who moved find reports warning whether the weather changes"
    assert search(embedded, query).hits[0].title.text == "Weather report"


def test_words_rank_and_hide_nothing(embedded):
    query = "climate report warms unheardof"
    titles = [hit.title.text for hit in search(embedded, query).hits]
    assert titles[:2] == ["Climate change report", "Weather report"]
    assert search(embedded, query).unknown_words == ("unheardof",)
    excluded = [hit.title.text for hit in search(embedded, f"{query} -south").hits]
    assert excluded == [title for title in titles if title != "Weather report"]


@pytest.mark.parametrize("query", ["+unheardof climate", "climate AND unheardof", '"climate unheardof"'])
def test_demands_that_leave_no_hit_are_ignored(embedded, query):
    found = search(embedded, query)
    assert found.is_relaxed
    assert found.hits[0].title.text == "Climate change report"
    assert not search(embedded, "climate AND report").is_relaxed
    assert search(embedded, f"{query} lang:xx").total == 0


@pytest.mark.parametrize(
    ("query", "title"),
    [("what is rights-zoo?", "Managing Rights"), ("zoo.rights", "Managing Rights"), ("王铁塔字什么？", "巴黎旅游")],
)
def test_joined_words_that_no_page_has_are_split(embedded, query, title):
    assert title in {hit.title.text for hit in search(embedded, query).hits}


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("where is the zoo-unheardof?", "Pythons in the zoo"),  # the joined word is on no page, split it is
        ("what is in the climate-zoo-report", "Pythons in the zoo"),
        ('who said:"climate or no report"', "Climate change report"),  # no field of any page, and no phrase
        ('"the unheardof"', "Pythons in the zoo"),  # nothing but fillers is on any page
        ("+unheardof:the", "Pythons in the zoo"),
    ],
)
def test_query_is_not_empty_while_one_of_its_words_is_on_a_page(embedded, query, title):
    assert title in {hit.title.text for hit in search(embedded, query, rows=50).hits}


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("intitle:zoo python", "Pythons in the zoo"),
        ("inurl:example robots", "Robots exclusion"),
        ("tuto*", "Python tutorial"),
        ("unheardof:zoo pythons", "Pythons in the zoo"),
        ("filetype:html zoo", "Pythons in the zoo"),
    ],
)
def test_operators_of_other_engines_are_understood(embedded, query, title):
    assert search(embedded, query).hits[0].title.text == title
