"""The eight queries find the right page first, in the embedded index and in Solr: Chinese is searched by words."""

import pytest

from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.search.search_backends import search
from tests.search.near_misses import MENTIONED, PAGES, QUERIES, documents, name_of


@pytest.fixture(params=["embedded", pytest.param("solr", marks=pytest.mark.server("solr_server"))], scope="module")
def indexed(request, tmp_path_factory):
    """Return the configuration of an index that has the pages."""
    from nutch2py.conf.configuration import Configuration

    given = {"storage.data.store": f"embedded:{tmp_path_factory.mktemp('pages') / 'crawldata'}"}
    if request.param == "solr":
        server = request.getfixturevalue("solr_server")
        server.start()
        server.clear()
        given |= {"solr.server.url": server.url, "search.backend": "solr", "plugin.includes": "indexer-solr"}
    conf = Configuration.load(overrides=given)
    writers = IndexWriters(conf)
    writers.prepare()
    with writers:
        for document in documents():
            writers.write(document)
        writers.commit()
    return conf


@pytest.mark.parametrize("query", QUERIES)
def test_correct_page_is_before_mentions_and_near_misses(indexed, query):
    found = [name_of(hit) for hit in search(indexed, query).hits]
    mentioned = MENTIONED.get(query, set())
    assert found[0] == QUERIES[query]
    assert set(found[1 : 1 + len(mentioned)]) == mentioned


@pytest.mark.parametrize("query", QUERIES)
def test_query_words_are_highlighted(indexed, query):
    hit = search(indexed, query).hits[0]
    marked = "".join(hit.title.text[start:end] for start, end in hit.title.highlights)
    assert marked == query


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("奥运会", {"beijing", "olympics_history"}),
        ("巴拿马", {"panama"}),
        ("奥地利", {"austria"}),
        ("论坛", {"boao", "forum"}),
        ("世锦赛", {"snooker", "athletics"}),
        ("火箭", {"rockets", "rocket"}),
        ("病毒", {"flu", "pig"}),
        ("奥运会 -历史", {"beijing"}),
        ('"美国总统"', {"obama"}),
        ("title:奥运会", {"beijing", "olympics_history"}),
        ("北京奥运会 OR 巴拿马", {"beijing", "olympics_history", "panama"}),
        ("火箭 -卫星", {"rockets"}),
        ("火箭 AND (卫星 OR 海南)", {"rocket"}),
        ("(论坛 -程序员) OR 巴拿马", {"boao", "panama"}),
        ("lang:zh 运河", {"panama"}),
        ("不存在的词", set()),
    ],
)
def test_both_indexes_return_same_pages(indexed, query, expected):
    assert {name_of(hit) for hit in search(indexed, query, rows=len(PAGES)).hits} == expected
