"""docs/nutch-commands.md: every command of Nutch has a row, and commands named in a row exist."""

from __future__ import annotations

import json
import re

import pytest

from nutch2py.cli import all_command_parsers, main
from nutch2py.commands import COMMANDS
from nutch2py.commands.nutch_class_names import commands_by_class, resolve_command
from tests.conftest import ROOT
from tests.facts.nutch_commands import FACTS_FILE

FACTS = json.loads(FACTS_FILE.read_text(encoding="utf-8"))
"""Commands, options and classes as Nutch's own source has them (tests/facts/nutch_commands.py)."""
FOLDERS = frozenset(
    {"-dir", "-segment", "-segmentDir", "-outputDir", "-inputDirs", "-crawldb", "-linkdb", "-webgraphdb"}
)
"""Options of Nutch 1 that name a folder: all of them are the one table."""
HELP = frozenset({"-h", "-help"})
NO_OPTIONS = {
    "parse": {"-reparse"},  # a constant and a message of ParserJob, which reads no such argument
    "inject": {"-Ddb", "-sitemap"},  # a property in the usage; a field of a seed line
    "filterchecker": {"-Dproperty"}, "normalizerchecker": {"-Dproperty"},
    "robotsparser": {"-Dproperty"},  # properties in the usage
    "generate": {"-shouldFetch"}, "fetch": {"-activeThreads"},  # log lines
}  # fmt: skip


def commands_of(release: str) -> dict[str, set[str]]:
    """Return the options by command of a release of Nutch."""
    commands = [item for item in FACTS[release]["commands"].items() if item[1]["class"]]  # bin/nutch crawl is none
    return {name: {*command["options"]} - HELP - FOLDERS - NO_OPTIONS.get(name, set()) for name, command in commands}


NUTCH_2, NUTCH_1 = commands_of("2.4"), commands_of("1.23")
TEXT = (ROOT / "docs" / "nutch-commands.md").read_text(encoding="utf-8")
TWO, ONE = TEXT.split("## Nutch 1.23")


def rows(text: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", text, re.MULTILINE)]


def test_facts_name_their_source() -> None:
    for release, minimum in (("2.4", 20), ("1.23", 30)):
        source = FACTS[release]["source"]
        assert re.fullmatch("[0-9a-f]{40}", source["commit"])
        assert source["commit"][:10] in TEXT
        assert len(FACTS[release]["commands"]) > minimum


@pytest.mark.parametrize(("text", "names"), [(TWO, NUTCH_2), (ONE, NUTCH_1)])
def test_nutch_command_page_lists_every_command_and_option(text: str, names: dict[str, set[str]]) -> None:
    found: dict[str, set[str]] = {}
    for theirs, _ in rows(text):
        for words in re.findall(r"`([^`]*)`", theirs):
            name, *options = words.split()
            found.setdefault(name, set()).update(options)
    assert names.keys() - found.keys() == set()
    assert {name: missing for name in names if (missing := names[name] - {"-crawlId"} - found[name])} == {}
    assert found.keys() - names.keys() <= {"bin/crawl", "crawl"}


def test_every_option_of_crawl_script_is_on_page() -> None:
    named = " ".join(theirs for theirs, _ in rows(ONE) if theirs.startswith("`bin/crawl"))
    assert {*FACTS["1.23"]["crawl_script"]} - {*re.findall(r"--?[a-z-]+", named)} == set()


@pytest.mark.parametrize("name", sorted(NUTCH_2.keys() & all_command_parsers().keys()))
def test_nutch_2_option_is_accepted(name: str) -> None:
    """Scripts that call Nutch 2 keep working with the same arguments."""
    known = {option for action in all_command_parsers()[name]._actions for option in action.option_strings}
    assert not NUTCH_2[name] - known


@pytest.mark.parametrize("ours", sorted({ours for _, ours in rows(TEXT) if ours.startswith("`")}))
def test_nutch_2_replacements_exist(ours: str) -> None:
    name, *options = ours.strip("`").split()
    parser = all_command_parsers()[name]
    known = {option for action in parser._actions for option in action.option_strings}
    assert not {*options} - known


ABSENT_CLASSES = {
    "net.protocols.HttpDateFormat", "parse.ParsePluginsReader", "protocol.Content", "tools.Benchmark",
    "tools.DmozParser", "tools.ResolveUrls", "tools.proxy.TestbedProxy", "util.CommandRunner",
    "util.EncodingDetector", "util.StringUtil", "util.URLUtil", "util.domain.DomainStatistics",
}  # fmt: skip
"""Classes with a ``main`` that are no command here; the page says so."""


def test_every_class_with_main_is_command_or_said_to_be_absent() -> None:
    classes = {name.removeprefix("org.apache.nutch.") for name in FACTS["2.4"]["classes_with_main"]}
    ours = {name.removeprefix("org.apache.nutch.") for name in commands_by_class()}
    assert classes - ours == ABSENT_CLASSES
    assert [name for name in ABSENT_CLASSES if f"`{name.rpartition('.')[2]}`" not in TWO] == []
    of_commands = {command["class"] for command in FACTS["2.4"]["commands"].values()} - {
        "",
        "org.junit.runner.JUnitCore",
    }
    assert of_commands <= commands_by_class().keys()


def test_webapp_serves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["webapp", "--help"]) == 0
    assert "nutch2py serve" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(commands_by_class()))
def test_nutch_2_class_name_runs_its_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert resolve_command(name) in all_command_parsers()
    assert main([name, "--help"]) == 0
    assert f"nutch2py {resolve_command(name)}" in capsys.readouterr().out


def test_unknown_class_name_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["org.apache.nutch.crawl.Other"]) == 255
    assert "there is no command org.apache.nutch.crawl.Other" in capsys.readouterr().err


def test_list_of_commands_shows_each_command_once_in_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    shown = re.findall(r"^  ([a-z]\w*)  ", capsys.readouterr().out, re.MULTILINE)
    assert sorted(shown) == sorted(COMMANDS)
    assert shown[:3] == ["crawl", "search", "serve"]
