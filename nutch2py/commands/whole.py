"""A whole crawl by one command."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command, whole_number
from nutch2py.errors import UsageError

if TYPE_CHECKING:
    from nutch2py.conf import Configuration

_STAYS = ("host", "domain", "path", "anywhere")
_PLACES = ("storage.", "index.", "solr.", "elastic.", "plugin.")
"""What begins the properties that say where a crawl and its index are."""
NOTHING_TO_DO = 1


def _crawl_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("urls", nargs="+", metavar="URL", help="where to begin: URLs, hosts, or files of seeds")
    parser.add_argument(
        "-depth", "--depth", type=whole_number, metavar="N", help="links from where it begins, at most (any number)"
    )
    parser.add_argument(
        "-pages", "--pages", type=whole_number, metavar="N", help="URLs fetched by this run, at most (any number)"
    )
    parser.add_argument(
        "-time", "--time", type=whole_number, metavar="MIN", help="minutes of fetching, at most (any number)"
    )
    parser.add_argument(
        "-stay", "--stay", choices=_STAYS, default="host", help="follow links within: host (the default), domain, the "
        "folder of the first URL (path), anywhere",
    )  # fmt: skip
    parser.add_argument("-data", "--data", metavar="DIR", help="folder of the table and the index (crawldata)")
    parser.add_argument(
        "-index", "--index", metavar="WHERE", help="embedded, none, or the URL of a Solr collection (as configured)"
    )


def _crawl(args: Arguments, conf: Configuration) -> int:
    from nutch2py.errors import NothingFetchedError, NutchError
    from nutch2py.jobs.left_out import GATE
    from nutch2py.rounds.plan import Plan, Stay
    from nutch2py.rounds.running import Rounds
    from nutch2py.rounds.summary import summary
    from nutch2py.rounds.view import view_of

    for name in ("pages", "time"):
        if getattr(args, name) == 0:
            raise UsageError(f"-{name} 0 would fetch nothing: leave it out for any number")
    place = _place(args, conf)
    plan = Plan(
        words=tuple(args.urls), depth=args.depth, pages=args.pages, minutes=args.time, stay=Stay(args.stay)
    )  # fmt: skip
    view = view_of(sys.stdout, every_line=args.verbose, quiet=args.quiet)
    rounds = Rounds(conf, plan, view, index=args.index != "none")
    try:
        rounds.run()
    except (KeyboardInterrupt, SystemExit):
        view.close()
        print(f"Stopped after {rounds.tally.in_a_line()}: the same command goes on where it was.")
        raise
    except NutchError as error:
        view.close()
        if isinstance(error, NothingFetchedError) and any(GATE in seed.trouble for seed in rounds.seeds):
            error.args = (f"{error}; that is: {_again(args, '-D', f'{GATE}=')}",)
        if rounds.tally.rounds or rounds.tally.good:
            print(f"Ended after {rounds.tally.in_a_line()}: the same command goes on where it was.")
        raise
    finally:
        view.close()
    for line in summary(rounds.tally, plan, rounds.end, place, rounds.conf):
        print(line)
    if rounds.tally.good or rounds.went_on:
        return 0
    if not rounds.tally.rounds:
        print("No URL is due: all that is known was fetched, and waits for its time (readdb -stats).")
        return NOTHING_TO_DO
    raise NothingFetchedError("no page was fetched: the lines above say why")


def _again(args: Arguments, *more: str) -> str:
    """Return the command that was given, with more words, as a shell reads it."""
    from nutch2py.rounds.summary import command_line

    words = [*args.urls]
    for name in ("depth", "pages", "time", "data", "index"):
        value = getattr(args, name)
        words += [] if value is None else [f"-{name}", str(value)]
    words += [] if args.stay == "host" else ["-stay", args.stay]
    words += [word for setting in args.D for word in ("-D", setting)]
    words += ["-crawlId", args.crawl_id] if args.crawl_id else []
    words += ["--conf", args.conf] if args.conf else []
    return command_line([*words, *more], "crawl")


def _place(args: Arguments, conf: Configuration) -> list[str]:
    """Set where the table and the index are; return the options by which later commands find them."""
    words = [word for setting in args.D if setting.startswith(_PLACES) for word in ("-D", setting)]

    def option(name: str, value: str) -> None:
        conf.set(name, value)
        words.extend(("-D", f"{name}={value}"))

    if args.data is not None:
        if not args.data:
            raise UsageError("-data names no folder: write -data DIR")
        if "://" in args.data or args.data.startswith("embedded:"):
            raise UsageError(
                f"-data {args.data} is no folder: for another store, write -D storage.data.store={args.data}"
            )
        option("storage.data.store", f"embedded:{args.data}")
    if args.index not in (None, "none", "embedded"):
        if not args.index.startswith(("http://", "https://")):
            raise UsageError(f"-index {args.index} is none of embedded, none, and the URL of a Solr collection")
        option("solr.server.url", args.index)
    elif args.index == "embedded":
        option("solr.server.url", "")
    if args.crawl_id:
        words += ["-crawlId", args.crawl_id]
    if args.conf:
        words += ["--conf", args.conf]
    return words


COMMANDS: dict[str, Command] = {"crawl": Command("crawl sites, and index them", _crawl_options, _crawl)}
