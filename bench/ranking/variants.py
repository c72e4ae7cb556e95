"""Rankings of the collection: how Chinese is cut × what relevance is multiplied by, in the embedded index and in Solr.

The embedded index multiplies relevance by powers of fields when it is written. Here it is written once for each way to
cut Chinese, without weights, all matches of a query are taken with their relevance, and the weights are applied to
them: the same order, which :func:`agrees` holds to an index made with the weights. Solr takes powers with a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.ranking.crawl import Crawl
from nutch2py.backends.solr_client import SolrClient
from nutch2py.conf import Configuration
from nutch2py.search.searcher import EmbeddedSearcher

LEAST, MOST = 0.0001, 10_000.0  # the bounds of a weight, as in the index writer
DEEP = 100_000
USUAL = "a = 0.5"
POWERS = (0.02, 0.05, 0.25, 0.5, 1.0)


class Match(NamedTuple):
    """A page that a query matches: relevance of its text, and the field boost, made of OPIC."""

    url: str
    relevance: float
    opic: float


class Weight(NamedTuple):
    """Powers of OPIC and of PageRank, and which PageRank it is (a name of bench/ranking/ranks.py)."""

    opic: float = 0.0
    pagerank: float = 0.0
    formula: str = USUAL

    def __str__(self) -> str:
        names = {"OPIC": self.opic, "PageRank": self.pagerank}
        used = [name for name, power in names.items() if power]
        if not used:
            return "text alone"
        return f"{' × '.join(used)} ^ {max(names.values()):g}"


TEXT = Weight()
WEIGHTS = (TEXT, *(Weight(*pair) for power in POWERS for pair in ((power, 0.0), (0.0, power), (power, power))))


def ranking(matches: Sequence[Match], weight: Weight, ranks: Mapping[str, float]) -> list[str]:
    """Return the URLs of the matches, best first."""

    def value(match: Match) -> float:
        opic: float = min(max(match.opic, LEAST), MOST) ** weight.opic
        rank: float = min(max(ranks.get(match.url, 1.0), LEAST), MOST) ** weight.pagerank
        return match.relevance * min(max(opic * rank, LEAST), MOST)

    return [match.url for match in sorted(matches, key=lambda match: (-value(match), match.url))]


def matches(crawl: Crawl, chinese: str, queries: Sequence[str], fields: str = "") -> dict[str, list[Match]]:
    """Return all matches of each query by text alone; the index is written unless it is there.

    ``chinese``: words or characters. ``fields``: ``index.search.fields``, empty for the default.
    """
    settings = {
        "index.chinese": chinese,
        "index.weight.fields": "",
        "index.embedded.path": str(crawl.work / f"index-{chinese}"),
    }
    if not (crawl.work / f"index-{chinese}" / "meta.json").exists():
        crawl.run("index", "-reindex", properties=settings)
    given = {"index.search.fields": fields} if fields else {}
    return {
        query: [Match(str(hit["url"]), score, float(str(hit.get("boost", 1.0)))) for score, hit in found]
        for query, found in _searched(crawl, {**settings, **given}, queries, DEEP).items()
    }


def agrees(crawl: Crawl, weight: Weight, queries: Sequence[str], expected: Mapping[str, Sequence[str]]) -> int:
    """Return for how many queries an index written with the weights finds the same first 20, in the same order.

    ``weight``: its powers must be equal, or one of them 0.
    """
    powers = {"boost": weight.opic, "pagerank": weight.pagerank}
    settings = {
        "index.chinese": "words",
        "index.weight.fields": ",".join(name for name, power in powers.items() if power),
        "index.weight.power": f"{max(powers.values()):g}",
        "index.embedded.path": str(crawl.work / "index-weighted"),
    }
    crawl.run("index", "-reindex", properties=settings)
    found = _searched(crawl, settings, queries, 20)
    return sum([str(hit["url"]) for _, hit in found[query]] == [*expected[query]][:20] for query in queries)


def _searched(
    crawl: Crawl, settings: Mapping[str, str], queries: Sequence[str], rows: int
) -> dict[str, list[tuple[float, dict[str, object]]]]:
    searcher = EmbeddedSearcher(Configuration.load(overrides={**crawl.properties, **settings}))
    return {query: [(hit.score, hit.fields) for hit in searcher.search(query, 0, rows)[1]] for query in queries}


class Solr:
    """A core with the configset schema/solr."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.client = SolrClient([address])

    def fill(self, crawl: Crawl) -> None:
        """Send the documents, unless there are some."""
        if not self.client.search("*:*", "select", rows=0)["response"]["numFound"]:
            without = crawl.properties["plugin.includes"].replace("indexer-embedded|", "")
            crawl.run("index", "-reindex", properties={"solr.server.url": self.address, "plugin.includes": without})

    def ranking(self, query: str, weight: Weight, rows: int = 20) -> list[str]:
        """Return the URLs that the handler for people finds, best first."""
        answer = self.client.search(
            query, "nutch", rows=rows, fl="url", hl="false", facet="false", spellcheck="false",
            pagerank_power=weight.pagerank, opic_power=weight.opic,
        )  # fmt: skip
        return [str(document["url"]) for document in answer["response"]["docs"]]
