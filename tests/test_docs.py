"""Documentation that follows the code: properties, commands, plug-ins, links."""

from __future__ import annotations

import argparse
import ast
import importlib.machinery
import importlib.util
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest

from nutch2py.cli import all_command_parsers
from nutch2py.conf.property_ranges import PROPERTY_RANGES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
DEFAULTS = {
    (element.findtext("name") or ""): element.findtext("value") or ""
    for element in ET.parse(ROOT / "conf" / "nutch-default.xml").iter("property")
}
_GETTERS = {"get_trimmed", "get_int", "get_float", "get_bool", "get_strings"}


class Access(NamedTuple):
    """A property that the code names: ``getter`` of Configuration, and the fallback when it is a literal."""

    where: str
    getter: str
    name: str
    fallback: Any


@cache
def accesses() -> tuple[Access, ...]:
    """Return the accesses in the package; the trees are walked when the first test needs them."""
    return tuple(_accesses())


def _accesses() -> Iterator[Access]:
    for path in sorted((ROOT / "nutch2py").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            first, getter = node.args[0], node.func.attr
            if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
                continue
            receiver = ast.unparse(node.func.value)
            ours = getter in _GETTERS or (getter in ("get", "set", "set_default") and receiver.endswith("conf"))
            if not ours:
                continue
            fallback = None
            if len(node.args) > 1:
                try:
                    fallback = ast.literal_eval(node.args[1])
                except ValueError:
                    fallback = None
            yield Access(f"{path.relative_to(ROOT)}:{node.lineno}", getter, first.value, fallback)


def reads() -> list[Access]:
    """Return the accesses that read a property."""
    return [access for access in accesses() if not access.getter.startswith("set")]


def script(name: str) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(f"script_{name}", str(ROOT / "scripts" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_every_property_read_by_code_has_a_default() -> None:
    # parameters of index writers have names without a point
    named = [access for access in accesses() if "." in access.name or access.getter.startswith("set")]
    assert len(named) > 50
    missing = {f"{access.where} {access.name}" for access in named if access.name not in DEFAULTS}
    assert not missing


def test_fallbacks_in_code_equal_defaults() -> None:
    different = []
    for access in reads():
        default = DEFAULTS.get(access.name, "").strip()
        if access.fallback is None or not default or "${" in default:
            continue
        fallback: Any = access.fallback
        expected: Any = default
        if access.getter in ("get_int", "get_float"):
            expected, fallback = float(default.rstrip("fd")), float(fallback)
        elif access.getter == "get_bool":
            expected = default == "true"
        elif access.getter == "get_strings":
            expected, fallback = [part.strip() for part in default.split(",")], list(fallback)
        elif default.startswith("org.apache."):  # a class of Nutch, by which the code knows its own
            expected = default.rpartition(".")[2]
        if fallback != expected:
            different.append(f"{access.where} {access.name}: {fallback!r}, nutch-default.xml has {expected!r}")
    assert not different


def test_every_default_has_unique_name_and_description() -> None:
    elements = list(ET.parse(ROOT / "conf" / "nutch-default.xml").iter("property"))
    assert len(elements) == len(DEFAULTS)
    assert not [e.findtext("name") for e in elements if not (e.findtext("description") or "").strip()]


def test_generated_pages_are_up_to_date() -> None:
    stale = [
        path.name
        for path, text in script("docs").pages().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"{', '.join(stale)}: run scripts/docs"


def test_configuration_reference_lists_every_property() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert not [name for name in DEFAULTS if f"| `{name}` |" not in text]


def test_command_reference_lists_every_command_and_option() -> None:
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    everywhere = sections.pop("Options of every command")
    missing = []
    for name, parser in all_command_parsers().items():
        section = sections.get(name, "") + everywhere
        for action in parser._actions:
            missing += [
                f"{name} {option}"
                for option in action.option_strings
                if action.help != argparse.SUPPRESS
                and option not in ("-h", "--help")
                and not re.search(rf"`{re.escape(option)}[ `]", section)
            ]
    assert not missing


def test_every_argument_has_help() -> None:
    parsers = all_command_parsers().items()
    assert not [f"{name} {action.dest}" for name, parser in parsers for action in parser._actions if not action.help]


@pytest.mark.parametrize("name", sorted(all_command_parsers()))
def test_jobs_pages_describe_every_command(name: str) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "jobs").glob("*.md"))
    assert re.search(rf"nutch2py {name}\b", text)


def test_man_page_is_complete_and_well_formed() -> None:
    path = DOCS / "nutch2py.1"
    text = path.read_text(encoding="utf-8").replace("\\-", "-")
    assert {f".SS {name}" for name in all_command_parsers()} <= {*text.splitlines()}
    assert text.index(".SH EXIT STATUS") < text.index("\\fB255\\fR") < text.index(".SH FILES")
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-ww", "-z", path], capture_output=True, text=True, check=True)
        assert done.stderr == ""


def test_plugin_pages_list_every_extension_point_and_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    index = (DOCS / "plugins" / "index.md").read_text(encoding="utf-8")
    missing = []
    for group, entries in project["entry-points"].items():
        page = DOCS / "plugins" / f"{group.removeprefix('nutch2py.')}.md"
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        missing += [f"{group} {name}" for name in entries if f"`{name}`" not in text]
        if f"`{group}`" not in index:
            missing.append(group)
    assert not missing


def test_properties_named_on_pages_exist() -> None:
    prefixes = {name.partition(".")[0] for name in DEFAULTS} - {"headings"}
    named = [
        (page.name, name)
        for page in PAGES
        for name in re.findall(r"`([a-zA-Z]+\.[\w.-]+)(?:=[^`]*)?`", page.read_text(encoding="utf-8"))
        if name.partition(".")[0] in prefixes and not re.search(r"SCOPE|\.(md|py|txt|xml|csv|jsonl)$|\.$", name)
    ]
    assert len(named) > 100
    assert not [(page, name) for page, name in named if name not in DEFAULTS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_resolve(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not broken


def test_pictures_exist_for_light_and_dark_and_are_described() -> None:
    """``scripts/test pictures`` takes them from a real crawl."""
    found = set()
    for page in PAGES:
        for picture in re.findall(r"<picture>.*?</picture>", page.read_text(encoding="utf-8"), re.DOTALL):
            names = re.findall(r'(?:srcset|src)="([^"]+)"', picture)
            assert len(names) == 2
            assert re.search(r'alt="[^"]{20,}"', picture)
            found |= {(page.parent / name).resolve() for name in names}
    assert found == {*(DOCS / "pictures").iterdir()}
    assert {path.stem.rpartition("-")[2] for path in found} == {"light", "dark"}


def test_every_page_is_reachable_from_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        waiting += [(page.parent / target).resolve() for target in targets]
    assert not [str(page.relative_to(ROOT)) for page in PAGES if page not in reached]


def test_every_numeric_default_has_a_range() -> None:
    """A new property needs a range in nutch2py/conf/property_ranges.py; test_property_ranges.py has the rest."""
    number = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?[fF]?")
    root = ET.parse(ROOT / "conf" / "nutch-default.xml").getroot()
    values = {each.findtext("name") or "": (each.findtext("value") or "").strip() for each in root.iter("property")}
    assert [name for name, value in values.items() if number.fullmatch(value) and name not in PROPERTY_RANGES] == []
