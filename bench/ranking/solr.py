"""Rankings of a Solr with the configset schema/solr: its search handler, and our search by plans."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from bench.ranking.crawl import Crawl
from bench.ranking.variants import Weight
from nutch2py.backends.servers.solr_client import SolrClient
from nutch2py.conf.configuration import Configuration
from nutch2py.search.search_backends import make_server_searcher


class Solr:
    """A collection of a crawl's documents."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.client = SolrClient([address])

    def fill(self, crawl: Crawl) -> None:
        """Send the documents, with the ranks in the table.

        Segments are merged afterwards: replaced documents, which a repeated request leaves behind, count in the
        statistics of Lucene until then. Where they are a tenth, 31 of 48 queries have another order.
        """
        without = crawl.properties["plugin.includes"].replace("indexer-embedded|", "")
        crawl.run("index", "-reindex", properties={"solr.server.url": self.address, "plugin.includes": without})
        self.client.get_json("update?optimize=true&maxSegments=1&wt=json")

    def by_handler(self, query: str, weight: Weight, rows: int = 60) -> list[str]:
        """Return the URLs found by the search handler, best first."""
        answer = self.client.search(
            query, "nutch", rows=rows, fl="url", hl="false", facet="false", spellcheck="false",
            pagerank_power=weight.pagerank, opic_power=weight.opic,
        )  # fmt: skip
        return [str(document["url"]) for document in answer["response"]["docs"]]

    def by_search(self, crawl: Crawl, settings: Mapping[str, str]) -> dict[str, list[tuple[float, str]]]:
        """Return score and URL of our search's results for each query of a crawl, best first."""
        here = {"solr.server.url": self.address, "search.backend": "solr"}
        conf = Configuration.load(overrides={**crawl.properties, **here, **settings})
        with closing(make_server_searcher(conf)) as searcher:
            return {
                query: [(hit.score, str(hit.fields["url"])) for hit in searcher.find_documents(query, 60)]
                for query in crawl.collection.all_queries
            }
