"""Rebuild the collections of docs/ranking.md and print its tables: scripts/bench ranking FOLDER.

FOLDER receives the repositories, crawls and indexes; existing ones are reused. ``--collections``: only those with one
of these name prefixes (separated by commas). ``--choose``: also print the weights that were tried. ``--solr`` starts a
Solr, fills and removes it, for each collection. ``--unjudged FILE``: also write results without judgement there.
``--judgements FILE``: a further judge: lines of query, URL, R and A separated by tabs; the majority of judges counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.ranking import tables
from bench.ranking.choice import TEXT, default, texts, tried, weights
from bench.ranking.collection import Collection
from bench.ranking.copies import copies
from bench.ranking.crawl import Crawl
from bench.ranking.english import cranfield
from bench.ranking.measured import PRECISION, QUALITY, Measured, crawled
from bench.ranking.planted import WEBS, planted
from bench.ranking.sites import nine_sites
from bench.ranking.solr import Solr
from bench.ranking.variants import agrees, same_order
from bench.services import service
from nutch2py.search.evaluation.ranking_metrics import mean_metrics, measure_ranking


def known(checkouts: Path, judges: Sequence[Path] = ()) -> Mapping[str, Callable[[], Collection]]:
    """Return the functions that create the collections, by name."""
    return {
        "nine sites": partial(nine_sites, checkouts, judges),
        **{name: partial(planted, name, web) for name, web in WEBS.items()},
        "copies": partial(copies, checkouts, judges),
        "cranfield": partial(cranfield, checkouts),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Build missing collections, then print the tables."""
    parser = argparse.ArgumentParser(prog="bench ranking", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--collections", default="", help="prefixes of names, separated by commas")
    parser.add_argument("--choose", action="store_true", help="print what was tried as weights")
    parser.add_argument("--solr", action="store_true", help="measure the handler of Solr, too")
    parser.add_argument("--unjudged", type=Path, help="write results without judgement here")
    parser.add_argument(
        "--judgements", type=Path, action="append", default=[], metavar="FILE",
        help="the judgements of one more judge of the nine sites; can be repeated",
    )  # fmt: skip
    options = parser.parse_args(argv)
    folder = options.folder.resolve()
    wanted = tuple(name.strip() for name in options.collections.split(","))
    made = [make() for name, make in known(folder / "checkouts", options.judgements).items() if name.startswith(wanted)]
    those = [crawled(each, Crawl(folder / each.name.replace(" ", "-"), each)) for each in made]
    tables.collections(those)
    if options.choose:
        tables.choice(tried(weights(), those))
        tables.choice(tried(texts(default().weight), those))
    tables.shares(those)
    tables.worth(those)
    tables.places(those)
    tables.together(those)
    for each in those:
        _check(each)
    if options.solr:
        ways = [f"{who}{how}" for who in ("handler", "search") for how in (", text alone", "")]
        names = [f"{name}: {way}" for name in ("P@20", "quality") for way in ways]
        tables.head("Solr, both halves", *names, "queries as in the embedded index")
        for each in those:
            _solr(each)
    if options.unjudged:
        found = {pair for each in those for pair in each.unjudged}
        options.unjudged.write_text("".join(f"{query}\t{url}\n" for query, url in sorted(found)))
    return 0


def _check(measured: Measured) -> None:
    """Report whether an index written with the defaults has the measured order."""
    expected = measured.ranking(default())
    same = agrees(measured.crawl, {}, expected)
    name, count = measured.collection.name, len(expected)
    print(f"\n{name}: an index written by the defaults finds the same for {same} of {count} queries.", flush=True)


def _solr(measured: Measured) -> None:
    """Print the results of Solr's handler and of our search in Solr, by text alone and by the defaults."""
    with service("solr", "ranking", measured.crawl.work / "solr") as solr:
        server = Solr(solr.address)
        server.fill(measured.crawl)
        queries = measured.collection.all_queries
        found = [{query: server.by_handler(query, way.weight) for query in queries} for way in (TEXT, default())]
        plain, ranked = (server.by_search(measured.crawl, each) for each in ({"index.weight.fields": ""}, {}))
        found += [{query: [url for _, url in hits] for query, hits in each.items()} for each in (plain, ranked)]
    known = measured.collection.judgements
    means = [
        mean_metrics([measure_ranking(urls, known.get(query, {})) for query, urls in each.items()]) for each in found
    ]
    expected = measured.ranking(default())
    same = sum(same_order(ranked[query], urls, 20) for query, urls in expected.items())
    cells = [f"{measure(each):.3f}" for measure in (PRECISION, QUALITY) for each in means]
    tables.row(measured.collection.name, *cells, f"{same} of {len(expected)}")


if __name__ == "__main__":
    sys.exit(main())
