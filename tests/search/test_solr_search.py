"""Typical queries of applications to the configset schema/solr, in a real Solr."""

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.search.engines.solr_edismax_searcher import SolrEdismaxSearcher
from nutch2py.search.results.search_results import format_for_terminal
from nutch2py.search.search_backends import search, search_backend_name
from tests.indexer.delivery_suite import page_doc, write
from tests.indexer.test_solr import settings
from tests.services import ROOT


def ids(*numbers):
    return [f"org.example:http/{number}" for number in numbers]


@pytest.fixture(scope="module")
def searched(solr_server):
    """Return Solr with some pages: English, Chinese, near-misses, duplicates, two hosts."""
    solr_server.start()
    solr_server.clear()
    html = ["text/html", "text", "html"]
    write(
        settings(solr_server.url),
        page_doc(1, title="Nutch web crawler", content="The crawler crawls the web. Naïve café.", type=html, lang="en"),
        page_doc(2, title="Web crawlers", content="A crawler named Nutch", digest="d" * 32, type=html, lang="en"),
        page_doc(3, title="Web crawlers", content="A crawler named Nutch", digest="d" * 32, type=html, lang="en"),
        page_doc(4, title="About", content="home page", anchor=["search engine", "Nutch"], type=html, lang="en"),
        page_doc(5, title="Гостиницы", content="Гостиницы Москвы", type=html, lang="ru", host="cn.example.com"),
        page_doc(6, title="Αθήνα", content="Η Αθήνα", type=html, lang="el", host="cn.example.com"),
        page_doc(10, title="北京奥运会", content="2008年奥运会在北京举行。", lang="zh", host="cn.example.com"),
        page_doc(
            11, title="奥巴马", content="奥巴马当选美国总统，会议在华盛顿举行。", lang="zh", host="cn.example.com"
        ),
        page_doc(12, title="巴拿马", content="巴拿马运河的会议，奥地利总统出席。", lang="zh", host="cn.example.com"),
        page_doc(13, title="会", content="京 奥 会 北 运", lang="zh", host="cn.example.com"),
        page_doc(14, title="博鳌亚洲论坛", content="博鳌亚洲论坛年会", lang="zh", host="cn.example.com"),
        page_doc(20, content="weighted words", boost="1.0"),
        page_doc(21, content="weighted words", boost="4.0"),
        page_doc(22, content="weighted words", boost="1.0", pagerank="10.0"),
    )
    return solr_server


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("北京奥运会", {10}),
        ("奥运会", {10}),
        ("奥巴马", {11}),
        ("巴拿马", {12}),
        ("博鳌", {14}),
        ("博鳌亚洲论坛", {14}),
        ("美国总统", {11}),
        ("总统", {11, 12}),
    ],
)
def test_chinese_words_are_matched_as_words(searched, query, found):
    assert set(searched.ids(query, handler="nutch")) == set(ids(*found))
    assert set(searched.ids(f'content:"{query}" OR title:"{query}"')) == set(ids(*found))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("crawling", {1}),
        ("crawlers", {1, 2, 3}),
        ("Москвы гостиницы", {5}),
        ("ΑΘΗΝΑ", {6}),
        ("NUTCH crawler", {1, 2, 3}),
        ("the naive cafe", {1}),
        ('"named nutch"', {2, 3}),
        ("crawler -named", {1}),
        ("search engine nutch", {4}),
        ("ｎｕｔｃｈ ｃｒａｗｌｅｒ", {1, 2, 3}),
        ("title:crawler lang:en", {1, 2, 3}),
    ],
)
def test_english_words_are_matched_in_all_forms(searched, query, found):
    assert set(searched.ids(query, handler="nutch")) == set(ids(*found))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("crawler", {1, 2, 3}),
        ("content:crawler AND title:nutch", {1}),
        ("url:example", {1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 20, 21, 22}),
        ('url:"http://example.org/2"', {2}),
        ("host:cn.example.com", {5, 6, 10, 11, 12, 13, 14}),
        ("host:com", {5, 6, 10, 11, 12, 13, 14}),
        ("{!term f=host}cn.example.com", {5, 6, 10, 11, 12, 13, 14}),
        ("host:cn.example.org", set()),
        (r"id:org.example\:http\/4", {4}),
        ("anchor:engine", {4}),
        ("digest:" + "d" * 32, {2, 3}),
        ("type:text/html AND lang:en", {1, 2, 3, 4}),
        ("boost:[2 TO *]", {21}),
        ("tstamp:[2025-12-31T00:00:00Z TO 2026-01-02T00:00:00Z] AND title:About", {4}),
        ("batchId:b AND title:About", {4}),
    ],
)
def test_nutch_2_application_queries_work(searched, query, found):
    assert set(searched.ids(query)) == set(ids(*found))


