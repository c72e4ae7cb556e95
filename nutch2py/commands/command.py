"""What a command is: a line of help, options, and what it runs."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from nutch2py.errors import UsageError

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration
    from nutch2py.crawl import Crawl

Arguments = argparse.Namespace


def suggest_match(word: str, known: Iterable[str]) -> str:
    """Return ", did you mean …?" with the nearest of the words that are known, "" when none is near."""
    from difflib import get_close_matches

    folded = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), folded, n=1, cutoff=0.7)
    return f", did you mean {folded[near[0]]}?" if near else ""


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError, so that wrong words end as every other error does."""

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse words; an option that there is not is named with the one that was perhaps meant."""
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            option = rest[0].partition("=")[0]
            known = [name for name in self._option_string_actions if name.startswith("-")]
            self.error(f"unrecognized arguments: {' '.join(rest)}{suggest_match(option, known)}")
        return found

    def actions(self) -> list[argparse.Action]:
        """Return what stands for each option and argument."""
        return list(self._actions)

    def error(self, message: str) -> NoReturn:
        """Print the usage; raise UsageError."""
        self.print_usage(sys.stderr)
        raise UsageError(message)


class Command(NamedTuple):
    """A command: one line of help, the options it adds, and what it runs (returns the exit code)."""

    summary: str
    add_options: Callable[[argparse.ArgumentParser], object]
    run: Callable[[Arguments, Configuration], int]


def open_printing_crawl(conf: Configuration) -> Crawl:
    """Return the crawl that a command works on, whose jobs print what they have to say."""
    from nutch2py.crawl import Crawl

    return Crawl.for_console(conf)


def non_negative_int(text: str) -> int:
    """Return what a word of the command line counts; a negative number counts nothing, and is refused."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return number


def finite_days(text: str) -> float:
    """Return a number of days, which may be negative, but neither endless nor no number."""
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not math.isfinite(days):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days")
    return days


def add_batch_options(parser: argparse.ArgumentParser, reindex: bool = False) -> None:
    """Add the arguments that name a batch: its id, ``-all``, and ``-reindex`` and ``-scores`` if asked for."""
    parser.add_argument("batch", nargs="?", metavar="batchId", help="the batch to work on")
    parser.add_argument("-all", "--all", action="store_true", help="every batch")
    told = "every parsed page, whatever its batch" if reindex else argparse.SUPPRESS  # there: to be refused by its name
    parser.add_argument("-reindex", "--reindex", action="store_true", help=told)
    told = "what pagerank has changed, without the documents" if reindex else argparse.SUPPRESS
    parser.add_argument("-scores", "--scores", action="store_true", help=told)


def selected_batch(args: Arguments) -> str:
    """Return the batch id, ``-all``, ``-reindex`` or ``-scores``; raise UsageError unless exactly one was given."""
    words = [f"-{name}" for name in ("all", "reindex", "scores") if getattr(args, name, False)]
    named: list[str] = [each for each in (args.batch, *words) if each]
    if len(named) != 1:
        problem = f"BatchId already set to '{named[0]}'!" if named else "BatchId not set (or -all not specified)!"
        raise UsageError(problem)
    return named[0]
