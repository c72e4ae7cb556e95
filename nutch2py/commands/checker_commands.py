"""Commands that check a page, a rule or the configuration, and the command that packs the program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from nutch2py.commands.command import Arguments, Command

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration


def _parsechecker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", help="the URL of the page")
    parser.add_argument("-dumpText", "--dump-text", action="store_true", help="print the text, too")
    parser.add_argument("-forceAs", "--force-as", default=None, metavar="mimeType", help="parse as this media type")
    parser.add_argument("-render", "--render", action="store_true", help="also show the result in a browser")


def _parsechecker(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.page_checkers import run_parse_checker

    return run_parse_checker(conf, args.url, args.dump_text, args.force_as, render=args.render)


def _indexchecker(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.page_checkers import run_index_checker

    return run_index_checker(conf, args.url)


def _filterchecker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-filterName", "--filter-name", default=None, metavar="filterName", help="only this filter")
    parser.add_argument("-allCombined", "--all-combined", action="store_true", help="all filters (default)")
    parser.add_argument("-stdin", "--stdin", action="store_true", help="read URLs from standard input (default)")
    parser.add_argument("urls", nargs="*", help="URLs to check")


def _filterchecker(args: Arguments, conf: Configuration) -> int:
    from nutch2py.url.url_checkers import filter_lines

    return _print_lines(filter_lines(conf, args.urls or sys.stdin, args.filter_name))


def _normalizerchecker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-normalizer", "--normalizer", default=None, metavar="name", help="only this normalizer")
    parser.add_argument("-scope", "--scope", default="default", metavar="scope", help="scope of the rules (default)")
    parser.add_argument("-stdin", "--stdin", action="store_true", help="read URLs from standard input (default)")
    parser.add_argument("urls", nargs="*", help="URLs to check")


def _normalizerchecker(args: Arguments, conf: Configuration) -> int:
    from nutch2py.url.url_checkers import normalize_lines

    return _print_lines(normalize_lines(conf, args.urls or sys.stdin, args.scope, args.normalizer))


def _print_lines(lines: Iterable[str]) -> int:
    for line in lines:
        print(line, flush=True)
    return 0


def _robotsparser_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robots_file", help="a robots.txt file, or its URL")
    parser.add_argument("url_file", help="a file of URLs, one per line; - for standard input")
    parser.add_argument("agents", nargs="*", help="agent names, in order (default: http.agent.name)")


def _robotsparser(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.page_checkers import run_robots_checker

    return run_robots_checker(conf, args.robots_file, args.url_file, args.agents)


def _package_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, help="where to write it (default: mapreduce.package)")
    parser.add_argument(
        "-clean", action="store_true", help="build nothing: delete packages of other versions from HDFS"
    )


def _package(args: Arguments, conf: Configuration) -> int:
    from nutch2py.jobs.tools.cluster_package import build_package, clean_packages

    return clean_packages(conf) if args.clean else build_package(conf, args.file)


def _showproperties(_: Arguments, conf: Configuration) -> int:
    for name in sorted(conf):
        print(f"{name}={conf.get_redacted(name)}")
    return 0


def _no_options(_: argparse.ArgumentParser) -> None:
    return


COMMANDS: dict[str, Command] = {
    "parsechecker": Command("fetch and parse one URL, and print the result", _parsechecker_options, _parsechecker),
    "indexchecker": Command(
        "print the index document of one URL",
        lambda p: p.add_argument("url", help="the URL of the page"),
        _indexchecker,
    ),
    "filterchecker": Command("print which URLs the filters accept", _filterchecker_options, _filterchecker),
    "normalizerchecker": Command("print URLs normalized", _normalizerchecker_options, _normalizerchecker),
    "robotsparser": Command("print which URLs a robots.txt allows", _robotsparser_options, _robotsparser),
    "package": Command("pack the program for the nodes of a cluster", _package_options, _package),
    "showproperties": Command("print the configuration in force, secrets masked", _no_options, _showproperties),
}
