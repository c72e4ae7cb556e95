"""Imports of modules, by their syntax trees, and the distributions that they come from."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = {"Hbase_thrift": "happybase"}
"""Modules that a package makes when it is imported, and the package."""
DOCUMENTED = {"_asdict", "_current_frames", "_exit", "_fields", "_replace"}
"""Public names of the standard library that start with an underscore."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def trees(folder: str) -> dict[str, ast.Module]:
    """Return the syntax tree of each module below a folder by its dotted name."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"), str(path))
    assert found
    return found


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names that a module imports, in functions too, and by ``import_module``.

    ``from a import b`` gives ``a.b``, for b may be a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(name.value) for name in node.args[:1] if isinstance(name, ast.Constant))


@cache
def installed() -> dict[str, set[str]]:
    """Return the distributions that a top-level module may come from."""
    return {module: {canonical(name) for name in names} for module, names in packages_distributions().items()}


def paths(tree: ast.AST) -> set[str]:
    """Return the strings of a module that may be dotted names: Scrapy imports what they name."""
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {text for text in strings if re.fullmatch(r"\w+(\.\w+)+", text)}


def distribution_of(module: str) -> str | None:
    """Return the distribution of a dotted name, None of the standard library or our own."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in ("nutch2py", "tests", "bench"):
        return None
    if top in GENERATED:
        return GENERATED[top]
    (found,) = installed().get(top, {canonical(top)})
    return found


@cache
def distributions(*folders: str) -> dict[str, set[str]]:
    """Return the distributions imported below some folders, with the modules that import them."""
    found = defaultdict(set)
    for folder in folders:
        for name, tree in trees(folder).items():
            for module in imported(tree):
                if (of := distribution_of(module)) is not None:
                    found[of].add(name)
    return found
