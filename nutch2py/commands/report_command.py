"""Watching a crawl: its report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command, open_printing_crawl

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="write it into this file, for a browser")
    parser.add_argument("-json", "--json", action="store_true", help="print it as one JSON object")


def _report(args: Arguments, conf: Configuration) -> int:
    from nutch2py.control_room.report import CrawlSnapshot, render_json, write_report
    from nutch2py.errors import UsageError

    if not args.output and not args.json:
        raise UsageError("nothing says where the report goes: name a file with -o, or print it with -json")
    with open_printing_crawl(conf) as crawl:
        state = CrawlSnapshot.from_crawl(crawl)
    if args.output:
        write_report(state, Path(args.output))
    if args.json:
        print(render_json(state))
    else:
        print(f"report: {args.output}")
    return 0


COMMANDS: dict[str, Command] = {
    "report": Command("write the state of a crawl, with pictures, into one file", _report_options, _report),
}
