"""Errors about another running job are LockedErrors, so that scripts see their exit code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import nutch2py
from nutch2py import errors

PACKAGE = Path(nutch2py.__file__).parent
_BUSY = re.compile(
    r"another (job|process)|(is|are) (at work|running on)|when no job does|cannot run at the same time|is alive"
    r"|has taken it"
)
_OTHERWISE = {"lock_check.py": "the list of locks is damaged"}
"""Files with an error that names running jobs, but is not a conflict with them."""


def rejections(source: str) -> Iterator[tuple[str, int]]:
    """Yield the class and the line of each error with a message about other running jobs."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error")):
            continue
        words = "".join(
            part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )
        if _BUSY.search(words):
            yield node.func.id, node.lineno


def test_busy_errors_are_subclasses_of_locked_error() -> None:
    found = [
        (path.name, kind, line)
        for path in sorted(PACKAGE.rglob("*.py"))
        for kind, line in rejections(path.read_text(encoding="utf-8"))
    ]
    assert len(found) >= 4
    wrong = [
        (name, kind, line)
        for name, kind, line in found
        if not issubclass(getattr(errors, kind, Exception), errors.LockedError)
    ]
    assert {name for name, _, _ in wrong} == _OTHERWISE.keys(), wrong


@pytest.mark.parametrize("words", ['f"{x} has been locked by another process"', '"wait: " + "fetch is at work"'])
def test_busy_error_scanner_finds_raised_errors(words: str) -> None:
    assert [*rejections(f"def f():\n    raise InputError({words})\n")] == [("InputError", 2)]