@pytest.mark.parametrize(
    ("query", "operator", "found"),
    [
        ("text:engine text:奥运会", "OR", {4, 10}),
        ('text:"named nutch"', "OR", {2, 3}),
        ('text:"博鳌亚洲论坛"', "OR", {14}),  # a word that userdict.txt puts together, among others
        ("text:(home engine)", "AND", {4}),  # one word in content, the other in an anchor
        ("home engine example", "AND", {4}),
        ("美国总统", "AND", {11}),
        ("text:crawl*", "OR", {1, 2, 3}),
        ("text:nutsh~1 AND lang:en", "OR", {1, 2, 3, 4}),
        ("text:nutch^2 -text:named", "OR", {1, 4}),
        ("nutch NOT (named OR naive)", "OR", {4}),
        ("+engine +(about OR crawler)", "OR", {4}),
        ("*:* AND NOT lang:*", "OR", {20, 21, 22}),
        ("content:/hom[ea]/ OR title:[opel TO opera]", "OR", {4}),
    ],
)
def test_lucene_text_field_searches_all_fields(searched, query, operator, found):
    assert set(searched.ids(query, **{"q.op": operator})) == set(ids(*found))


def test_user_dictionary_joins_words():
    """Several words after ``=>`` would form a graph, which text_general avoids without flattenGraph."""
    lines = (ROOT / "schema" / "solr" / "conf" / "userdict.txt").read_text(encoding="utf-8").splitlines()
    rules = [line.split("=>") for line in lines if line and not line.startswith("#")]
    assert rules
    assert all(len(rule) == 2 and not {*" ,"} & {*rule[1].strip()} for rule in rules)


def test_relevance_is_multiplied_by_pagerank_and_opic(searched):
    def scores(**parameters):
        answer = searched.select("weighted words", handler="nutch", **parameters)
        return {each["id"]: each["score"] for each in answer["response"]["docs"]}

    plain = scores(pagerank_power=0, opic_power=0)
    assert len(set(plain.values())) == 1
    (base,) = set(plain.values())
    assert [(key, round(score / base, 3)) for key, score in scores(pagerank_power=1, opic_power=1).items()] == [
        (*ids(22), 10.0), (*ids(21), 4.0), (*ids(20), 1.0),
    ]  # fmt: skip
    assert list(scores(pagerank_power=0.5, opic_power=1)) == ids(21, 22, 20)
    assert list(scores(pagerank_power=0, opic_power=1)) == ids(21, 20, 22)
    usual = scores()
    assert usual[ids(22)[0]] == pytest.approx(base * 10**0.35)  # its PageRank
    assert usual[ids(21)[0]] == pytest.approx(base)  # whatever its OPIC


def test_pagerank_is_updated_in_place(searched):
    searched.post([{"id": ids(20)[0], "pagerank": {"set": 100}}])
    try:
        assert searched.ids("weighted words", handler="nutch") == ids(20, 22, 21)
        assert searched.ids("content:weighted AND id:*20") == ids(20)
    finally:
        searched.post([{"id": ids(20)[0], "pagerank": {"set": 1}}])


def test_results_collapse_by_host_or_digest(searched):
    assert len(searched.ids("crawler", handler="nutch")) == 3
    assert len(searched.ids("crawler", handler="nutch", collapse="digest")) == 2
    hosts = searched.select("*:*", handler="nutch", collapse="host")["response"]["docs"]
    assert sorted(each["host"] for each in hosts) == ["cn.example.com", "example.org"]


def test_facets_count_hosts_types_and_languages(searched):
    facets = searched.select("*:*", handler="nutch")["facet_counts"]["facet_fields"]
    assert facets["host"] == ["cn.example.com", 7, "example.org", 7]
    assert facets["lang"] == ["zh", 5, "en", 4, "el", 1, "ru", 1]
    assert sorted(facets["type"][::2]) == ["html", "text", "text/html"]


def test_snippets_highlight_words_and_are_escaped(searched):
    write(settings(searched.url), page_doc(30, title="<b>bold</b>", content="<script>alert(1)</script> dangerous"))
    shown = searched.select("dangerous", handler="nutch")["highlighting"][ids(30)[0]]
    assert "&lt;script&gt;" in shown["content"][0]
    assert "<em>dangerous</em>" in shown["content"][0]
    searched.post({"delete": ids(30)[0]})


