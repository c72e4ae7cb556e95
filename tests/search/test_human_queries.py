"""Queries of people in many languages: the best page comes first in every index."""

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.search.search_backends import open_search_backend
from tests.indexer.delivery_suite import write
from tests.search.human_query_suite import QUERIES, SUITES, documents, wrong


def open_written(**settings):
    """Return the search of an index that has the pages."""
    conf = Configuration.load(overrides={name.replace("_", "."): value for name, value in settings.items()})
    assert write(conf, *documents()) == 0
    return open_search_backend(conf)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    path = tmp_path_factory.mktemp("human") / "index"
    return open_written(index_embedded_path=str(path), plugin_includes="indexer-embedded")


def assert_suite_holds(index, embedded):
    """Check that the best page is first, and that all indexes agree on it and on the words that were searched."""
    found = {query: index.search(query, 0, 3) for query in QUERIES}
    assert wrong(lambda query: [hit.id for hit in found[query].hits]) == []
    for query, result in found.items():
        own = embedded.search(query, 0, 3)
        assert (result.total, result.corrected_query) == (own.total, own.corrected_query), query


def test_human_query_suite_covers_ten_languages():
    assert len(QUERIES) >= 150
    assert sum(len(suite["queries"]) >= 8 for suite in SUITES.values()) >= 10
    assert all(len(suite["pages"]) >= 8 for suite in SUITES.values())


def test_embedded_index_shows_best_page_first(embedded):
    assert_suite_holds(embedded, embedded)


@pytest.mark.server("solr_server")
def test_solr_shows_best_page_first(solr_server, embedded):
    solr_server.start()
    solr_server.clear()
    assert_suite_holds(open_written(solr_server_url=solr_server.url, plugin_includes="indexer-solr"), embedded)


@pytest.mark.server("opensearch_server")
def test_opensearch_shows_best_page_first(opensearch_server, embedded):
    opensearch_server.start()
    opensearch_server.clear()
    index = open_written(elastic_host=opensearch_server.url, plugin_includes="indexer-elastic")
    assert_suite_holds(index, embedded)
