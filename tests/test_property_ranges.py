"""Numeric properties: each has a range, and a value out of it stops a job at its start with the name."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import nutch2py
from nutch2py import Crawl
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.conf.property_ranges import PROPERTY_RANGES, NumberRange
from nutch2py.errors import ConfigurationError

PACKAGE = Path(nutch2py.__file__).parent
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?[fF]?")


def numeric_defaults() -> dict[str, str]:
    root = ElementTree.parse(data_dir("conf") / "nutch-default.xml").getroot()
    values = {each.findtext("name") or "": (each.findtext("value") or "").strip() for each in root.iter("property")}
    return {name: value for name, value in values.items() if NUMBER.fullmatch(value)}


DEFAULTS = numeric_defaults()


def test_every_numeric_default_has_a_range_and_is_within_it() -> None:
    assert len(DEFAULTS) > 100
    assert [name for name in DEFAULTS if name not in PROPERTY_RANGES] == []
    assert [
        name for name, value in DEFAULTS.items() if not PROPERTY_RANGES[name].contains(float(value.rstrip("fF")))
    ] == []
    Configuration.load().check_numbers()


def test_range_matches_property_description() -> None:
    root = ElementTree.parse(data_dir("conf") / "nutch-default.xml").getroot()
    said = {each.findtext("name") or "": each.findtext("description") or "" for each in root.iter("property")}
    wrong = [name for name, text in said.items() for value in re.findall(r"(?:^|[.;] )(-?[01]):", text)
             if name in PROPERTY_RANGES and not PROPERTY_RANGES[name].contains(int(value))]  # fmt: skip
    assert wrong == []
    assert [
        name for name in PROPERTY_RANGES if "egative:" in said.get(name, "") and PROPERTY_RANGES[name].low > -2
    ] == []


def test_numbers_read_by_code_have_range_of_their_type() -> None:
    """Of names that are written out where they are read."""
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            name = node.args[0]
            if (
                node.func.attr not in ("get_int", "get_float")
                or not isinstance(name, ast.Constant)
                or "." not in str(name.value)
            ):
                continue
            allowed = PROPERTY_RANGES.get(str(name.value))
            if allowed is None or allowed.integer != (node.func.attr == "get_int"):
                wrong.append((path.name, name.value))
    assert wrong == []


def value_below(allowed: NumberRange) -> str:
    return str(int(allowed.low) - 1) if allowed.integer else repr(float(allowed.low - max(1, abs(allowed.low))))


def value_above(allowed: NumberRange) -> str:
    return str(int(allowed.high) + 1) if allowed.integer else repr(allowed.high * 2)


@pytest.mark.parametrize("name", sorted(PROPERTY_RANGES))
def test_value_out_of_range_is_named_in_error(name: str) -> None:
    allowed = PROPERTY_RANGES[name]
    for value in (value_below(allowed), value_above(allowed), "1e400", "nan", "-inf", "ten", "1_0", "१", "9" * 5000):
        with pytest.raises(ConfigurationError) as caught:
            Configuration({name: value}).check_numbers()
        assert f"property {name} is " in str(caught.value)
        if value in (value_below(allowed), value_above(allowed)):
            assert str(caught.value) == f"property {name} is {value}: write {allowed}, in -D"
    for value in (allowed.low, allowed.high):
        Configuration({name: str(int(value)) if allowed.integer else repr(float(value))}).check_numbers()
    Configuration({name: " "}).check_numbers()  # empty: the default


WRONG = "fetcher.threads.fetch"
SAID = f"property {WRONG} is -1: write a whole number from 1 to 2147483647, in "


@pytest.mark.parametrize("command", ["inject", "generate", "fetch", "parse", "updatedb", "index", "readdb", "pagerank"])
def test_command_with_value_out_of_range_does_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "seeds").write_text("http://a.example/\n")
    words = {"inject": [str(tmp_path / "seeds")], "generate": [], "pagerank": [], "readdb": ["-stats"]}
    where = f"storage.data.store=embedded:{tmp_path / 'table'}"
    code = main([command, *words.get(command, ["-all"]), "-D", where, "-D", f"{WRONG}=-1"])
    assert code == 2
    assert f"nutch2py: {SAID}-D\n" in capsys.readouterr().err
    assert not (tmp_path / "table").exists()


def test_error_names_file_of_value_out_of_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "nutch-site.xml"
    text = f"<configuration><property><name>{WRONG}</name><value>-1</value></property></configuration>"
    site.write_text(text, encoding="utf-8")
    assert main(["readdb", "-stats", "--conf", str(tmp_path)]) == 2
    assert f"nutch2py: {SAID}{site.resolve()}\n" in capsys.readouterr().err


def test_crawl_api_rejects_value_out_of_range(tmp_path: Path) -> None:
    where = f"embedded:{tmp_path / 'table'}"
    with pytest.raises(ConfigurationError, match=WRONG):
        Crawl(where, {WRONG: -1})
    with Crawl(where) as crawl:
        crawl.conf.set(WRONG, -1)
        with pytest.raises(ConfigurationError, match=WRONG):
            crawl.inject(["http://a.example/"])
    assert not (tmp_path / "table").exists()
