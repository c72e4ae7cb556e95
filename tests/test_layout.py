"""Layout and language of the code: names that occur once, and the words of the field (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.conftest import ROOT
from tests.import_graph import DOCUMENTED, is_private, trees

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
LONG_MODULES = {
    "nutch2py/backends/analysis/analyzer.py": "words of pages and of queries by one set of rules",
    "nutch2py/search/query/query_planner.py": "the steps from a query to its plan",
}
_LOOK_TWICE = 600  # lines: a longer module often holds a second thought
_PRIVATE_USES: dict[str, dict[str, list[str]]] = {
    "a step of an algorithm that is measured or compared with a simple one": {
        "backends.test_solr_client": ["_send_request"],
        "table.test_embedded_damage": ["_pack"],
        "table.test_hbase_parts": ["_send"],
        "test_docs": ["_actions"],
        "test_nutch_commands": ["_actions"],
    },
    "steps of a write or a job that the test counts, fails or interrupts": {
        "jobs.test_generate": ["_write"],
        "jobs.test_job_lock": ["_build_metadata", "_update_holders"],
        "jobs.test_order_of_writes": ["_write"],
        "kill.test_harness": ["_schedule"],
        "table.test_embedded_damage": ["_add_checksum"],
    },
    "state with a bound that no result shows": {
        "indexer.test_embedded": ["_pending"],
        "jobs.clocks": ["_clocks"],
        "table.test_embedded": ["_sample_keys"],
        "test_bounded_cache": ["_status_schemas", "_write_avro"],
    },
    "a process, thread or stream that the test ends or drives itself": {
        "jobs.test_job_lock": ["_thread"],
        "mapreduce.test_driver": ["_closed", "_relay_log", "_report_status", "_show", "_started"],
        "mapreduce.test_hadoop": ["_await_watchdog", "_watch_output"],
        "search.test_prefix_terms": ["_searcher"],
        "table.test_hbase_failures": ["_gateways"],
    },
}
"""Private names of the package that tests use, by test module, with the reason why they have no public seam."""


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
    assert sorted(long) == sorted(LONG_MODULES)


def private_uses() -> dict[str, set[str]]:
    """Return the private names of the package that each test module imports, reads, sets or names in a string."""
    ours = {name for tree in trees("nutch2py").values() for node in ast.walk(tree) for name in _names(node)}
    ours = {*filter(is_private, ours)} - DOCUMENTED
    found = defaultdict(set)
    for module, tree in trees("tests").items():
        own = {name for node in ast.walk(tree) for name in _defined(node)}
        used = {name for node in ast.walk(tree) for name in _used(node)}
        found[module.removeprefix("tests.")] = used & ours - own
    return {module: names for module, names in found.items() if names}


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr


def _defined(node: ast.AST) -> Iterator[str]:
    stored = not isinstance(node, ast.Name | ast.Attribute) or isinstance(node.ctx, ast.Store)
    if stored and (not isinstance(node, ast.Attribute) or ast.unparse(node.value) in ("self", "cls")):
        yield from _names(node)


def _used(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("cls", "super()"):
        yield node.attr
    elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nutch2py"):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.Constant) and re.fullmatch(r"nutch2py\.[\w.]+", str(node.value)):
        yield str(node.value).rpartition(".")[2]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("attr"):
        yield from (str(argument.value) for argument in node.args[1:2] if isinstance(argument, ast.Constant))


def test_tests_use_no_other_private_names() -> None:
    """A new test needs a documented seam: a parameter, or a public constant or attribute with a docstring."""
    listed = {
        f"{module}: {name}" for uses in _PRIVATE_USES.values() for module, names in uses.items() for name in names
    }
    found = {f"{module}: {name}" for module, names in private_uses().items() for name in names}
    assert sorted(found - listed) == []
    assert sorted(listed - found) == [], "no longer used: take it off the list"
