"""docs/nutch-commands.md: every command of Nutch has a row, and commands named in a row exist."""

from __future__ import annotations

import re

import pytest

from nutch2py.cli import all_command_parsers, main
from nutch2py.commands.nutch_class_names import commands_by_class, resolve_command
from tests.conftest import ROOT

_BATCH = "-all"
NUTCH_2 = {
    "inject": "",
    "hostinject": "",
    "generate": "-topN -noFilter -noNorm -adddays -sitemap -batchId",
    "fetch": f"{_BATCH} -threads -resume -numTasks -sitemap -stmDetect",
    "parse": f"{_BATCH} -resume -force -sitemap",
    "updatedb": _BATCH,
    "updatehostdb": "-linkDb",
    "readdb": "-stats -sort -url -dump -regex -content -headers -links -text",
    "readhostdb": "",
    "elasticindex": f"{_BATCH} -reindex",
    "solrindex": f"{_BATCH} -reindex",
    "solrdedup": "",
    "clean": "-noCommit",
    "solrclean": "",
    "index": f"{_BATCH} -reindex",
    "parsechecker": "-dumpText -forceAs",
    "indexchecker": "",
    "plugin": "",
    "nutchserver": "-port -host -log -stop",
    "webapp": "-port",
    "junit": "",
    "crawl": "",
}
"""The commands of bin/nutch with their options; all take -crawlId, too."""
_CHECKED = "-normalize -followRedirects -checkRobotsTxt -md"
NUTCH_1 = {
    "inject": "-overwrite -update -noFilter -noNormalize -filterNormalizeAll",
    "generate": "-topN -numFetchers -expr -adddays -force -noFilter -noNorm -maxNumSegments -hostdb",
    "freegen": "-filter -normalize -numFetchers",
    "fetch": "-threads",
    "parse": "-nofilter -nonormalize",
    "readdb": "-stats -sort -dump -format -regex -retry -status -expr -sample -url -topN",
    "mergedb": "-filter -normalize",
    "readlinkdb": "-url -dump -regex",
    "readseg": "-dump -list -get -nocontent -nofetch -nogenerate -noparse -noparsedata -noparsetext -recode",
    "mergesegs": "-filter -normalize -slice",
    "updatedb": "-force -normalize -filter -noAdditions",
    "invertlinks": "-noNormalize -noFilter -force",
    "mergelinkdb": "-normalize -filter",
    "dump": "-flatdir -mimeStats -reverseUrlDirs",
    "commoncrawldump": "-gzip -jsonArray -reverseKey -SimpleDateFormat -epochFilename -warc",
    "index": "-params -noCommit -deleteGone -filter -normalize -addBinaryContent -base64 -nocrawldb",
    "dedup": "-group -compareOrder",
    "clean": "-noCommit",
    "parsechecker": f"-dumpText -forceAs {_CHECKED}",
    "indexchecker": f"-dumpText -doIndex {_CHECKED}",
    "filterchecker": "-filterName -stdin",
    "normalizerchecker": "-normalizer -scope -stdin",
    "robotsparser": "",
    "domainstats": "",
    "protocolstats": "",
    "crawlcomplete": "-numReducers",
    "webgraph": "-filter -normalize",
    "linkrank": "",
    "scoreupdater": "",
    "nodedumper": "-inlinks -outlinks -scores -topn -output -asEff -asSequenceFile -group",
    "plugin": "",
    "junit": "",
    "warc": "-includeParseData -includeParseText -onlySuccessfulResponses",
    "updatehostdb": "-checkAll -checkNew -checkKnown -checkFailed -force -filter -normalize -tophosts -urlLimit",
    "readhostdb": "-get -dumpHomepages -dumpHostnames -expr",
    "sitemap": "-sitemapUrls -threads -noStrict -noFilter -noNormalize",
    "showproperties": "",
}
"""The same of the sources of 1.23, without the options that name a folder, and help."""
TEXT = (ROOT / "docs" / "nutch-commands.md").read_text(encoding="utf-8")
TWO, ONE = TEXT.split("## Nutch 1.23")


def rows(text: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", text, re.MULTILINE)]


@pytest.mark.parametrize(("text", "names"), [(TWO, NUTCH_2), (ONE, NUTCH_1)])
def test_nutch_command_page_lists_every_command_and_option(text: str, names: dict[str, str]) -> None:
    found: dict[str, set[str]] = {}
    for theirs, _ in rows(text):
        for words in re.findall(r"`([^`]*)`", theirs):
            name, *options = words.split()
            found.setdefault(name, set()).update(options)
    assert found.keys() - {"bin/crawl"} == names.keys()
    assert {name: missing for name in names if (missing := {*names[name].split()} - found[name])} == {}


@pytest.mark.parametrize("name", sorted(NUTCH_2.keys() & all_command_parsers().keys()))
def test_nutch_2_option_is_accepted(name: str) -> None:
    """Scripts that call Nutch 2 keep working with the same arguments."""
    known = {option for action in all_command_parsers()[name]._actions for option in action.option_strings}
    assert not {*NUTCH_2[name].split(), *([] if name == "parsechecker" else ["-crawlId"])} - known


@pytest.mark.parametrize("ours", sorted({ours for _, ours in rows(TEXT) if ours.startswith("`")}))
def test_nutch_2_replacements_exist(ours: str) -> None:
    name, *options = ours.strip("`").split()
    parser = all_command_parsers()[name]
    known = {option for action in parser._actions for option in action.option_strings}
    assert not {*options} - known


@pytest.mark.parametrize("name", sorted(commands_by_class()))
def test_nutch_2_class_name_runs_its_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert resolve_command(name) in all_command_parsers()
    assert main([name, "--help"]) == 0
    assert f"nutch2py {resolve_command(name)}" in capsys.readouterr().out


def test_unknown_class_name_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["org.apache.nutch.crawl.Other"]) == 255
    assert "there is no command org.apache.nutch.crawl.Other" in capsys.readouterr().err
