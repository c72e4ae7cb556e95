"""bench ranking --solr: a small crawled web in a real Solr is found in the order of the embedded index."""

from bench.ranking.choice import TEXT, default
from bench.ranking.crawl import Crawl
from bench.ranking.measured import crawled
from bench.ranking.planted import OFFICIAL, Web, planted
from bench.ranking.solr import Solr
from bench.ranking.variants import same_order

TINY = Web(seed=5, topics=4, citing=0.6, reprints=6, sections=4)


def test_solr_ranking_matches_embedded_index(solr_server, tmp_path):
    collection = planted("tiny", TINY)
    made = crawled(collection, Crawl(tmp_path, collection))
    expected = made.ranking(default())
    solr_server.start()
    solr_server.clear()
    server = Solr(solr_server.url)
    made.crawl.run("pagerank")
    assert not any(server.by_search(made.crawl, {}).values())  # an empty index
    server.fill(made.crawl)
    server.fill(made.crawl)
    assert server.client.get_json("admin/luke?numTerms=0&wt=json")["index"]["deletedDocs"] == 0
    ranked = server.by_search(made.crawl, {})
    assert [query for query, urls in expected.items() if not same_order(ranked[query], urls, 20)] == []
    plain = server.by_search(made.crawl, {"index.weight.fields": ""})
    texts = made.ranking(TEXT)
    assert [query for query, urls in texts.items() if not same_order(plain[query], urls, 20)] == []
    for query in collection.all_queries:
        officials = {url for url, judged in collection.judgements[query].items() if judged == OFFICIAL}
        found, weighed = (server.by_handler(query, way.weight, 1000) for way in (TEXT, default()))
        assert officials <= {*found} == {*weighed}
        assert sum(map(weighed.index, officials)) <= sum(map(found.index, officials))