@pytest.mark.parametrize(
    ("query", "meant"), [("crwaler", "crawler"), ("nutsh crawler", "nutch crawler"), ("web crawlrs", "web crawlers")]
)
def test_misspelled_words_are_corrected(searched, query, meant):
    said = searched.select(query, handler="nutch")["spellcheck"]
    assert said["collations"] == ["collation", meant]
    assert searched.ids(meant, handler="nutch")


@pytest.mark.parametrize(
    ("typed", "titles"),
    [
        ("web cra", {"Nutch web crawler", "Web crawlers"}),
        ("CRAWLER W", {"Nutch web crawler", "Web crawlers"}),
        ("nut", {"Nutch web crawler"}),
        ("北京", {"北京奥运会"}),
        ("北京奥", {"北京奥运会"}),
        ("奥巴", {"奥巴马"}),
        ("гост", {"Гостиницы"}),
        ("utch", set()),
        ("title:web", set()),
        ('"web (', {"Nutch web crawler", "Web crawlers"}),
    ],
)
def test_titles_are_suggested_without_build(searched, typed, titles):
    found = searched.select(typed, handler="suggest")["response"]["docs"]
    assert {title for each in found for title in each["title"]} == titles
    assert len(found) == len(titles)  # pages with the same digest are one suggestion


def test_suggestions_appear_at_commit_best_page_first(searched):
    write(
        settings(searched.url),
        page_doc(40, title="Suggested once"),
        page_doc(41, title="Suggested twice", pagerank="3.0"),
    )
    try:
        assert searched.ids("sugg", handler="suggest") == ids(41, 40)
        searched.post({"delete": ids(41)[0]})
        assert searched.ids("sugg", handler="suggest") == ids(40)
    finally:
        searched.post({"delete": ids(40, 41)})


def test_search_command_queries_solr(searched, capsys):
    conf = settings(searched.url, search_backend="solr")
    result = search(conf, "北京奥运会")
    (hit,) = result.hits
    assert (result.total, hit.id, hit.url) == (1, *ids(10), "http://example.org/10")
    assert hit.to_dict()["title"] == "<em>北京奥运会</em>"
    assert [hit.snippet.text[start:end] for start, end in hit.snippet.highlights] == ["奥运会", "北京"]
    by_handler = SolrEdismaxSearcher(conf).search("北京奥运会").hits[0]
    assert by_handler.to_dict()["title"] == "<em>北京</em><em>奥运会</em>"
    assert "1. 北京奥运会" in format_for_terminal(result)
    paged = search(conf, "crawler", start=1, rows=1)
    assert (paged.total, len(paged.hits), paged.start) == (3, 1, 1)
    assert search(conf, "nothing of that kind").hits == []
    assert search(conf, "((unbalanced").total == 0
    assert main(["search", "-D", f"solr.server.url={searched.url}", "--solr", "naive", "cafe"]) == 0
    assert "Nutch web crawler" in capsys.readouterr().out


def test_search_backend_follows_index_writer():
    there = {"solr.server.url": "http://localhost:8983/solr/nutch"}
    assert search_backend_name(Configuration.load()) == "embedded"
    assert search_backend_name(Configuration.load(overrides=there)) == "solr"
    both = {**there, "plugin.includes": "indexer-(solr|embedded)"}
    assert search_backend_name(Configuration.load(overrides=both)) == "embedded"
    assert search_backend_name(Configuration.load(overrides={**both, "search.backend": "solr"})) == "solr"
    assert search_backend_name(Configuration.load(overrides={"elastic.host": "localhost"})) == "elastic"
    all_three = {**both, "elastic.host": "localhost", "search.backend": "opensearch"}
    assert search_backend_name(Configuration.load(overrides=all_three)) == "elastic"


def test_impossible_solr_search_reports_reason(searched):
    conf = settings(searched.url, search_backend="solr", solr_search_handler="none")
    with pytest.raises(IndexingError, match=r"Solr at .* has no request handler none: load the configset schema/solr"):
        SolrEdismaxSearcher(conf).search("x")
    with pytest.raises(ConfigurationError, match="Missing SOLR URL"):
        search(Configuration({"search.backend": "solr"}), "x")
    with pytest.raises(ConfigurationError, match=r"search\.backend is 'lucene': write embedded, solr or elastic"):
        search(Configuration({"search.backend": "lucene"}), "x")
