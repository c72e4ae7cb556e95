"""The command that writes the report of a crawl."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command, open_printing_crawl

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="write an HTML page to this file")
    parser.add_argument("-json", "--json", action="store_true", help="print it as one JSON object")


def _report(args: Arguments, conf: Configuration) -> int:
    from nutch2py.control_room.report import CrawlSnapshot, render_json, write_report
    from nutch2py.errors import UsageError

    if not args.output and not args.json:
        raise UsageError("no output given: name a file with -o, or print the report with -json")
    with open_printing_crawl(conf) as crawl:
        snapshot = CrawlSnapshot.from_crawl(crawl)
    if args.output:
        write_report(snapshot, Path(args.output))
    if args.json:
        print(render_json(snapshot))
    else:
        print(f"report: {args.output}")
    return 0


COMMANDS: dict[str, Command] = {
    "report": Command("write a report of a crawl, with charts, to one file", _report_options, _report),
}
