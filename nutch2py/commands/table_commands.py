"""Commands that read, create and move tables."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command, non_negative_int, open_printing_crawl, positive_int, share
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
        "-topN", "--top-n", nargs="+", metavar=("N", "min"), help="the N rows with the highest scores, of min or more"
    )
    what.add_argument("-batches", "--batches", action="store_true", help="list the open batches")
    what.add_argument("-locks", "--locks", action="store_true", help="list the jobs that hold a lock on the crawl")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("-json", "--json", action="store_true", help="JSON, one object per line")
    form.add_argument("-csv", "--csv", action="store_true", help="with -stats, -url, -dump and -topN: CSV")
    form.add_argument(
        "-format", "--format", choices=("normal", "json", "csv"), default="normal", help="output format (as in Nutch 1)"
    )
    parser.add_argument("-sort", "--sort", action="store_true", help="with -stats: counts by host, too")
    parser.add_argument("-exact", "--exact", action="store_true", help="with -stats: read every row")
    parser.add_argument(
        "-last", "--last", action="store_true", help="with -stats: the last stored statistics, without reading rows"
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
        type=positive_int,
        default=100,
        metavar="N",
        help="with -by: the N largest values of each (100)",
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
        help="with -dump: only rows that failed at least N times; 0: all",
    )
    parser.add_argument(
        "-sample",
        "--sample",
        type=share,
        default=1.0,
        metavar="part",
        help="with -dump: approximate share of the rows; 0: none",
    )
    for name in ("content", "headers", "links", "text"):
        parser.add_argument(f"-{name}", f"--{name}", action="store_true", help=f"print the {name}, too")
    parser.add_argument("-markdown", "--markdown", action="store_true", help="print the main text as Markdown, too")
    parser.add_argument(
        "-unicode", "--unicode", action="store_true", help="with -stats, -url and -topN: hosts of the text in Unicode"
    )


def _readdb(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.readdb import readdb_commands
    from nutch2py.jobs.readdb.stats_breakdown import BreakdownParameters
    from nutch2py.support.clock import now_ms

    sections = {name: getattr(args, name) for name in ("content", "headers", "links", "text")}
    form: OutputFormat = "json" if args.json or args.format == "json" else "text"
    if args.csv or args.format == "csv":
        form = "csv"
    if form == "csv":
        if args.batches or args.locks:
            raise UsageError("-csv goes with -stats, -url, -dump and -topN: -batches and -locks have -json")
        if args.markdown or any(sections.values()):
            raise UsageError("CSV has no content, headers, links or text: use -json")
    _validate_option_combinations(args)
    if args.unicode and (form != "text" or args.batches or args.locks or args.dump is not None):
        raise UsageError("-unicode goes with the text of -stats, -url and -topN: other output is for programs")
    if args.batches:
        return readdb_commands.print_batches(conf, form == "json")
    if args.locks:
        from nutch2py.jobs.monitoring.lock_report import print_locks

        return print_locks(conf, form == "json")
    if args.stats:
        by = list(dict.fromkeys(args.by))
        if args.last and (args.exact or args.sort or by or args.quantiles):
            raise UsageError("-last reads no row: leave out -exact, -sort, -by and -quantiles")
        parameters = BreakdownParameters(by=by, most=args.most, quantiles=args.quantiles, now=now_ms(), sort=args.sort)
        return readdb_commands.print_stats(conf, parameters, args.exact, form, args.last, args.unicode)
    if args.top_n is not None:
        return readdb_commands.print_top_pages(conf, *_parse_top_n(args.top_n), form, args.unicode)
    if args.url is not None:
        return readdb_commands.print_page(conf, args.url, sections, args.markdown, form, args.unicode)
    from nutch2py.jobs.readdb.readdb_dump import DumpParameters, dump_table

    status = f"status_{args.status.removeprefix('status_')}" if args.status not in ("", "null") else args.status
    dump_parameters = DumpParameters(
        regex=args.regex or ".*", output_format=form, status=status, retry=args.retry, sample=args.sample,
        markdown=args.markdown, sections=sections,
    )  # fmt: skip
    return dump_table(conf, Path(args.dump), dump_parameters)


def _validate_option_combinations(args: Arguments) -> None:
    """Reject options that would have no effect."""
    counting, dumping = ("sort", "exact", "last", "by", "quantiles"), ("regex", "status", "retry")
    for mode, names in (("stats", counting), ("dump", dumping)):
        given = [name for name in names if getattr(args, name)]
        if mode == "dump" and args.sample < 1.0:
            given.append("sample")
        if given and not getattr(args, mode):
            raise UsageError(f"-{given[0]} requires -{mode}: remove it")


def _parse_top_n(words: list[str]) -> tuple[int, float]:
    try:
        count, min_score = int(words[0]), float(words[1]) if len(words) > 1 else -math.inf
    except ValueError:
        count, min_score = 0, math.nan
    if count < 1 or math.isnan(min_score) or len(words) > 2:
        raise UsageError(f"-topN {' '.join(words)}: give a number of rows and optionally a minimum score")
    return count, min_score


def _hostinject_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host_dir", help="a file, or a folder of files: host or URL, tab, name=value …")


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
    parser.add_argument("-salvage", "--salvage", action="store_true", help="export what is readable of a damaged table")


def _exporttable(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).export(args.file, salvage=args.salvage)
    return 0


def _export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for the files, new or empty")
    formats = ("jsonl", "csv", "parquet", "markdown", "warc", "cdxj", "wacz")
    parser.add_argument("-format", "--format", choices=formats, default="jsonl", help="format of the files (jsonl)")
    parser.add_argument(
        "-fields", "--fields", default="", metavar="names", help="fields, separated by commas: names, default, all"
    )
    parser.add_argument(
        "-where", "--where", action="append", default=[], metavar="condition",
        help="only pages that meet it, such as 'lang=de', 'score>0.5', 'url~/docs/'; may be given several times",
    )  # fmt: skip
    parser.add_argument("-host", "--host", default="", metavar="name", help="only pages of this host")
    parser.add_argument(
        "-changed-since", "--changed-since", default="", metavar="time",
        help="only pages fetched at or after this time, or since the export in this folder",
    )  # fmt: skip
    parser.add_argument(
        "-all", "--all", action="store_true", help="rows of every status, not only pages that were fetched"
    )
    parser.add_argument(
        "-chunk-tokens", "--chunk-tokens", type=non_negative_int, default=0, metavar="N",
        help="with -format markdown: chunks by headings of about N tokens, as JSON lines; 0: a file per page",
    )  # fmt: skip


def _export(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).export_pages(
        args.output,
        args.format,
        fields=[name.strip() for name in args.fields.split(",") if name.strip()],
        where=args.where,
        host=args.host,
        changed_since=args.changed_since or 0,
        all_rows=args.all,
        chunk_tokens=args.chunk_tokens,
    )
    return 0


def _import_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="+", help="file, or folder of files: WARC, WACZ, or a list of URLs")
    formats = ("auto", "warc", "wacz", "urls", "csv", "cdxj", "sitemap")
    parser.add_argument(
        "-format", "--format", choices=formats, default="auto", help="format of the files (auto: by content and name)"
    )
    parser.add_argument(
        "-batchId", "--batch-id", default="", metavar="id", help="id of the batch of pages (default: seconds-random)"
    )
    parser.add_argument("-noFilter", "--no-filter", action="store_true", help="do not filter URLs")
    parser.add_argument("-noNormalize", "--no-normalize", action="store_true", help="do not normalize URLs")


def _import(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).import_pages(
        args.path,
        args.format,
        batch_id=args.batch_id,
        filter_urls=not args.no_filter,
        normalize=not args.no_normalize,
    )
    return 0


def _checktable(_: Arguments, conf: Configuration) -> int:
    from nutch2py.errors import StoreError

    return StoreError.exit_code if open_printing_crawl(conf).check() else 0


def _dueindex_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-check", "--check", action="store_true", help="compare the index with the rows, change nothing")
    what.add_argument("-drop", "--drop", action="store_true", help="delete the index")


def _dueindex(args: Arguments, conf: Configuration) -> int:
    from nutch2py.errors import StoreError

    return StoreError.exit_code if open_printing_crawl(conf).due_index(check=args.check, drop=args.drop) else 0


def _importtable(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).import_(args.file)
    return 0


def _createtable_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-splits", "--splits", type=positive_int, default=1, metavar="N", help="number of regions (HBase)"
    )
    parser.add_argument("-seeds", "--seeds", metavar="url_dir", help="derive the regions from the row keys of seeds")
    parser.add_argument("-sample", "--sample", metavar="store", help="derive the regions from the table in this store")
    parser.add_argument("-keys", "--keys", metavar="file", help="start regions at these row keys or URLs, one per line")


def _createtable(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.table_admin.table_maintenance import create_table

    return create_table(conf, args.splits, args.seeds, args.sample, args.keys)


def _copytable_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", help="the store to copy to: embedded:FOLDER or hbase://HOST:PORT")
    parser.add_argument("-filter", "--filter", action="store_true", help="only rows whose URL the filters accept")
    parser.add_argument("-normalize", "--normalize", action="store_true", help="copy to the row of the normalized URL")


def _copytable(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).copy_to(args.target, filter_urls=args.filter, normalize=args.normalize)
    return 0


def _mergedb_options(parser: argparse.ArgumentParser) -> None:
    _copytable_options(parser)
    parser.add_argument("sources", nargs="*", help="stores to copy from, in the form of target (default: the crawl's)")


def _mergedb(args: Arguments, conf: Configuration) -> int:
    for source in args.sources or [conf.get_trimmed("storage.data.store")]:
        conf.set("storage.data.store", source)
        _copytable(args, conf)
    return 0


def _unlock_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", default="", help="the lock, as readdb -locks shows it")
    parser.add_argument("-all", "--all", action="store_true", help="every lock whose job is dead")
    parser.add_argument("-force", "--force", action="store_true", help="also the lock of a running job")


def _unlock(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.monitoring.lock_report import unlock

    unlock(conf, args.id, all_locks=args.all, force=args.force)
    return 0


def _jobs_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-topN", "--top-n", type=positive_int, default=20, metavar="N", help="the newest N (20)")
    parser.add_argument("-id", "--id", default="", metavar="id", help="details of one job")
    parser.add_argument("-json", "--json", action="store_true", help="JSON, one object per line")


def _jobs(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.monitoring.job_report import print_job, print_jobs

    return print_job(conf, args.id, args.json) if args.id else print_jobs(conf, args.top_n, args.json)


def _readlinkdb_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-url", "--url", metavar="url", help="print the inlinks of a page, with their anchors")
    what.add_argument(
        "-topN", "--top-n", type=positive_int, metavar="N", help="print the N pages with the most inlinks"
    )
    parser.add_argument("-json", "--json", action="store_true", help="JSON, one object per line")


def _readlinkdb(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.link_db_reader import print_inlinks, print_most_linked

    if args.url is not None:
        return print_inlinks(conf, args.url, args.json)
    return print_most_linked(conf, args.top_n, args.json)


def _nodedumper_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    for value, help_text in (
        ("inlinks", "the most inlinks"),
        ("outlinks", "the most outlinks"),
        ("scores", "the highest scores"),
    ):
        what.add_argument(f"-{value}", f"--{value}", dest="value", action="store_const", const=value, help=help_text)
    parser.add_argument("-topn", "--topn", "-topN", type=positive_int, default=100, metavar="N", help="how many (100)")
    parser.add_argument(
        "-group",
        "--group",
        nargs=2,
        metavar=("host|domain", "sum|max"),
        help="group by host or domain, with the sum or the maximum",
    )
    parser.add_argument("-output", "--output", metavar="FILE", help="write the lines to a file")


def _nodedumper(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.node_dumper import NodeDumperParameters, print_nodes

    group, aggregate = args.group or ("", "sum")
    if group not in ("", "host", "domain") or aggregate not in ("sum", "max"):
        raise UsageError(f"-group {group} {aggregate}: write host or domain, then sum or max")
    parameters = NodeDumperParameters(value=args.value, top=args.topn, group=group, aggregate=aggregate)
    return print_nodes(conf, parameters, Path(args.output) if args.output else None)


def _webgraph_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    parser.add_argument(
        "-format",
        "--format",
        choices=("graphml", "edges"),
        help="GraphML, or one edge per line with tabs; by default edges for .tsv, .txt and .edges, else GraphML",
    )
    parser.add_argument("-hosts", "--hosts", action="store_true", help="links between hosts, with their counts")


def _webgraph(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.webgraph import export_graph

    suffix = Path(args.output).suffix.lower()
    if args.format is None and suffix == ".csv":
        raise UsageError(
            f"-o {args.output}: no format of webgraph is CSV: name the file .graphml or .tsv, or choose a -format"
        )
    format_name = args.format or ("edges" if suffix in (".tsv", ".txt", ".edges") else "graphml")
    export_graph(conf, Path(args.output), format_name, between_hosts=args.hosts)
    return 0


def _count_options(*places: str) -> Callable[[argparse.ArgumentParser], None]:
    def options(parser: argparse.ArgumentParser) -> None:
        if places:
            parser.add_argument("place", choices=places, help="what to count by")
        parser.set_defaults(place="")
        parser.add_argument(
            "-topN", "--top-n", type=positive_int, default=0, metavar="N", help="only the N largest counts (all)"
        )

    return options


def _count(title: str, kind: str) -> Callable[[Arguments, Configuration], int]:
    def run(args: Arguments, conf: Configuration) -> int:
        from nutch2py.jobs.tools.domain_and_status_counts import print_counts

        return print_counts(conf, title, kind, args.place, args.top_n)

    return run


COMMANDS: dict[str, Command] = {
    "readdb": Command("read or dump the table", _readdb_options, _readdb),
    "hostinject": Command("add host settings to the host table", _hostinject_options, _hostinject),
    "updatehostdb": Command("count pages and links by host", _updatehostdb_options, _updatehostdb),
    "readhostdb": Command("print the host table", _readhostdb_options, _readhostdb),
    "readlinkdb": Command("print the inlinks of a page, or the most linked pages", _readlinkdb_options, _readlinkdb),
    "domainstats": Command(
        "count fetched pages by host, domain, suffix or tld",
        _count_options("host", "domain", "suffix", "tld"),
        _count("DomainStatistics", "domains"),
    ),
    "protocolstats": Command(
        "count pages by protocol status", _count_options(), _count("ProtocolStatistics", "protocol")
    ),
    "crawlcomplete": Command(
        "count fetched and unfetched pages by host or domain",
        _count_options("host", "domain"),
        _count("CrawlCompletionStats", "completion"),
    ),
    "createtable": Command("create the table, in several regions on HBase", _createtable_options, _createtable),
    "nodedumper": Command("print pages with the most inlinks, outlinks or score", _nodedumper_options, _nodedumper),
    "webgraph": Command("write the links between pages or hosts to a file", _webgraph_options, _webgraph),
    "mergedb": Command("copy tables of other stores into one", _mergedb_options, _mergedb),
    "copytable": Command("copy the table to another store", _copytable_options, _copytable),
    "export": Command("write pages as Parquet, JSON, CSV, Markdown, WARC or WACZ", _export_options, _export),
    "import": Command("read pages of WARC and WACZ files, and lists of URLs", _import_options, _import),
    "exporttable": Command("write the table's cells to a file", _exporttable_options, _exporttable),
    "importtable": Command("read cells from a file into the table", _file_options, _importtable),
    "dueindex": Command("build the due index, which speeds up generate", _dueindex_options, _dueindex),
    "jobs": Command("print the job log", _jobs_options, _jobs),
    "unlock": Command("remove the lock of a dead job", _unlock_options, _unlock),
    "checktable": Command("check the crawl's tables for damage", lambda _: None, _checktable),
}
