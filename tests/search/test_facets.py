"""Facets in the embedded index, of this layout and of earlier ones."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from nutch2py.backends.embedded_index import index_directory
from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.query.query_plan import SearchOptions
from nutch2py.search.search_backends import open_search_backend, open_searcher_manager
from tests.indexer.pages import doc

HOSTS, PAGES = 300, 3


def written(folder):
    """Return a configuration with an index of three pages on each of 300 hosts."""
    conf = Configuration.load(overrides={"index.embedded.path": str(folder / "index"), "index.embedded.batch": "250"})
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for number in range(HOSTS * PAGES):
        host = f"h{number % HOSTS:03d}.org" if number % 2 else "Big.org"
        writer.write(
            doc(
                f"id{number:04d}",
                url=f"http://{host}/Docs/%E5%8C%97/{number}.html?a=/b/",
                host=host,
                title="word",
                lang="en" if number % 3 else "",
                type=["text/html", "text", "html"],
                date=f"20{number % 30:02d}-12-31T23:59:59Z",
            )
        )
    writer.close()
    return conf


def facets(index, query, **filters):
    return index.search(query, options=SearchOptions.from_filters(filters), with_facets=True).facets


def test_facets_count_all_hits(tmp_path):
    conf = written(tmp_path)
    index = open_search_backend(conf)
    found = facets(index, "word")
    assert found["host"][:2] == [("Big.org", 450), ("h001.org", 3)]
    assert found["type"] == [("text/html", 900)]
    assert found["lang"] == [("en", 600)]
    assert [value for value, _ in facets(index, "word")["date"]] == [f"20{year}" for year in range(29, 19, -1)]
    one = facets(index, "word", host="big.org")
    assert one["path"] == [("Big.org/Docs/", 450)]
    below = facets(index, "word", path="Big.org/Docs/")["path"]
    assert below == [("Big.org/Docs/", 450), ("Big.org/Docs/%E5%8C%97/", 450)]
    narrowed = SearchOptions.from_filters({"path": "Big.org/Docs/%E5%8C%97/", "date": "2004-12"})
    assert index.search("word", options=narrowed).total == 30
    assert facets(index, "none") == {"host": [], "path": [], "type": [], "lang": [], "date": []}
    assert facets(index, "") == {}


@pytest.mark.parametrize("layout", [1, 2])
def test_older_index_facets_count_best_hits(tmp_path, monkeypatch, layout):
    with monkeypatch.context() as then:
        then.setattr(index_directory, "SCHEMA_VERSION", layout)
        conf = written(tmp_path)
    index = open_search_backend(conf)
    found = facets(index, "word")
    assert found.keys() == {"host", "type", "lang"}
    assert ("text/html", 900) in found["type"]
    assert facets(index, "word", host="Big.org")["host"] == [("Big.org", 450)]
    assert index.search("word", options=SearchOptions((("lang", "en"),))).total == 600


def test_facets_add_up_to_total_during_commits(tmp_path, monkeypatch):
    monkeypatch.setattr("nutch2py.search.engines.embedded_searcher_manager.COMMIT_CHECK_INTERVAL", -1.0)
    conf = Configuration.load(overrides={"index.embedded.path": str(tmp_path / "index")})
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    searchers, totals = open_searcher_manager(conf), set()
    for number in range(8):
        writer.write(doc(f"id{number}", url=f"http://h.org/{number}", host="h.org", title="word"))
        writer.commit()
        with ThreadPoolExecutor(4) as pool:
            for result in pool.map(lambda _: search_shared(searchers), range(8)):
                assert result.facets["host"] == [("h.org", result.total)]
                totals.add(result.total)
    writer.close()
    assert max(totals) == 8


def search_shared(searchers):
    with searchers.acquire() as searcher:
        return searcher.search("word", with_facets=True)
