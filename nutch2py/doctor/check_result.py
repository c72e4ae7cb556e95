"""Results of health checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError


class CheckStatus(StrEnum):
    """Status of a check. ``ERROR``: jobs will fail. ``WARNING``: jobs run, but perhaps not as intended."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class CheckResult(NamedTuple):
    """Result of a check. ``message``: the finding, and what to do about a problem."""

    check: str
    status: CheckStatus
    message: str


Check = Callable[[Configuration], Iterator[CheckResult]]


def ok_result(check: str, message: str) -> CheckResult:
    """Return a result without problems."""
    return CheckResult(check, CheckStatus.OK, message)


def warning_result(check: str, message: str) -> CheckResult:
    """Return a result that needs attention."""
    return CheckResult(check, CheckStatus.WARNING, message)


def error_result(check: str, message: str) -> CheckResult:
    """Return a result that makes jobs fail."""
    return CheckResult(check, CheckStatus.ERROR, message)


def run_check(name: str, check: Check, conf: Configuration) -> Iterator[CheckResult]:
    """Yield the results of a check; a NutchError that it raises becomes an error result."""
    try:
        yield from check(conf)
    except NutchError as error:
        yield error_result(name, str(error))
