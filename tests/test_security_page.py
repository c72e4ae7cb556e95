"""docs/security.md agrees with the code: its tests exist, and the numbers of its properties are their defaults."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.test_docs import DEFAULTS, DOCS, ROOT

PAGE = (DOCS / "security.md").read_text(encoding="utf-8")
NAMED_TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
PROPERTIES = re.findall(r"`([a-z0-9]+(?:\.[a-z0-9-]+)+)`(?: \((-?[\d,.]*\d))?", PAGE)


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


@pytest.mark.parametrize(("path", "name"), NAMED_TESTS)
def test_test_named_on_security_page_exists(path: str, name: str) -> None:
    assert (ROOT / path).is_file()
    assert name in functions(path)


def test_every_threat_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and line.count("|") == 4]
    threats = [row for row in rows if not row.startswith(("| what could go wrong", "|---", "| who"))]
    trusted = PAGE.partition("## ")[0]
    without = [row for row in threats if "::" not in row and row not in trusted]
    assert not without
    assert len(threats) > 30


def test_properties_exist_and_numbers_equal_defaults() -> None:
    names = {name for name, _ in PROPERTIES}
    assert len(names) > 25
    assert names <= DEFAULTS.keys()
    different = {
        name: (number, DEFAULTS[name])
        for name, number in PROPERTIES
        if number and float(number.replace(",", "")) != float(DEFAULTS[name] or "nan")
    }
    assert not different


def test_every_limit_is_given_with_its_number() -> None:
    """A limit without its number would be half of the truth."""
    found = {name for name, number in PROPERTIES if number}
    assert {name for name, _ in PROPERTIES if is_number(DEFAULTS[name])} - found - {"generate.max.count"} == set()
    assert float(DEFAULTS["generate.max.count"]) == -1
