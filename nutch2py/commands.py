"""The commands: names and options of Nutch 2, with GNU-style long forms beside them. No logic is here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from nutch2py.errors import UsageError

if TYPE_CHECKING:
    from nutch2py.conf import Configuration

Arguments = argparse.Namespace


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise UsageError(message)


class Command(NamedTuple):
    """A command: one line of help, the options it adds, and what it runs (returns the exit code)."""

    summary: str
    options: Callable[[argparse.ArgumentParser], object]
    run: Callable[[Arguments, Configuration], int]


def _batch(parser: argparse.ArgumentParser, reindex: bool = False) -> None:
    parser.add_argument("batch", nargs="?", metavar="batchId", help="the batch to work on")
    parser.add_argument("-all", "--all", action="store_true", help="every batch")
    if reindex:
        parser.add_argument("-reindex", "--reindex", action="store_true", help="every parsed page, whatever its batch")


def _batch_id(args: Arguments) -> str:
    chosen = [args.batch, "-all" if args.all else None, "-reindex" if getattr(args, "reindex", False) else None]
    named: list[str] = [each for each in chosen if each]
    if len(named) != 1:
        problem = f"BatchId already set to '{named[0]}'!" if named else "BatchId not set (or -all not specified)!"
        raise UsageError(problem)
    return named[0]


def _inject_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url_dir", help="a seed file, or a folder of them: one URL a line")


def _inject(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.inject import inject

    inject(conf, args.url_dir)
    return 0


def _generate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-topN", "--top-n", type=int, default=0, metavar="N", help="number of URLs at most")
    parser.add_argument("-noFilter", "--no-filter", action="store_true", help="do not filter URLs")
    parser.add_argument("-noNorm", "--no-norm", action="store_true", help="do not normalize URLs")
    parser.add_argument(
        "-adddays", "--add-days", type=float, default=0, metavar="numDays", help="as if it were so many days later"
    )
    parser.add_argument("-sitemap", "--sitemap", action="store_true", help="generate sitemaps, and only these")
    parser.add_argument(
        "-batchId", "--batch-id", default="", metavar="id", help="the batch's id (default: seconds-random)"
    )


def _generate(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.generate import generate

    _, count = generate(
        conf,
        top_n=args.top_n,
        add_days=args.add_days,
        filter_urls=not args.no_filter,
        normalize=not args.no_norm,
        sitemap=args.sitemap,
        batch_id=args.batch_id,
    )
    return 0 if count else 1


def _fetch_options(parser: argparse.ArgumentParser) -> None:
    _batch(parser)
    parser.add_argument(
        "-threads", "--threads", type=int, default=0, metavar="N", help="requests at once in a fetch task"
    )
    parser.add_argument("-resume", "--resume", action="store_true", help="leave out what an interrupted fetch has done")
    parser.add_argument("-numTasks", "--num-tasks", type=int, default=0, metavar="N", help="number of fetch tasks")
    parser.add_argument("-sitemap", "--sitemap", action="store_true", help="fetch sitemaps, and only these")
    parser.add_argument(
        "-stmDetect", "--stm-detect", action="store_true", help="note the sitemaps that robots.txt names"
    )
    parser.add_argument(
        "-warc", "--warc", default="", metavar="DIR", help="write requests and answers to WARC files in a folder, too"
    )


def _fetch(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.fetch import fetch

    fetch(
        conf,
        _batch_id(args),
        threads=args.threads,
        resume=args.resume,
        num_tasks=args.num_tasks,
        sitemap=args.sitemap,
        detect_sitemaps=args.stm_detect,
        warc=args.warc,
    )
    return 0


def _parse_options(parser: argparse.ArgumentParser) -> None:
    _batch(parser)
    parser.add_argument("-resume", "--resume", action="store_true", help="leave out what an interrupted parse has done")
    parser.add_argument("-force", "--force", action="store_true", help="with -resume: parse again what is parsed")
    parser.add_argument("-sitemap", "--sitemap", action="store_true", help="parse sitemaps, and only these")


def _parse(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.parse import parse

    parse(conf, _batch_id(args), resume=args.resume, force=args.force, sitemap=args.sitemap)
    return 0


def _updatedb(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.updatedb import updatedb

    updatedb(conf, _batch_id(args))
    return 0


def _index_options(parser: argparse.ArgumentParser) -> None:
    _batch(parser, reindex=True)


def _index(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.index import index

    index(conf, _batch_id(args))
    return 0


def _pagerank_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-iterations", "--iterations", type=int, metavar="N", help="number of iterations (pagerank.iterations, 20)"
    )
    parser.add_argument("-classic", "--classic", action="store_true", help="all links weigh alike")
    parser.add_argument("-linkrank", "--linkrank", action="store_true", help="as Nutch 1's LinkRank, by link.*")


def _pagerank(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.pagerank import pagerank

    if args.classic or args.linkrank:
        conf.set("pagerank.model", "linkrank" if args.linkrank else "classic")
    if args.iterations is not None:
        conf.set("link.analyze.num.iterations" if args.linkrank else "pagerank.iterations", args.iterations)
    pagerank(conf)
    return 0


def _solrindex_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("solr_url", metavar="solrUrl", help="the Solr collection, http://HOST:8983/solr/COLLECTION")
    _batch(parser, reindex=True)


def _solrindex(args: Arguments, conf: Configuration) -> int:
    conf.set("solr.server.url", args.solr_url)
    return _index(args, conf)


def _dedup_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-group", "--group", metavar="mode", help="compare pages of one host, of one domain, or all (none)"
    )
    parser.add_argument(
        "-compareOrder", "--compare-order", metavar="list", help="what decides: score,fetchTime,urlLength"
    )
    parser.add_argument("-simhash", "--simhash", action="store_true", help="also texts that are nearly the same")
    parser.add_argument("-threshold", "--threshold", metavar="bits", help="by how many bits SimHashes may differ (3)")


def _dedup(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.dedup import dedup

    given = {"group.mode": args.group, "compare.order": args.compare_order, "simhash.threshold": args.threshold}
    for name, value in given.items():
        if value is not None:
            conf.set(f"deduplication.{name}", value)
    dedup(conf, near=args.simhash)
    return 0


def _solrdedup_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("solr_url", nargs="?", metavar="solrUrl", help="the Solr collection (default: solr.server.url)")


def _solrdedup(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.solrdedup import solrdedup

    if args.solr_url:
        conf.set("solr.server.url", args.solr_url)
    if not conf.get_trimmed("solr.server.url"):
        print("Usage: SolrDeleteDuplicates <solr url>", file=sys.stderr)
        return 1
    solrdedup(conf)
    return 0


def _clean_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-noCommit", "--no-commit", action="store_true", help="send deletes, and leave the commit to others"
    )


def _clean(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.clean import clean

    clean(conf, commit=not args.no_commit)
    return 0


def _solrclean_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("unused", metavar="crawldb", help="not read; Nutch 2 takes a word here")
    parser.add_argument("solr_url", metavar="solrUrl", help="the Solr collection")
    _clean_options(parser)


def _solrclean(args: Arguments, conf: Configuration) -> int:
    conf.set("solr.server.url", args.solr_url)
    return _clean(args, conf)


def _search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help='words, "phrases", -excluded, field:value')
    parser.add_argument("-rows", "--rows", type=int, default=10, metavar="N", help="number of hits shown (10)")
    parser.add_argument("-start", "--start", type=int, default=0, metavar="N", help="number of hits passed over (0)")
    parser.add_argument("-json", "--json", action="store_true", help="print one JSON object, for programs")
    parser.add_argument("-solr", "--solr", action="store_true", help="ask Solr (search.backend=solr)")


def _search(args: Arguments, conf: Configuration) -> int:
    from nutch2py.indexer.search import render, search

    if args.solr:
        conf.set("search.backend", "solr")
    result = search(conf, " ".join(args.query), args.start, args.rows)
    print(result.to_json() if args.json else render(result, color=sys.stdout.isatty()))
    return 0 if result.total else 1


def _readdb_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-stats", "--stats", action="store_true", help="counts by status, scores, retries")
    what.add_argument("-url", "--url", metavar="url", help="print one row")
    what.add_argument("-dump", "--dump", metavar="out_dir", help="print every row into a folder")
    what.add_argument("-batches", "--batches", action="store_true", help="list the batches that are open")
    parser.add_argument("-sort", "--sort", action="store_true", help="with -stats: counts by host, too")
    parser.add_argument("-regex", "--regex", default="", metavar="regex", help="with -dump: only URLs that match")
    for name in ("content", "headers", "links", "text"):
        parser.add_argument(f"-{name}", f"--{name}", action="store_true", help=f"print the {name}, too")


def _readdb(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs import readdb

    shown = {name: getattr(args, name) for name in ("content", "headers", "links", "text")}
    if args.batches:
        return readdb.print_batches(conf)
    if args.stats:
        return readdb.print_stats(conf, args.sort)
    if args.url:
        return readdb.print_page(conf, args.url, shown)
    return readdb.dump(conf, Path(args.dump), args.regex, shown)


def _hostinject_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host_dir", help="a file, or a folder of them: host or URL, tab, name=value …")


def _hostinject(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.hostdb import hostinject

    hostinject(conf, args.host_dir)
    return 0


def _updatehostdb_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-linkDb", "--link-db", action="store_true", help="count the links between hosts, too")


def _updatehostdb(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.hostdb import updatehostdb

    updatehostdb(conf, args.link_db)
    return 0


def _readhostdb_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", help="only this host")


def _readhostdb(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.hostdb import readhostdb

    return readhostdb(conf, args.key)


def _file_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="JSON lines, compressed with gzip when the name ends in .gz")


def _exporttable(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tables import export_to

    return export_to(conf, Path(args.file))


def _importtable(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tables import import_from

    return import_from(conf, Path(args.file))


def _createtable_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-splits", "--splits", type=int, default=1, metavar="N", help="number of regions (HBase)")
    parser.add_argument("-seeds", "--seeds", metavar="url_dir", help="cut the row keys of these seeds into regions")
    parser.add_argument("-sample", "--sample", metavar="store", help="cut the crawl's table in this store into regions")
    parser.add_argument("-keys", "--keys", metavar="file", help="begin regions at these row keys or URLs, one a line")


def _createtable(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tables import create_table

    return create_table(conf, args.splits, args.seeds, args.sample, args.keys)


def _copytable_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", help="the store to copy to: embedded:FOLDER or hbase://HOST:PORT")


def _copytable(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tables import copy_to

    return copy_to(conf, args.target)


def _parsechecker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url")
    parser.add_argument("-dumpText", "--dump-text", action="store_true", help="print the text, too")
    parser.add_argument("-forceAs", "--force-as", default=None, metavar="mimeType", help="parse as this media type")


def _parsechecker(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.checkers import parse_checker

    return parse_checker(conf, args.url, args.dump_text, args.force_as)


def _indexchecker(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.checkers import index_checker

    return index_checker(conf, args.url)


def _filterchecker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-filterName", "--filter-name", default=None, metavar="filterName", help="only this filter")
    parser.add_argument("-allCombined", "--all-combined", action="store_true", help="all filters (default)")
    parser.add_argument("-stdin", "--stdin", action="store_true", help="read URLs from standard input (default)")
    parser.add_argument("urls", nargs="*", help="URLs to check")


def _filterchecker(args: Arguments, conf: Configuration) -> int:
    from nutch2py.url.checker import filter_lines

    return _print_all(filter_lines(conf, args.urls or sys.stdin, args.filter_name))


def _normalizerchecker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-normalizer", "--normalizer", default=None, metavar="name", help="only this normalizer")
    parser.add_argument("-scope", "--scope", default="default", metavar="scope", help="scope of the rules (default)")
    parser.add_argument("-stdin", "--stdin", action="store_true", help="read URLs from standard input (default)")
    parser.add_argument("urls", nargs="*", help="URLs to check")


def _normalizerchecker(args: Arguments, conf: Configuration) -> int:
    from nutch2py.url.checker import normalize_lines

    return _print_all(normalize_lines(conf, args.urls or sys.stdin, args.scope, args.normalizer))


def _print_all(lines: Iterable[str]) -> int:
    for line in lines:
        print(line, flush=True)
    return 0


def _robotsparser_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robots_file", help="a robots.txt file, or its URL")
    parser.add_argument("url_file", help="a file of URLs, one a line; - for standard input")
    parser.add_argument("agents", nargs="*", help="agent names, in order (default: http.agent.name)")


def _robotsparser(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.checkers import robots_checker

    return robots_checker(conf, args.robots_file, args.url_file, args.agents)


def _package_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, help="where to write it (default: mapreduce.package)")


def _package(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.package import package

    return package(conf, args.file)


def _showproperties(_: Arguments, conf: Configuration) -> int:
    for name in sorted(conf):
        print(f"{name}={conf.get(name)}")
    return 0


def _none(_: argparse.ArgumentParser) -> None:
    return


COMMANDS: dict[str, Command] = {
    "inject": Command("inject new URLs into the table", _inject_options, _inject),
    "generate": Command("generate a batch of URLs to fetch", _generate_options, _generate),
    "fetch": Command("fetch the URLs of a batch", _fetch_options, _fetch),
    "parse": Command("parse the pages of a batch", _parse_options, _parse),
    "updatedb": Command("update the table from a batch", _batch, _updatedb),
    "index": Command("index the pages of a batch", _index_options, _index),
    "pagerank": Command("compute the PageRank of every page", _pagerank_options, _pagerank),
    "solrindex": Command("index the pages of a batch in Solr (old name)", _solrindex_options, _solrindex),
    "dedup": Command("mark pages that are equal to a better one", _dedup_options, _dedup),
    "solrdedup": Command("delete duplicates from Solr", _solrdedup_options, _solrdedup),
    "clean": Command("delete what is gone, redirected or duplicate from the index", _clean_options, _clean),
    "solrclean": Command("clean an index in Solr (old name)", _solrclean_options, _solrclean),
    "search": Command("search the embedded index", _search_options, _search),
    "readdb": Command("read or dump the table", _readdb_options, _readdb),
    "hostinject": Command("put settings of hosts into the host table", _hostinject_options, _hostinject),
    "updatehostdb": Command("count pages and links by host", _updatehostdb_options, _updatehostdb),
    "readhostdb": Command("print the host table", _readhostdb_options, _readhostdb),
    "createtable": Command("make the table, on HBase in several regions", _createtable_options, _createtable),
    "copytable": Command("copy the table to another store", _copytable_options, _copytable),
    "exporttable": Command("write the table's cells to a file", _file_options, _exporttable),
    "importtable": Command("read cells from a file into the table", _file_options, _importtable),
    "parsechecker": Command(
        "fetch and parse one URL, and print what comes of it", _parsechecker_options, _parsechecker
    ),
    "indexchecker": Command("make the document of one URL", lambda p: p.add_argument("url"), _indexchecker),
    "filterchecker": Command("say which URLs the filters accept", _filterchecker_options, _filterchecker),
    "normalizerchecker": Command("print URLs normalized", _normalizerchecker_options, _normalizerchecker),
    "robotsparser": Command("say which URLs a robots.txt allows", _robotsparser_options, _robotsparser),
    "package": Command("pack the program for the nodes of a cluster", _package_options, _package),
    "showproperties": Command("print the configuration in force", _none, _showproperties),
}


def command_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    command = COMMANDS[name]
    parser = _Parser(prog=f"nutch2py {name}", description=command.summary, allow_abbrev=False)
    command.options(parser)
    parser.add_argument("-crawlId", "--crawl-id", default=None, metavar="id", help="the crawl, which names the tables")
    shared = parser.add_argument_group("everywhere")
    shared.add_argument("-D", action="append", default=[], metavar="name=value", help="set a property")
    shared.add_argument("--conf", metavar="DIR", help="configuration folder laid over the defaults (NUTCH_CONF_DIR)")
    runners = ("inline", "local", "hadoop", "spark")
    shared.add_argument("-r", "--runner", metavar="RUNNER", choices=runners, help="inline, local, hadoop or spark")
    shared.add_argument("--debug", action="store_true", help="show the traceback of a failure")
    return parser
