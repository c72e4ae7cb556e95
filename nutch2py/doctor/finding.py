"""What a look at a part has found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from nutch2py.conf import Configuration
from nutch2py.errors import NutchError


class State(StrEnum):
    """How a part is. ``BAD``: jobs fail of it; ``DOUBTFUL``: they run, and perhaps not as is meant."""

    GOOD = "ok"
    DOUBTFUL = "look"
    BAD = "bad"


class Finding(NamedTuple):
    """``part``: what was looked at. ``told``: how it is, and what to do where it is not good."""

    part: str
    state: State
    told: str


Look = Callable[[Configuration], Iterator[Finding]]


def good(part: str, told: str) -> Finding:
    """Return that a part is as it should be."""
    return Finding(part, State.GOOD, told)


def doubtful(part: str, told: str) -> Finding:
    """Return that a part may not be as is meant."""
    return Finding(part, State.DOUBTFUL, told)


def bad(part: str, told: str) -> Finding:
    """Return that jobs will fail of a part."""
    return Finding(part, State.BAD, told)


def findings_of(part: str, look: Look, conf: Configuration) -> Iterator[Finding]:
    """Yield what a look finds; an error whose cause and repair are known is a finding, too."""
    try:
        yield from look(conf)
    except NutchError as error:
        yield bad(part, str(error))
