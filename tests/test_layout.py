"""Layout and language of the code: names that occur once, and the words of the field (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests.conftest import ROOT
from tests.import_graph import trees

_OLD_WORDS = re.compile(
    r"\b(anew|once more|begun|goes on|go on|told|tells?|telling|asked for|who asks|asks for|nobody|what comes of"
    r"|what becomes of|left out|leaves out|leave out|passed over|in vain|is away|are away|was away|in trouble|parted by"
    r"|put together|lies in|lie in|stands? in|stands?|has it that|beside|figures|in pictures|whoever|thereby"
    r"|refus(?:e|es|al|als)|is there|is not there|wish(?:es)?|manners|patience|deeds|lets? go of)\b",
    re.IGNORECASE,
)
"""Words that a reader of the field stumbles over; the replacements are those of plain technical English."""
_PER_THOUSAND_LINES = 2.0
_BAD_OPENINGS = ("What", "Who", "How", "Tell whether")
_LOOK_TWICE = 600  # lines: a longer module often holds a second thought


def test_public_class_names_occur_once() -> None:
    found = defaultdict(list)
    for module, tree in trees("nutch2py").items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


def test_module_names_occur_once() -> None:
    """A package may have the name of another: its parent says which it is."""
    found = defaultdict(list)
    for path in sorted((ROOT / "nutch2py").rglob("*.py")):
        if path.name not in ("__init__.py", "__main__.py"):
            found[path.stem].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_every_package_says_what_it_is_for() -> None:
    assert [
        str(path.parent.relative_to(ROOT))
        for path in sorted((ROOT / "nutch2py").rglob("__init__.py"))
        if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ] == []


def _top_level_names(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update((alias.asname or alias.name) for alias in node.names)
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
    return found


def test_package_exports_are_listed_and_exist() -> None:
    """A package says which of its names other packages use; one that imports names for them has ``__all__``."""
    modules, wrong = trees("nutch2py"), []
    for path in sorted((ROOT / "nutch2py").rglob("__init__.py")):
        package = ".".join(path.parent.relative_to(ROOT).parts)
        line = (ast.get_docstring(modules[package]) or "").partition("\nExports: ")[2]
        exports = re.findall(r"``([\w.]+)``", line)
        if not exports:
            wrong.append(f"{package}: no line Exports")
        for export in exports:
            owner, _, name = f"{package}.{export}".rpartition(".")
            if f"{package}.{export}" not in modules and name not in _top_level_names(modules[owner]):
                wrong.append(f"{package}: {export} does not exist")
        reexports = any(
            isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}.")
            for node in modules[package].body
        )
        if reexports and "__all__" not in _top_level_names(modules[package]):
            wrong.append(f"{package}: no __all__")
    assert wrong == []


def test_docstrings_begin_with_imperative_or_noun() -> None:
    wrong = [
        f"{module}:{getattr(node, 'name', '')}: {text.splitlines()[0]}"
        for module, tree in trees("nutch2py").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if (text := ast.get_docstring(node) or "").startswith(_BAD_OPENINGS)
    ]
    assert wrong == []


def test_code_uses_words_of_the_field() -> None:
    lines = found = 0
    places = []
    for path in sorted((ROOT / "nutch2py").rglob("*.py")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            lines += 1
            if match := _OLD_WORDS.search(line):
                found += 1
                places.append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")
    assert 1000 * found / lines <= _PER_THOUSAND_LINES, "\n".join(places)


def test_long_modules_are_listed() -> None:
    """The list is where to look for a second thought; a module that is one thought may be long."""
    long = {
        str(path.relative_to(ROOT)): count
        for path in sorted((ROOT / "nutch2py").rglob("*.py"))
        if (count := len(path.read_text("utf-8").splitlines())) > _LOOK_TWICE
    }
    assert sorted(long) == []
