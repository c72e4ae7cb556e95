"""What a look at a part has found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError


class CheckStatus(StrEnum):
    """How a part is. ``ERROR``: jobs fail of it; ``WARNING``: they run, and perhaps not as is meant."""

    OK = "ok"
    WARNING = "look"
    ERROR = "bad"


class CheckResult(NamedTuple):
    """``check``: what was looked at. ``message``: how it is, and what to do where it is not good."""

    check: str
    status: CheckStatus
    message: str


Check = Callable[[Configuration], Iterator[CheckResult]]


def ok_result(check: str, message: str) -> CheckResult:
    """Return that a part is as it should be."""
    return CheckResult(check, CheckStatus.OK, message)


def warning_result(check: str, message: str) -> CheckResult:
    """Return that a part may not be as is meant."""
    return CheckResult(check, CheckStatus.WARNING, message)


def error_result(check: str, message: str) -> CheckResult:
    """Return that jobs will fail of a part."""
    return CheckResult(check, CheckStatus.ERROR, message)


def run_check(part: str, look: Check, conf: Configuration) -> Iterator[CheckResult]:
    """Yield what a look finds; an error whose cause and repair are known is a finding, too."""
    try:
        yield from look(conf)
    except NutchError as error:
        yield error_result(part, str(error))
