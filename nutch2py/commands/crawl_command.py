"""The command that runs a whole crawl."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command, non_negative_int
from nutch2py.errors import UsageError

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration

_SCOPES = ("host", "domain", "path", "anywhere")
_LOCATION_PREFIXES = ("storage.", "index.", "solr.", "elastic.", "plugin.")
"""Prefixes of the properties that locate a crawl and its index."""
NOTHING_TO_DO = 1


def _crawl_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("urls", nargs="+", metavar="URL", help="seeds: URLs, hosts, or files of URLs")
    parser.add_argument(
        "-depth",
        "--depth",
        type=non_negative_int,
        metavar="N",
        help="maximum number of links from a seed (unlimited); 0: seeds only",
    )
    parser.add_argument(
        "-pages",
        "--pages",
        type=non_negative_int,
        metavar="N",
        help="maximum number of URLs to fetch (unlimited); 0: rejected",
    )
    parser.add_argument(
        "-time",
        "--time",
        type=non_negative_int,
        metavar="MIN",
        help="maximum minutes of fetching (unlimited); 0: rejected",
    )
    parser.add_argument(
        "-stay", "--stay", choices=_SCOPES, default="host", help="follow links within: host (the default), domain, the "
        "folder of the first URL (path), anywhere",
    )  # fmt: skip
    parser.add_argument("-data", "--data", metavar="DIR", help="folder of the table and the index (crawldata)")
    parser.add_argument(
        "-index", "--index", metavar="WHERE", help="embedded, none, or the URL of a Solr collection (as configured)"
    )


def _crawl(args: Arguments, conf: Configuration) -> int:
    from nutch2py.crawl_loop.crawl_plan import CrawlPlan, CrawlScope
    from nutch2py.crawl_loop.end_summary import summary_lines
    from nutch2py.crawl_loop.loop import CrawlLoop
    from nutch2py.crawl_loop.progress_view import create_view
    from nutch2py.errors import NothingFetchedError, NutchError
    from nutch2py.jobs.monitoring.skip_reasons import ADDRESS_FILTER_PROPERTY

    for name in ("pages", "time"):
        if getattr(args, name) == 0:
            raise UsageError(f"-{name} 0 would fetch nothing: leave it out for no limit")
    location = _apply_location(args, conf)
    plan = CrawlPlan(
        seed_arguments=tuple(args.urls), max_depth=args.depth, max_pages=args.pages, max_minutes=args.time,
        scope=CrawlScope(args.stay),
    )  # fmt: skip
    view = create_view(sys.stdout, every_line=args.verbose, quiet=args.quiet)
    loop = CrawlLoop(conf, plan, view, index=args.index != "none")
    try:
        loop.run()
    except (KeyboardInterrupt, SystemExit):
        view.close()
        print(f"Stopped after {loop.totals.format_summary()}. Run the same command again to continue.")
        raise
    except NutchError as error:
        view.close()
        if isinstance(error, NothingFetchedError) and any(
            ADDRESS_FILTER_PROPERTY in seed.problem for seed in loop.seeds
        ):
            error.args = (f"{error}; that is: {_repeat_command(args, '-D', f'{ADDRESS_FILTER_PROPERTY}=')}",)
        if loop.totals.rounds or loop.totals.fetched_count:
            print(f"Failed after {loop.totals.format_summary()}. Run the same command again to continue.")
        raise
    finally:
        view.close()
    for line in summary_lines(loop.totals, plan, loop.stop_reason, location, loop.conf):
        print(line)
    loop.check_local_failures()
    if loop.totals.fetched_count or loop.has_resumed:
        return 0
    if not loop.totals.rounds:
        print("No URL is due: all known URLs are fetched and wait for their next fetch (readdb -stats).")
        return NOTHING_TO_DO
    raise NothingFetchedError("no page was fetched: see the reasons above")


def _repeat_command(args: Arguments, *more: str) -> str:
    """Return the command that was run, with additional words, quoted for a shell."""
    from nutch2py.crawl_loop.end_summary import shell_command

    words = [*args.urls]
    for name in ("depth", "pages", "time", "data", "index"):
        value = getattr(args, name)
        words += [] if value is None else [f"-{name}", str(value)]
    words += [] if args.stay == "host" else ["-stay", args.stay]
    words += [word for setting in args.D for word in ("-D", setting)]
    words += ["-crawlId", args.crawl_id] if args.crawl_id else []
    words += ["--conf", args.conf] if args.conf else []
    return shell_command([*words, *more], "crawl")


def _apply_location(args: Arguments, conf: Configuration) -> list[str]:
    """Set the location of the table and the index, and return the options with which later commands find them."""
    words = [word for setting in args.D if setting.startswith(_LOCATION_PREFIXES) for word in ("-D", setting)]

    def option(name: str, value: str) -> None:
        conf.set(name, value)
        words.extend(("-D", f"{name}={value}"))

    if args.data is not None:
        if not args.data:
            raise UsageError("-data is empty: write -data DIR")
        if "://" in args.data or args.data.startswith("embedded:"):
            raise UsageError(
                f"-data {args.data} is not a folder: for another store, write -D storage.data.store={args.data}"
            )
        option("storage.data.store", f"embedded:{args.data}")
    if args.index not in (None, "none", "embedded"):
        if not args.index.startswith(("http://", "https://")):
            raise UsageError(f"-index {args.index} is not valid: give embedded, none, or the URL of a Solr collection")
        option("solr.server.url", args.index)
    elif args.index == "embedded":
        option("solr.server.url", "")
    if args.crawl_id:
        words += ["-crawlId", args.crawl_id]
    if args.conf:
        words += ["--conf", args.conf]
    return words


COMMANDS: dict[str, Command] = {"crawl": Command("crawl sites, and index them", _crawl_options, _crawl)}
