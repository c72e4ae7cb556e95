"""Base of the commands: their parser, shared options, and the types of option values."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from nutch2py.conf.property_ranges import DAYS, LONG_MAX, PROPERTY_RANGES, NumberRange
from nutch2py.errors import UsageError

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration
    from nutch2py.crawl import Crawl

Arguments = argparse.Namespace


def suggest_match(word: str, known: Iterable[str]) -> str:
    """Return ", did you mean …?" with the closest known word, "" when no word is close."""
    from difflib import get_close_matches

    known_by_folded = {name.lower(): name for name in known}
    matches = get_close_matches(word.lower(), known_by_folded, n=1, cutoff=0.7)
    return f", did you mean {known_by_folded[matches[0]]}?" if matches else ""


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError, so that invalid arguments end like every other error."""

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse arguments. The error for an unknown option suggests a similar one."""
        parsed, rest = self.parse_known_args(args, namespace)
        if rest:
            option = rest[0].partition("=")[0]
            known = [name for name in self._option_string_actions if name.startswith("-")]
            self.error(f"unrecognized arguments: {' '.join(rest)}{suggest_match(option, known)}")
        return parsed

    def actions(self) -> list[argparse.Action]:
        """Return the actions of all options and arguments."""
        return list(self._actions)

    def error(self, message: str) -> NoReturn:
        """Print the usage and raise UsageError."""
        self.print_usage(sys.stderr)
        raise UsageError(message)


class Command(NamedTuple):
    """A command: one line of help, a function that adds its options, and one that runs it and returns its exit code."""

    summary: str
    add_options: Callable[[argparse.ArgumentParser], object]
    run: Callable[[Arguments, Configuration], int]


def open_printing_crawl(conf: Configuration) -> Crawl:
    """Return the crawl of a command. Its jobs print their log lines."""
    from nutch2py.crawl import Crawl

    return Crawl.for_console(conf)


class NumberArgument:
    """Type of an option that takes a number; docs/numbers.md lists all of them with the meaning of 0.

    Args:
        allowed: The accepted numbers.
        wanted: What the error asks for, "a whole number of 1 or more".
        checked_by_property: The value becomes that of a property, whose range is checked where it is read; the
            argument stays text.
    """

    def __init__(self, allowed: NumberRange, wanted: str = "", *, checked_by_property: bool = False) -> None:
        self.allowed, self._wanted, self.checked_by_property = allowed, wanted or str(allowed), checked_by_property

    def __call__(self, text: str) -> float | str:
        """Return the number in an argument; reject one out of the range."""
        if self.checked_by_property:
            return text
        try:
            number = int(text) if self.allowed.integer else float(text)
        except ValueError:
            number = math.nan
        if not self.allowed.contains(number) or "_" in text:
            raise argparse.ArgumentTypeError(f"{text!r} is not {self._wanted}")
        return number


non_negative_int = NumberArgument(NumberRange(0, LONG_MAX), "a whole number of 0 or more")
positive_int = NumberArgument(NumberRange(1, LONG_MAX), "a whole number of 1 or more")
port_number = NumberArgument(NumberRange(0, 65535))
share = NumberArgument(NumberRange(0, 1, False))
finite_days = NumberArgument(DAYS, "a number of days from -36,500 to 36,500")
positive_days = NumberArgument(NumberRange(1e-6, 36_500, False), "a number of days above 0 and up to 36,500")


def property_number(name: str) -> NumberArgument:
    """Return the type of an option that sets a property."""
    return NumberArgument(PROPERTY_RANGES[name], checked_by_property=True)


def add_batch_options(parser: argparse.ArgumentParser, reindex: bool = False) -> None:
    """Add the arguments that select a batch: its id, ``-all``, with ``reindex`` also ``-reindex``, ``-scores``."""
    parser.add_argument("batch", nargs="?", metavar="batchId", help="the batch to work on")
    parser.add_argument("-all", "--all", action="store_true", help="every batch")
    # the options always exist, so that the error message can name them
    help_text = "every parsed page, of any batch" if reindex else argparse.SUPPRESS
    parser.add_argument("-reindex", "--reindex", action="store_true", help=help_text)
    help_text = "changed scores of pagerank, without the documents" if reindex else argparse.SUPPRESS
    parser.add_argument("-scores", "--scores", action="store_true", help=help_text)


def selected_batch(args: Arguments) -> str:
    """Return the batch id, ``-all``, ``-reindex`` or ``-scores``; raise UsageError unless exactly one was given."""
    words = [f"-{name}" for name in ("all", "reindex", "scores") if getattr(args, name, False)]
    given: list[str] = [each for each in (args.batch, *words) if each]
    if len(given) != 1:
        problem = "no batch given: name a batch id, or -all; readdb -batches lists the open ones"
        raise UsageError(f"{' and '.join(given)} exclude each other: give one of them" if given else problem)
    return given[0]
