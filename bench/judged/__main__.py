"""Search quality on public judged collections: scripts/bench judged [-keep FOLDER] [-half tuning|reporting].

Each collection becomes a local site of one page a document, is crawled with the default settings, and asked through
the Python interface at defaults; BM25 (bm25s) ranks the same texts for the same queries. The table has the questions
of the collections, a second one keyword queries: three content words of a title. Queries are split by their ids into
a half to choose weights on and a half to report.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.judged.baseline import Bm25
from bench.judged.collection import BOTH, HALVES, REPORTING, JudgedCollection, keyword_collection
from bench.judged.product import CrawledCollection
from bench.judged.readers import read_trec
from bench.judged.report import ROWS, Comparison, SystemResult, print_changes, print_head, print_means, print_row
from bench.judged.sources import SOURCES, CollectionError, load
from nutch2py.errors import InputError

ENCODED_LANGUAGES = frozenset({"en"})
"""Languages of the built-in encoder."""
_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "collections"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the collections and print the tables; return 1 when no collection could be had."""
    args = _parser().parse_args(argv)
    try:
        properties = dict(each.split("=", 1) for each in args.D)
    except ValueError:
        raise SystemExit("-D: write property=value") from None
    with tempfile.TemporaryDirectory(prefix="nutch2py-judged-") as temporary:
        keep = (args.keep or Path(temporary)).resolve()
        comparisons = []
        for name, read in _selected(args).items():
            try:
                collection = read()
            except (CollectionError, InputError, OSError) as error:
                print(f"{name} is skipped: {error}", file=sys.stderr, flush=True)
                continue
            comparisons.append(_measure(collection, keep, properties, args))
    for title, place in (("Questions", 0), ("Keyword queries", 1)):
        these = [each[place] for each in comparisons if each[place].product.rankings]
        if these:
            print_head(f"{title}, {args.half} half")
            for comparison in these:
                print_row(comparison)
            print_means(these)
    if args.before is not None:
        print_changes([each[place] for place in (0, 1) for each in comparisons], args.before)
    if args.json is not None:
        results = [each.to_dict() for pair in comparisons for each in pair]
        args.json.write_text(json.dumps(results, ensure_ascii=False, indent=1), encoding="utf-8")
    return 0 if comparisons else 1


def _measure(
    collection: JudgedCollection, keep: Path, properties: dict[str, str], args: argparse.Namespace
) -> tuple[Comparison, Comparison]:
    """Return the comparisons of a collection's questions and keyword queries."""
    site = CrawledCollection(collection, keep, properties)
    site.crawl()
    if args.reindex:
        site.reindex()
    is_hybrid = args.hybrid and collection.language in ENCODED_LANGUAGES
    if is_hybrid:
        site.encode()
    baseline = Bm25(collection)
    found = []
    for asked in (collection, keyword_collection(collection)):
        queries = asked.choose_queries(args.half, args.limit)
        started = time.monotonic()
        product = site.rankings(queries, ROWS)
        seconds = time.monotonic() - started
        print(f"{asked.name}: {len(queries)} queries in {seconds:.1f} s", file=sys.stderr, flush=True)
        rankings = [product, baseline.rankings(queries, ROWS)]
        if is_hybrid:
            started = time.monotonic()
            rankings.append(site.rankings(queries, ROWS, is_hybrid=True))
            print(f"{asked.name}: hybrid in {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
        found.append(Comparison(asked, *(SystemResult.measure(asked, each) for each in rankings)))
    return found[0], found[1]


def _selected(args: argparse.Namespace) -> dict[str, Callable[[], JudgedCollection]]:
    """Return the readers of the selected collections by name: of ``-own``, else of ``-collections``."""
    if args.own:
        return {folder.name: partial(read_trec, folder.resolve(), args.language) for folder in args.own}
    wanted = tuple(each.strip() for each in args.collections.split(","))
    names = [name for name in SOURCES if name.startswith(wanted)]
    if not names:
        raise SystemExit(f"-collections: none of {', '.join(SOURCES)} starts with {args.collections}")
    return {name: partial(load, name, args.folder.resolve()) for name in names}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench judged", description=__doc__)
    parser.add_argument(
        "-collections", default="", metavar="NAMES", help="prefixes of names, separated by commas (default: all)"
    )
    parser.add_argument(
        "-own", type=Path, action="append", default=[], metavar="FOLDER",
        help="measure a collection of one's own: documents.jsonl (id, title, text) or documents.trec, topics.txt and "
        "qrels.txt in the form of TREC; can be repeated",
    )  # fmt: skip
    parser.add_argument("-language", default="en", metavar="CODE", help="language of -own (en)")
    parser.add_argument("-half", choices=[*HALVES, BOTH], default=REPORTING, help="queries to ask (reporting)")
    parser.add_argument(
        "-limit",
        type=int,
        default=500,
        metavar="N",
        help="ask a sample of N queries of each table at most (500; 0: all)",
    )
    parser.add_argument(
        "-folder", type=Path, default=_CACHE, help="folder of the collections' files (.cache/collections)"
    )
    parser.add_argument("-keep", type=Path, metavar="FOLDER", help="keep crawls here, and use those that are there")
    parser.add_argument("-reindex", action="store_true", help="index kept crawls again")
    parser.add_argument(
        "-hybrid",
        action="store_true",
        help="search English collections by words and vectors, too (nutch2py[hybrid]); pages are encoded once",
    )
    parser.add_argument("-json", type=Path, metavar="FILE", help="write the results of each query to this file")
    parser.add_argument("-before", type=Path, metavar="FILE", help="compare with an earlier run, a file of -json")
    parser.add_argument(
        "-D", action="append", default=[], metavar="PROPERTY=VALUE", help="a property of the crawl; can be repeated"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
