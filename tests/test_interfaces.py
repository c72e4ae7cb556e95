"""Required and optional members of plug-ins: defined in one module, documented, and never looked up by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from nutch2py import interfaces
from nutch2py.interfaces import EXTENSION_POINTS, HtmlDocument, HTMLMetaTags, Outlink, Parse, ScoredLink
from nutch2py.plugins import loading
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage
from tests.test_plugins import built_ins

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "nutch2py"
LOOKED_UP = {
    ("plugins/plugin_list.py", "main"): "a class that the command plugin runs on request",
    ("mapreduce/driver.py", "copy_output"): "runners of mrjob, ours and those of the package",
    ("mapreduce/driver.py", "explain"): "runners of mrjob, ours and those of the package",
    ("mapreduce/lock_check.py", "CLOCK_BOOTTIME"): "a clock that only Linux has",
    ("rest/dispatch/operation.py", "id"): "answers, of which some have an id that the audit log names",
    ("table/embedded/blobs.py", "compressor"): "a value of this thread that is made at its first use",
    ("table/embedded/blobs.py", "decompressor"): "a value of this thread that is made at its first use",
    ("table/embedded/storage/avro_schema.py", "name"): "schemas of avro, of which only some have a name",
    ("table/embedded/storage/avro_schema.py", "schemas"): "schemas of avro, of which a union has branches",
    (
        "table/hbase/thrift_client/hbase_errors.py",
        "message",
    ): "exceptions of Thrift, of which only those of HBase have a message",
}
"""Attributes that the code looks for by a name written out, and why; none is a plug-in's."""


def lookups() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("getattr", "hasattr")
            ):
                name = node.args[1]
                if isinstance(name, ast.Constant):
                    yield path.relative_to(PACKAGE).as_posix(), str(name.value)


def test_plugin_members_are_not_looked_up_by_name() -> None:
    """An optional member belongs into nutch2py.interfaces with its default; then it can be read as any other."""
    assert set(lookups()) == set(LOOKED_UP)


def test_runtime_checkable_protocols_are_not_used() -> None:
    asking = [path.name for path in PACKAGE.rglob("*.py") if "runtime_checkable" in path.read_text(encoding="utf-8")]
    assert not asking


def classes() -> dict[str, ast.ClassDef]:
    tree = ast.parse((PACKAGE / "interfaces.py").read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def test_every_protocol_is_an_extension_point_or_its_base() -> None:
    points = {contract.__name__ for contract in EXTENSION_POINTS.values()}
    protocols = {name for name, node in classes().items() if any(ast.unparse(b) == "Protocol" for b in node.bases)}
    assert protocols == points | {"Plugin", "_PagePlugin"}


def test_every_contract_member_has_a_docstring() -> None:
    missing = []
    for name, node in classes().items():
        if not any(ast.unparse(base) == "Protocol" for base in node.bases):
            continue
        for member, after in zip(node.body, [*node.body[1:], None], strict=True):
            if isinstance(member, ast.FunctionDef) and not ast.get_docstring(member):
                missing.append(f"{name}.{member.name}")
            if isinstance(member, ast.AnnAssign):
                text = after.value if isinstance(after, ast.Expr) else None
                if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
                    missing.append(f"{name}.{ast.unparse(member.target)}")
    assert not missing


def members(contract: Any) -> dict[str, bool]:
    """Give the members of a contract, and whether a plug-in must have them."""
    required = contract.__abstractmethods__ | {*loading.required_attributes(contract)}
    optional = {
        name
        for cls in contract.__mro__
        if cls.__module__ == interfaces.__name__
        for name in vars(cls)
        if not name.startswith("_")
    }
    return {name: name in required for name in required | optional}


def test_contract_members_are_classified() -> None:
    assert members(interfaces.Parser) == {
        "fields": True, "parse": True, "content_types": False, "part_of": False, "java_class": False
    }  # fmt: skip


def default_of(contract: Any, name: str) -> str:
    """Give what a page says of an optional member's default."""
    value = vars(next(cls for cls in contract.__mro__ if name in vars(cls)))[name]
    if isinstance(value, cached_property):
        return "`fields`"
    if name == "encode_query":
        return "`encode`"
    if callable(value):
        return "does nothing"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value!r}`"


@pytest.mark.parametrize("point", EXTENSION_POINTS)
def test_plugin_page_lists_every_member_with_arguments_and_default(point: str) -> None:
    contract = EXTENSION_POINTS[point]
    text = (ROOT / "docs" / "plugins" / f"{point}.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `(\w+(?:\([\w, ]*\))?)` \| (required|`[^`]*`|does nothing) \|", text, re.MULTILINE))
    expected = {}
    for name, required in members(contract).items():
        value: Any = next((vars(cls)[name] for cls in contract.__mro__ if name in vars(cls)), None)
        arguments = ""
        if callable(value):
            arguments = f"({', '.join(value.__code__.co_varnames[1 : value.__code__.co_argcount])})"
        expected[name + arguments] = "required" if required else default_of(contract, name)
    assert {name: said for name, said in table.items() if name in expected} == expected


def test_plugin_pages_document_value_types() -> None:
    values = {
        "parser": [*Parse._fields, *Outlink._fields],
        "scoringfilter": ScoredLink._fields,
        "parsefilter": [*HtmlDocument.__dataclass_fields__, *HTMLMetaTags.__dataclass_fields__],
        "indexingfilter": [*NutchDocument.__slots__, *(n for n in vars(NutchDocument) if not n.startswith("_"))],
    }
    missing = []
    for point, names in values.items():
        text = (ROOT / "docs" / "plugins" / f"{point}.md").read_text(encoding="utf-8")
        code = " ".join(re.findall(r"`([^`\n]+)`", text))
        missing += [f"{point} {name}" for name in names if not re.search(rf"\b{name}\b", code)]
    assert not missing


def test_plugin_page_documents_every_webpage_column() -> None:
    text = (ROOT / "docs" / "plugins" / "index.md").read_text(encoding="utf-8")
    columns = [field.attribute for field in WebPage.FIELDS.values()]
    assert len(columns) > 20
    assert not [name for name in columns if f"`{name}`" not in text]


@pytest.mark.parametrize(("point", "name", "value"), built_ins())
def test_every_built_in_plugin_subclasses_its_contract(point: str, name: str, value: str) -> None:
    entry = EntryPoint(name, value, f"nutch2py.{point}")
    assert EXTENSION_POINTS[point] in entry.load().__mro__
    assert loading.load_plugin(entry).implementation is entry.load()
