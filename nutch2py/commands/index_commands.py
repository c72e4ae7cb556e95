"""Commands for ranking, indexing and searching."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nutch2py.commands.command import (
    Arguments,
    Command,
    add_batch_options,
    non_negative_int,
    open_printing_crawl,
    positive_days,
    positive_int,
    property_number,
    selected_batch,
)

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration


def _index_options(parser: argparse.ArgumentParser) -> None:
    add_batch_options(parser, reindex=True)
    _force_option(parser)


def _force_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-force", "--force", action="store_true", help="delete documents without a limit (indexer.delete.max.share)"
    )


def _index(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).index(selected_batch(args), force=args.force)
    return 0


def _pagerank_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-iterations",
        "--iterations",
        type=non_negative_int,
        metavar="N",
        help="number of iterations (pagerank.iterations, 20); 0: every page keeps the initial rank",
    )
    parser.add_argument("-classic", "--classic", action="store_true", help="give all links the same weight")
    parser.add_argument("-linkrank", "--linkrank", action="store_true", help="like Nutch 1's LinkRank, by link.*")


def _pagerank(args: Arguments, conf: Configuration) -> int:
    model: Literal["linkrank", "classic"] | None = "linkrank" if args.linkrank else "classic" if args.classic else None
    open_printing_crawl(conf).pagerank(model=model, iterations=args.iterations)
    return 0


def _solrindex_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("solr_url", metavar="solrUrl", help="the Solr collection, http://HOST:8983/solr/COLLECTION")
    _index_options(parser)


def _solrindex(args: Arguments, conf: Configuration) -> int:
    _use_solr(conf, args.solr_url)
    return _index(args, conf)


def _elasticindex_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cluster", metavar="cluster", help="ignored; elastic.host is the address (Nutch 2 takes the cluster's name)"
    )
    _index_options(parser)


def _elasticindex(args: Arguments, conf: Configuration) -> int:
    conf.set("plugin.includes", f"{conf.get_trimmed('plugin.includes')}|indexer-elastic")
    return _index(args, conf)


def _use_solr(conf: Configuration, address: str) -> None:
    """Send to Solr, in addition to the writers in ``plugin.includes``."""
    conf.set("solr.server.url", address)
    conf.set("plugin.includes", f"{conf.get_trimmed('plugin.includes')}|indexer-solr")


def _dedup_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-group", "--group", metavar="mode", help="compare the pages of each host, of each domain, or all (none)"
    )
    parser.add_argument(
        "-compareOrder", "--compare-order", metavar="list", help="order of criteria: score,fetchTime,urlLength"
    )
    parser.add_argument("-simhash", "--simhash", action="store_true", help="also near-duplicate texts")
    parser.add_argument(
        "-threshold",
        "--threshold",
        type=property_number("deduplication.simhash.threshold"),
        metavar="bits",
        help="bits in which SimHashes may differ (3); 0: equal SimHashes only",
    )


def _dedup(args: Arguments, conf: Configuration) -> int:
    order = None if args.compare_order is None else args.compare_order.split(",")
    open_printing_crawl(conf).dedup(group=args.group, order=order, near=args.simhash, threshold=args.threshold)
    return 0


def _solrdedup_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("solr_url", nargs="?", metavar="solrUrl", help="the Solr collection (default: solr.server.url)")


def _solrdedup(args: Arguments, conf: Configuration) -> int:
    if args.solr_url:
        conf.set("solr.server.url", args.solr_url)
    if not conf.get_trimmed("solr.server.url"):
        print("Usage: SolrDeleteDuplicates <solr url>", file=sys.stderr)
        return 1
    open_printing_crawl(conf).solrdedup()
    return 0


def _clean_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-noCommit", "--no-commit", action="store_true", help="send deletes without a commit")
    _force_option(parser)


def _clean(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).clean(commit=not args.no_commit, force=args.force)
    return 0


def _solrclean_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("unused", metavar="crawldb", help="ignored; an argument of Nutch 2")
    parser.add_argument("solr_url", metavar="solrUrl", help="the Solr collection")
    _clean_options(parser)


def _solrclean(args: Arguments, conf: Configuration) -> int:
    _use_solr(conf, args.solr_url)
    return _clean(args, conf)


def _search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help='words, "phrases", -excluded, field:value')
    parser.add_argument(
        "-rows",
        "--rows",
        type=non_negative_int,
        default=10,
        metavar="N",
        help="number of hits shown (10); 0: only their count",
    )
    parser.add_argument(
        "-start", "--start", type=non_negative_int, default=0, metavar="N", help="number of hits to skip (0); 0: none"
    )
    parser.add_argument("-json", "--json", action="store_true", help="print one JSON object, for programs")
    parser.add_argument("-solr", "--solr", action="store_true", help="search in Solr (search.backend=solr)")
    parser.add_argument(
        "-facets", "--facets", action="store_true", help="count hits by site, folder, type, language, date"
    )
    parser.add_argument("-explain", "--explain", action="store_true", help="explain the score of each hit")


def _search(args: Arguments, conf: Configuration) -> int:
    from nutch2py.search.search_output import search_with_details

    if args.solr:
        conf.set("search.backend", "solr")
    output = search_with_details(conf, " ".join(args.query), args.start, args.rows, args.facets, args.explain)
    print(output.to_json() if args.json else output.format_text(color=sys.stdout.isatty()))
    return 0 if output.result.total else 1


def _evaluate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "queries", help="a file of queries, one per line; with -qrels or -run: id, tab and query, or TREC topics"
    )
    parser.add_argument(
        "-judgements", "--judgements", metavar="FILE", help="lines of query, URL, R and A, tab-separated"
    )
    parser.add_argument(
        "-qrels", "--qrels", metavar="FILE", help="TREC's lines of query id, iteration, document, grade"
    )
    parser.add_argument("-run", "--run", metavar="FILE", help="write the results as a TREC run file")
    parser.add_argument("-tag", "--tag", default="nutch2py", metavar="NAME", help="name of the run (nutch2py)")
    parser.add_argument(
        "-docno",
        "--docno",
        default="",
        metavar="REGEX",
        help="its first group in a URL is the document's id in -qrels and -run (default: the URL)",
    )
    parser.add_argument(
        "-n", "--results", type=positive_int, default=20, metavar="N", help="number of results to evaluate (20)"
    )
    parser.add_argument("-json", "--json", action="store_true", help="print one JSON object, for programs")
    parser.add_argument("-unjudged", "--unjudged", metavar="FILE", help="append results without a judgement to a file")


def _evaluate(args: Arguments, conf: Configuration) -> int:
    from nutch2py.errors import UsageError
    from nutch2py.search.evaluation.evaluator import TrecFiles, run_evaluation, run_trec_evaluation

    if args.qrels or args.run:
        if args.judgements or args.unjudged:
            raise UsageError("evaluate: -judgements and -unjudged cannot be combined with -qrels and -run")
        qrels, run = (Path(each) if each else None for each in (args.qrels, args.run))
        files = TrecFiles(Path(args.queries), qrels, run, args.tag, args.docno)
        return run_trec_evaluation(conf, files, args.results, args.json)
    if not args.judgements:
        raise UsageError("evaluate: name the judgements with -judgements FILE or -qrels FILE")
    unjudged = Path(args.unjudged) if args.unjudged else None
    return run_evaluation(conf, Path(args.queries), Path(args.judgements), args.results, args.json, unjudged)


def _searchlog_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-days", "--days", type=positive_days, default=30.0, metavar="N", help="days before now that are counted (30)"
    )
    parser.add_argument(
        "-top", "--top", type=positive_int, default=20, metavar="N", help="number of queries per list (20)"
    )
    parser.add_argument(
        "-source", "--source", choices=("page", "api"), help="only searches of the search page, or of the search API"
    )
    parser.add_argument(
        "-learn",
        "--learn",
        action="store_true",
        help="learn click factors of pages, for index-clicks",
    )
    parser.add_argument("-json", "--json", action="store_true", help="print one JSON object, for programs")


def _searchlog(args: Arguments, conf: Configuration) -> int:
    from nutch2py.search.search_log.click_model import learn_and_store
    from nutch2py.search.search_log.search_log_report import print_search_quality

    if args.learn:
        return learn_and_store(conf, args.days, args.source or "page")
    return print_search_quality(conf, args.days, args.top, args.source, args.json)


COMMANDS: dict[str, Command] = {
    "pagerank": Command("compute the PageRank of every page", _pagerank_options, _pagerank),
    "index": Command("index the pages of a batch", _index_options, _index),
    "solrindex": Command("index the pages of a batch in Solr (old name)", _solrindex_options, _solrindex),
    "elasticindex": Command(
        "index the pages of a batch in Elasticsearch or OpenSearch (old name)", _elasticindex_options, _elasticindex
    ),
    "dedup": Command("mark duplicates of a better page", _dedup_options, _dedup),
    "solrdedup": Command("delete duplicates from Solr", _solrdedup_options, _solrdedup),
    "clean": Command("delete gone, redirected and duplicate pages from the index", _clean_options, _clean),
    "solrclean": Command("clean an index in Solr (old name)", _solrclean_options, _solrclean),
    "search": Command("search the embedded index", _search_options, _search),
    "searchlog": Command("print statistics of logged searches and clicks", _searchlog_options, _searchlog),
    "evaluate": Command("evaluate search results by judgements", _evaluate_options, _evaluate),
}
