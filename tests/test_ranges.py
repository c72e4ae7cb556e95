"""Properties that are numbers: each has its range, and what is out of it keeps a job from starting, by name."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import nutch2py
from nutch2py import Crawl
from nutch2py.cli import main
from nutch2py.conf import Configuration, data_folder
from nutch2py.errors import ConfigurationError
from nutch2py.ranges import RANGES, Range

PACKAGE = Path(nutch2py.__file__).parent
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?[fF]?")


def numeric_defaults() -> dict[str, str]:
    root = ElementTree.parse(data_folder("conf") / "nutch-default.xml").getroot()
    values = {each.findtext("name") or "": (each.findtext("value") or "").strip() for each in root.iter("property")}
    return {name: value for name, value in values.items() if NUMBER.fullmatch(value)}


DEFAULTS = numeric_defaults()


def test_every_number_of_the_defaults_has_a_range_and_is_in_it() -> None:
    assert len(DEFAULTS) > 100
    assert [name for name in DEFAULTS if name not in RANGES] == []
    assert [name for name, value in DEFAULTS.items() if not RANGES[name].holds(float(value.rstrip("fF")))] == []
    Configuration.load().check_numbers()


def test_a_range_has_what_the_description_promises() -> None:
    root = ElementTree.parse(data_folder("conf") / "nutch-default.xml").getroot()
    said = {each.findtext("name") or "": each.findtext("description") or "" for each in root.iter("property")}
    wrong = [name for name, text in said.items() for value in re.findall(r"(?:^|[.;] )(-?[01]):", text)
             if name in RANGES and not RANGES[name].holds(int(value))]  # fmt: skip
    assert wrong == []
    assert [name for name in RANGES if "egative:" in said.get(name, "") and RANGES[name].low > -2] == []


def test_every_number_that_the_code_reads_has_a_range_of_its_type() -> None:
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
            allowed = RANGES.get(str(name.value))
            if allowed is None or allowed.whole != (node.func.attr == "get_int"):
                wrong.append((path.name, name.value))
    assert wrong == []


def value_below(allowed: Range) -> str:
    return str(int(allowed.low) - 1) if allowed.whole else repr(float(allowed.low - max(1, abs(allowed.low))))


def value_above(allowed: Range) -> str:
    return str(int(allowed.high) + 1) if allowed.whole else repr(allowed.high * 2)


@pytest.mark.parametrize("name", sorted(RANGES))
def test_what_is_out_of_its_range_is_named(name: str) -> None:
    allowed = RANGES[name]
    for value in (value_below(allowed), value_above(allowed), "1e400", "nan", "-inf", "ten", "1_0", "१", "9" * 5000):
        with pytest.raises(ConfigurationError) as caught:
            Configuration({name: value}).check_numbers()
        assert f"property {name} is " in str(caught.value)
        if value in (value_below(allowed), value_above(allowed)):
            assert str(caught.value) == f"property {name} is {value}: write {allowed}, in -D"
    for value in (allowed.low, allowed.high):
        Configuration({name: str(int(value)) if allowed.whole else repr(float(value))}).check_numbers()
    Configuration({name: " "}).check_numbers()  # empty: the default


WRONG = "fetcher.threads.fetch"
SAID = f"property {WRONG} is -1: write a whole number from 1 to 2147483647, in "


@pytest.mark.parametrize("command", ["inject", "generate", "fetch", "parse", "updatedb", "index", "readdb", "pagerank"])
def test_a_command_does_not_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    (tmp_path / "seeds").write_text("http://a.example/\n")
    words = {"inject": [str(tmp_path / "seeds")], "generate": [], "pagerank": [], "readdb": ["-stats"]}
    where = f"storage.data.store=embedded:{tmp_path / 'table'}"
    code = main([command, *words.get(command, ["-all"]), "-D", where, "-D", f"{WRONG}=-1"])
    assert code == 2
    assert f"nutch2py: {SAID}-D\n" in capsys.readouterr().err
    assert not (tmp_path / "table").exists()


def test_the_file_with_the_wrong_number_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "nutch-site.xml"
    text = f"<configuration><property><name>{WRONG}</name><value>-1</value></property></configuration>"
    site.write_text(text, encoding="utf-8")
    assert main(["readdb", "-stats", "--conf", str(tmp_path)]) == 2
    assert f"nutch2py: {SAID}{site.resolve()}\n" in capsys.readouterr().err


def test_a_program_is_told_when_it_makes_a_crawl_and_when_it_starts_a_job(tmp_path: Path) -> None:
    where = f"embedded:{tmp_path / 'table'}"
    with pytest.raises(ConfigurationError, match=WRONG):
        Crawl(where, {WRONG: -1})
    with Crawl(where) as crawl:
        crawl.conf.set(WRONG, -1)
        with pytest.raises(ConfigurationError, match=WRONG):
            crawl.inject(["http://a.example/"])
    assert not (tmp_path / "table").exists()
