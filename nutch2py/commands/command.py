"""What a command is: a line of help, options, and what it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from nutch2py.errors import UsageError

if TYPE_CHECKING:
    from nutch2py.conf import Configuration
    from nutch2py.crawl import Crawl

Arguments = argparse.Namespace


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError, so that wrong words end as every other error does."""

    def error(self, message: str) -> NoReturn:
        """Print the usage; raise UsageError."""
        self.print_usage(sys.stderr)
        raise UsageError(message)


class Command(NamedTuple):
    """A command: one line of help, the options it adds, and what it runs (returns the exit code)."""

    summary: str
    options: Callable[[argparse.ArgumentParser], object]
    run: Callable[[Arguments, Configuration], int]


def printing(conf: Configuration) -> Crawl:
    """Return the crawl that a command works on, whose jobs print what they have to say."""
    from nutch2py.crawl import Crawl

    return Crawl.printing(conf)


def batch_options(parser: argparse.ArgumentParser, reindex: bool = False) -> None:
    """Add the arguments that name a batch: its id, ``-all``, and ``-reindex`` if asked for."""
    parser.add_argument("batch", nargs="?", metavar="batchId", help="the batch to work on")
    parser.add_argument("-all", "--all", action="store_true", help="every batch")
    if reindex:
        parser.add_argument("-reindex", "--reindex", action="store_true", help="every parsed page, whatever its batch")


def chosen_batch(args: Arguments) -> str:
    """Return the batch id, ``-all`` or ``-reindex``; raise UsageError unless exactly one was given."""
    chosen = [args.batch, "-all" if args.all else None, "-reindex" if getattr(args, "reindex", False) else None]
    named: list[str] = [each for each in chosen if each]
    if len(named) != 1:
        problem = f"BatchId already set to '{named[0]}'!" if named else "BatchId not set (or -all not specified)!"
        raise UsageError(problem)
    return named[0]
