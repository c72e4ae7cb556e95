"""Looking at tables, making them, and moving them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command, non_negative_int, open_printing_crawl
from nutch2py.errors import UsageError

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration
    from nutch2py.jobs.row_output.row_renderer import OutputFormat


def _readdb_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-stats", "--stats", action="store_true", help="counts by status, scores, retries")
    what.add_argument("-url", "--url", metavar="url", help="print one row, by its URL or its key")
    what.add_argument("-dump", "--dump", metavar="out_dir", help="print every row into a folder")
    what.add_argument(
        "-topN", "--top-n", nargs="+", metavar=("N", "min"), help="the rows of the highest scores, of min or above"
    )
    what.add_argument("-batches", "--batches", action="store_true", help="list the batches that are open")
    what.add_argument("-locks", "--locks", action="store_true", help="list the jobs that hold a lock on the crawl")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("-json", "--json", action="store_true", help="JSON, an object a line")
    form.add_argument("-csv", "--csv", action="store_true", help="with -stats, -url, -dump and -topN: CSV")
    form.add_argument(
        "-format", "--format", choices=("normal", "json", "csv"), default="normal", help="the same by Nutch 1's name"
    )
    parser.add_argument("-sort", "--sort", action="store_true", help="with -stats: counts by host, too")
    parser.add_argument("-exact", "--exact", action="store_true", help="with -stats: read every row")
    parser.add_argument(
        "-last", "--last", action="store_true", help="with -stats: what was counted last, and when; no row is read"
    )
    parser.add_argument(
        "-by",
        "--by",
        nargs="+",
        choices=("host", "domain", "depth", "next", "error"),
        default=[],
        help="with -stats: count rows by these, too",
    )
    parser.add_argument(
        "-most",
        "--most",
        type=non_negative_int,
        default=100,
        metavar="N",
        help="with -by: the N greatest of each (100)",
    )
    parser.add_argument(
        "-quantiles", "--quantiles", action="store_true", help="with -stats: of scores, intervals, times and depth"
    )
    parser.add_argument("-regex", "--regex", default="", metavar="regex", help="with -dump: only URLs that match")
    parser.add_argument("-status", "--status", default="", metavar="name", help="with -dump: only rows of this status")
    parser.add_argument(
        "-retry",
        "--retry",
        type=non_negative_int,
        default=0,
        metavar="N",
        help="with -dump: that failed N times or more",
    )
    parser.add_argument(
        "-sample", "--sample", type=float, default=1.0, metavar="part", help="with -dump: about this part of the rows"
    )
    for name in ("content", "headers", "links", "text"):
        parser.add_argument(f"-{name}", f"--{name}", action="store_true", help=f"print the {name}, too")
    parser.add_argument("-markdown", "--markdown", action="store_true", help="print the main text as Markdown, too")


def _readdb(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.readdb import readdb_commands
    from nutch2py.jobs.readdb.stats_breakdown import BreakdownParameters
    from nutch2py.support.clock import now_ms

    shown = {name: getattr(args, name) for name in ("content", "headers", "links", "text")}
    form: OutputFormat = "json" if args.json or args.format == "json" else "text"
    if args.csv or args.format == "csv":
        form = "csv"
    if form == "csv":
        if args.batches or args.locks:
            raise UsageError("-csv goes with -stats, -url, -dump and -topN: -batches and -locks have -json")
        if args.markdown or any(shown.values()):
            raise UsageError("a line of CSV has no content, headers, links or text: write -json")
    _validate_option_combinations(args)
    if args.batches:
        return readdb_commands.print_batches(conf, form == "json")
    if args.locks:
        from nutch2py.jobs.monitoring.lock_report import print_locks

        return print_locks(conf, form == "json")
    if args.stats:
        by = list(dict.fromkeys(args.by))
        if args.last and (args.exact or args.sort or by or args.quantiles):
            raise UsageError("-last reads no row: leave out -exact, -sort, -by and -quantiles")
        most = max(1, args.most)
        asked = BreakdownParameters(by=by, most=most, quantiles=args.quantiles, now=now_ms(), sort=args.sort)
        return readdb_commands.print_stats(conf, asked, args.exact, form, args.last)
    if args.top_n is not None:
        return readdb_commands.print_top_pages(conf, *_parse_top_n(args.top_n), form)
    if args.url is not None:
        return readdb_commands.print_page(conf, args.url, shown, args.markdown, form)
    from nutch2py.jobs.readdb.readdb_dump import DumpParameters, dump_table

    status = f"status_{args.status.removeprefix('status_')}" if args.status not in ("", "null") else args.status
    parameters = DumpParameters(
        regex=args.regex or ".*", output_format=form, status=status, retry=args.retry, sample=args.sample,
        markdown=args.markdown, sections=shown,
    )  # fmt: skip
    return dump_table(conf, Path(args.dump), parameters)


def _validate_option_combinations(args: Arguments) -> None:
    """Refuse options that would do nothing, as what is printed is then not what was asked for."""
    counting, dumping = ("sort", "exact", "last", "by", "quantiles"), ("regex", "status", "retry")
    for what, names in (("stats", counting), ("dump", dumping)):
        given = [name for name in names if getattr(args, name)]
        if what == "dump" and args.sample < 1.0:
            given.append("sample")
        if given and not getattr(args, what):
            raise UsageError(f"-{given[0]} goes with -{what}: leave it out")


def _parse_top_n(words: list[str]) -> tuple[int, float]:
    try:
        count, least = int(words[0]), float(words[1]) if len(words) > 1 else -math.inf
    except ValueError:
        count, least = 0, math.nan
    if count < 1 or math.isnan(least) or len(words) > 2:
        raise UsageError(f"-topN {' '.join(words)}: write a number of rows, and perhaps the least score")
    return count, least


def _hostinject_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host_dir", help="a file, or a folder of them: host or URL, tab, name=value …")


def _hostinject(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).hostinject(args.host_dir)
    return 0


def _updatehostdb_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-linkDb", "--link-db", action="store_true", help="count the links between hosts, too")


def _updatehostdb(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).updatehostdb(links=args.link_db)
    return 0


def _readhostdb_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", help="only this host")


def _readhostdb(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.hostdb.hostdb_jobs import readhostdb

    return readhostdb(conf, args.key)


def _file_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="JSON lines, compressed with gzip when the name ends in .gz")


def _exporttable_options(parser: argparse.ArgumentParser) -> None:
    _file_options(parser)
    parser.add_argument("-salvage", "--salvage", action="store_true", help="of a damaged table, what can be read")


def _exporttable(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).export(args.file, salvage=args.salvage)
    return 0


def _checktable(_: Arguments, conf: Configuration) -> int:
    from nutch2py.errors import StoreError

    return StoreError.exit_code if open_printing_crawl(conf).check() else 0


def _dueindex_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-check", "--check", action="store_true", help="compare it with the rows, and change nothing")
    what.add_argument("-drop", "--drop", action="store_true", help="throw it away")


def _dueindex(args: Arguments, conf: Configuration) -> int:
    from nutch2py.errors import StoreError

    return StoreError.exit_code if open_printing_crawl(conf).due_index(check=args.check, drop=args.drop) else 0


def _importtable(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).import_(args.file)
    return 0


def _createtable_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-splits", "--splits", type=non_negative_int, default=1, metavar="N", help="number of regions (HBase)"
    )
    parser.add_argument("-seeds", "--seeds", metavar="url_dir", help="cut the row keys of these seeds into regions")
    parser.add_argument("-sample", "--sample", metavar="store", help="cut the crawl's table in this store into regions")
    parser.add_argument("-keys", "--keys", metavar="file", help="begin regions at these row keys or URLs, one a line")


def _createtable(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.table_admin.table_maintenance import create_table

    return create_table(conf, args.splits, args.seeds, args.sample, args.keys)


def _copytable_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", help="the store to copy to: embedded:FOLDER or hbase://HOST:PORT")
    parser.add_argument("-filter", "--filter", action="store_true", help="only rows whose URL the filters accept")
    parser.add_argument("-normalize", "--normalize", action="store_true", help="to the row of the normalized URL")


def _copytable(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).copy_to(args.target, filter_urls=args.filter, normalize=args.normalize)
    return 0


def _mergedb_options(parser: argparse.ArgumentParser) -> None:
    _copytable_options(parser)
    parser.add_argument("sources", nargs="*", help="stores to copy from, as target is named (default: the crawl's own)")


def _mergedb(args: Arguments, conf: Configuration) -> int:
    for source in args.sources or [conf.get_trimmed("storage.data.store")]:
        conf.set("storage.data.store", source)
        _copytable(args, conf)
    return 0


def _unlock_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", default="", help="the lock, as readdb -locks shows it")
    parser.add_argument("-all", "--all", action="store_true", help="every lock whose job is dead")
    parser.add_argument("-force", "--force", action="store_true", help="also from a job that lives")


def _unlock(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.monitoring.lock_report import unlock

    unlock(conf, args.id, all_locks=args.all, force=args.force)
    return 0


def _jobs_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-topN", "--top-n", type=non_negative_int, default=20, metavar="N", help="the newest N (20)")
    parser.add_argument("-id", "--id", default="", metavar="id", help="all that is known of one job")
    parser.add_argument("-json", "--json", action="store_true", help="one JSON object a line")


def _jobs(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.monitoring.job_report import print_job, print_jobs

    return print_job(conf, args.id, args.json) if args.id else print_jobs(conf, args.top_n, args.json)


def _readlinkdb_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-url", "--url", metavar="url", help="print who links to a page, with the anchors")
    what.add_argument(
        "-topN", "--top-n", type=non_negative_int, metavar="N", help="print the pages with the most inlinks"
    )
    parser.add_argument("-json", "--json", action="store_true", help="one JSON object a line")


def _readlinkdb(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.link_db_reader import print_inlinks, print_most_linked

    if args.url is not None:
        return print_inlinks(conf, args.url, args.json)
    return print_most_linked(conf, max(1, args.top_n), args.json)


def _nodedumper_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    for value, told in (
        ("inlinks", "the most inlinks"),
        ("outlinks", "the most outlinks"),
        ("scores", "the highest scores"),
    ):
        what.add_argument(f"-{value}", f"--{value}", dest="value", action="store_const", const=value, help=told)
    parser.add_argument(
        "-topn", "--topn", "-topN", type=non_negative_int, default=100, metavar="N", help="how many (100)"
    )
    parser.add_argument(
        "-group",
        "--group",
        nargs=2,
        metavar=("host|domain", "sum|max"),
        help="by host or domain, added up or the greatest",
    )
    parser.add_argument("-output", "--output", metavar="FILE", help="write the lines to a file")


def _nodedumper(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.node_dumper import NodeDumperParameters, print_nodes

    group, add = args.group or ("", "sum")
    if group not in ("", "host", "domain") or add not in ("sum", "max"):
        raise UsageError(f"-group {group} {add}: write host or domain, then sum or max")
    asked = NodeDumperParameters(value=args.value, top=max(1, args.topn), group=group, aggregate=add)
    return print_nodes(conf, asked, Path(args.output) if args.output else None)


def _webgraph_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    parser.add_argument(
        "-format", "--format", choices=("graphml", "edges"), default="graphml", help="GraphML, or lines of edges"
    )
    parser.add_argument("-hosts", "--hosts", action="store_true", help="links between hosts, with their number")


def _webgraph(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.webgraph import export_graph

    export_graph(conf, Path(args.output), args.format, between_hosts=args.hosts)
    return 0


def _count_options(*places: str) -> Callable[[argparse.ArgumentParser], None]:
    def options(parser: argparse.ArgumentParser) -> None:
        if places:
            parser.add_argument("place", choices=places, help="what rows are counted by")
        parser.set_defaults(place="")
        parser.add_argument(
            "-topN", "--top-n", type=non_negative_int, default=0, metavar="N", help="only so many, the greatest first"
        )

    return options


def _count(title: str, kind: str) -> Callable[[Arguments, Configuration], int]:
    def run(args: Arguments, conf: Configuration) -> int:
        from nutch2py.jobs.tools.domain_stats import print_counts

        return print_counts(conf, title, kind, args.place, args.top_n)

    return run


COMMANDS: dict[str, Command] = {
    "readdb": Command("read or dump the table", _readdb_options, _readdb),
    "hostinject": Command("put settings of hosts into the host table", _hostinject_options, _hostinject),
    "updatehostdb": Command("count pages and links by host", _updatehostdb_options, _updatehostdb),
    "readhostdb": Command("print the host table", _readhostdb_options, _readhostdb),
    "readlinkdb": Command("print who links to a page, or what is linked to most", _readlinkdb_options, _readlinkdb),
    "domainstats": Command(
        "count fetched pages by host, domain, suffix or tld",
        _count_options("host", "domain", "suffix", "tld"),
        _count("DomainStatistics", "domains"),
    ),
    "protocolstats": Command(
        "count pages by protocol status", _count_options(), _count("ProtocolStatistics", "protocol")
    ),
    "crawlcomplete": Command(
        "count by host or domain what is fetched and what is not",
        _count_options("host", "domain"),
        _count("CrawlCompletionStats", "completion"),
    ),
    "createtable": Command("make the table, on HBase in several regions", _createtable_options, _createtable),
    "nodedumper": Command("print what has most inlinks, outlinks or score", _nodedumper_options, _nodedumper),
    "webgraph": Command("write the links between pages or hosts to a file", _webgraph_options, _webgraph),
    "mergedb": Command("copy tables of other stores into one", _mergedb_options, _mergedb),
    "copytable": Command("copy the table to another store", _copytable_options, _copytable),
    "exporttable": Command("write the table's cells to a file", _exporttable_options, _exporttable),
    "importtable": Command("read cells from a file into the table", _file_options, _importtable),
    "dueindex": Command("make the index of what is due, with which generate is fast", _dueindex_options, _dueindex),
    "jobs": Command("print the job log: which jobs ran or run, and how they ended", _jobs_options, _jobs),
    "unlock": Command("free the lock of a job that died", _unlock_options, _unlock),
    "checktable": Command("look for damage in the crawl's tables", lambda _: None, _checktable),
}
