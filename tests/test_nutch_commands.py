"""docs/nutch-commands.md: every command of Nutch has a row, and what a row names here is there."""

from __future__ import annotations

import re

import pytest

from nutch2py.cli import commands, main
from nutch2py.commands.old_names import class_names, command_of
from tests.conftest import ROOT

NUTCH_2 = [
    "inject",
    "hostinject",
    "generate",
    "fetch",
    "parse",
    "updatedb",
    "updatehostdb",
    "readdb",
    "readhostdb",
    "elasticindex",
    "solrindex",
    "solrdedup",
    "clean",
    "solrclean",
    "index",
    "parsechecker",
    "indexchecker",
    "plugin",
    "nutchserver",
    "webapp",
    "junit",
    "crawl",
]
NUTCH_1 = [
    "inject",
    "generate",
    "freegen",
    "fetch",
    "parse",
    "readdb",
    "mergedb",
    "readlinkdb",
    "readseg",
    "mergesegs",
    "updatedb",
    "invertlinks",
    "mergelinkdb",
    "dump",
    "commoncrawldump",
    "index",
    "dedup",
    "clean",
    "parsechecker",
    "indexchecker",
    "filterchecker",
    "normalizerchecker",
    "robotsparser",
    "domainstats",
    "protocolstats",
    "crawlcomplete",
    "webgraph",
    "linkrank",
    "scoreupdater",
    "nodedumper",
    "plugin",
    "junit",
    "warc",
    "updatehostdb",
    "readhostdb",
    "sitemap",
    "showproperties",
]
TEXT = (ROOT / "docs" / "nutch-commands.md").read_text(encoding="utf-8")
TWO, ONE = TEXT.split("## Nutch 1.23")


def rows(text: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", text, re.MULTILINE)]


@pytest.mark.parametrize(("text", "names"), [(TWO, NUTCH_2), (ONE, NUTCH_1)])
def test_every_command_has_a_row(text: str, names: list[str]) -> None:
    told = {word.split()[0] for theirs, _ in rows(text) for word in re.findall(r"`([^`]*)`", theirs)}
    assert told - {"bin/crawl"} == {*names}


@pytest.mark.parametrize("ours", sorted({ours for _, ours in rows(TEXT) if ours.startswith("`")}))
def test_what_stands_for_it_is_there(ours: str) -> None:
    name, *options = ours.strip("`").split()
    parser = commands()[name]
    known = {option for action in parser._actions for option in action.option_strings}
    assert not {*options} - known


@pytest.mark.parametrize("name", sorted(class_names()))
def test_a_class_of_nutch_2_is_its_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_of(name) in commands()
    assert main([name, "--help"]) == 0
    assert f"nutch2py {command_of(name)}" in capsys.readouterr().out


def test_another_class_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["org.apache.nutch.crawl.Other"]) == 255
    assert "there is no command org.apache.nutch.crawl.Other" in capsys.readouterr().err
