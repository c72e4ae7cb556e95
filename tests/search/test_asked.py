"""One suite of queries in five languages, with the order of named pages, for every index."""

import pytest

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.plan import Rules
from nutch2py.search.search import search
from nutch2py.search.search_backends import backend
from tests.indexer.delivery_suite import write
from tests.search.asked import PAGES, QUERIES, documents, wrong


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """Give a configuration with an embedded index of the pages."""
    conf = Configuration.load(overrides={"index.embedded.path": str(tmp_path_factory.mktemp("asked") / "index")})
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for document in documents():
        writer.write(document)
    writer.close()
    return conf


def test_the_suite_is_whole():
    named = {name for expected in QUERIES.values() for name in expected.replace("|", " ").replace("/", " ").split()}
    assert named <= PAGES.keys()
    assert len(QUERIES) >= 60


def test_the_embedded_index_finds_the_pages_in_their_order(embedded):
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
    """Give a configuration with a real Solr."""
    return written(solr_server, solr_server_url=solr_server.url, plugin_includes="indexer-solr")


@pytest.fixture(scope="module")
def in_opensearch(opensearch_server):
    """Give a configuration with a real OpenSearch."""
    return written(opensearch_server, elastic_host=opensearch_server.url, plugin_includes="indexer-elastic")


def agrees(conf, embedded):
    """Check that an index finds what the suite says, and what the embedded index finds, in the same order."""
    index, own = backend(conf), backend(embedded)
    assert wrong(lambda query: [hit.id for hit in index.search(query, {}, 0, 100).hits]) == []
    for query in QUERIES:
        one, other = ([*map(shown, each.search(query, {}, 0, 100).hits)] for each in (index, own))
        assert sorted(one) == sorted(other), query
        assert ordered(index, query) == ordered(own, query), query
    filters = {"lang": "zh", "host": "zh-tw.example.org"}
    for query in ("软件", "博客", "数据库"):
        assert index.search(query, filters, 0, 10).total == own.search(query, filters, 0, 10).total > 0
        assert index.facets(query, {}) == own.facets(query, {})
    for query in ("crawlr", "tutoriol python"):
        assert index.corrected(query) == own.corrected(query) != ""
    key = index.search("crawler", {}, 0, 1).hits[0].id
    assert "idf" in (index.explain("crawler", key) or "")
    assert index.explain("museum", key) is None
    assert (index.get(key) or {})["title"] == "Web crawler"
    assert index.get("none") is None
    assert index.count() == own.count() == len(PAGES)


def shown(hit):
    return hit.id, hit.title.marked("<", ">"), hit.snippet.marked("<", ">")


def ordered(index, query):
    """Return the names of the hits; those of one score, to one part in fifty, in the order of names."""
    hits = index.search(query, {}, 0, 100).hits
    groups = []
    for hit in hits:
        if groups and hit.score > groups[-1][0] * 0.98:
            groups[-1][1].append(hit.id)
        else:
            groups.append((hit.score, [hit.id]))
    return [sorted(names) for _, names in groups]


@pytest.mark.server("solr_server")
def test_solr_finds_the_same_pages_in_the_same_order(in_solr, embedded):
    agrees(in_solr, embedded)


@pytest.mark.server("opensearch_server")
def test_opensearch_finds_the_same_pages_in_the_same_order(in_opensearch, embedded):
    agrees(in_opensearch, embedded)


def test_words_in_another_script_are_marked_where_they_stand(embedded):
    assert search(embedded, "软件开发").hits[0].title.marked("<", ">") == "<軟體開發>"
    titles = {hit.title.marked("<", ">") for hit in search(embedded, "博客").hits}
    assert titles == {"<部落格>教學", "写<博客>"}
    assert search(embedded, "Haus").hits[0].title.marked("<", ">") == "<Häuser> bauen"


@pytest.mark.parametrize(
    ("minimum", "least"),
    [
        ("100%", [1, 2, 4, 8]),
        ("2", [1, 2, 2, 2]),
        ("2<50%", [1, 2, 2, 4]),
        ("3<75%", [1, 2, 3, 6]),
        ("0", [1, 1, 1, 1]),
    ],
)
def test_how_many_words_must_be_there_is_a_setting(minimum, least):
    rules = Rules.of(Configuration({"index.search.minimum": minimum}))
    assert [rules.least(words) for words in (1, 2, 4, 8)] == least


@pytest.mark.parametrize("minimum", ["most", "101%", "2<", "-1"])
def test_a_minimum_that_says_nothing_is_refused(minimum):
    with pytest.raises(ConfigurationError, match=r"index\.search\.minimum"):
        Rules.of(Configuration({"index.search.minimum": minimum}))


def test_of_many_words_one_may_be_missing_unless_all_are_asked_for(embedded):
    query = "climate report warms unheardof"
    assert [hit.title.text for hit in search(embedded, query).hits] == ["Climate change report"]
    assert search(embedded, query.replace(" ", " AND ")).total == 0
    assert search(embedded, "+unheardof climate report warms").total == 0
    path = embedded.get_trimmed("index.embedded.path")
    all_of_them = Configuration.load(overrides={"index.embedded.path": path, "index.search.minimum": "100%"})
    assert search(all_of_them, query).total == 0
