"""``nutch2py completion``: what shells offer is what commands take. ``nutch2py version``."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.commands import COMMANDS, command_parser
from nutch2py.commands.completion import SHELLS, completion_options, completion_script
from nutch2py.version import __version__

SUMMARIES = {name: command.summary for name, command in COMMANDS.items()}


def offered(tmp_path: Path, *words: str) -> list[str]:
    """Return what bash offers for the last of some words."""
    file = tmp_path / "completion"
    file.write_text(completion_script("bash", SUMMARIES, command_parser))
    quoted = " ".join(f"'{word}'" for word in ("nutch2py", *words))
    ask = f'source {file}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _nutch2py; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_are_completed(tmp_path: Path) -> None:
    assert set(offered(tmp_path, "")) == {*COMMANDS, "--help", "--version"}
    assert offered(tmp_path, "inj") == ["inject"]


@pytest.mark.parametrize("name", COMMANDS)
def test_options_of_command_are_completed(tmp_path: Path, name: str) -> None:
    expected = {spelling for option in completion_options(command_parser(name)) for spelling in option.spellings}
    assert set(offered(tmp_path, name, "-")) == expected


def test_option_values_and_files_are_completed(tmp_path: Path) -> None:
    assert offered(tmp_path, "crawl", "-stay", "") == ["host", "domain", "path", "anywhere"]
    assert offered(tmp_path, "domainstats", "d") == ["domain"]
    (tmp_path / "seeds.txt").write_text("")
    assert offered(tmp_path, "inject", "see") == ["seeds.txt"]
    assert offered(tmp_path, "crawl", "--conf", "see") == ["seeds.txt"]
    assert offered(tmp_path, "-D", "x=y", "generate", "-to") == ["-topN"]


def test_properties_runners_and_statuses_are_completed(tmp_path: Path) -> None:
    assert offered(tmp_path, "fetch", "-D", "fetcher.server.de") == ["fetcher.server.delay="]
    assert offered(tmp_path, "fetch", "-r", "") == ["inline", "local", "hadoop", "spark"]
    assert offered(tmp_path, "readdb", "-dump", "out", "-status", "un") == ["unfetched"]


def test_script_uses_no_expansion_that_zsh_lacks() -> None:
    """zsh takes the slice ``${words[@]:1:COUNT}`` for modifiers: "unrecognized modifier 'C'"."""
    assert not re.search(r"\$\{\w+\[@\]:", completion_script("zsh", SUMMARIES, command_parser))


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not on the PATH")
def test_commands_are_completed_by_zsh(tmp_path: Path) -> None:
    file = tmp_path / "completion"
    file.write_text(completion_script("zsh", SUMMARIES, command_parser))
    setup = "emulate -L sh; setopt kshglob noshglob braceexpand; COMP_WORDS=(nutch2py crawl -stay ''); COMP_CWORD=3"
    ask = f'source {file}; ask() {{ {setup}; _nutch2py; echo "${{COMPREPLY[@]}}"; }}; ask'
    done = subprocess.run(["zsh", "-f", "-c", ask], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["host", "domain", "path", "anywhere"]
    assert "modifier" not in done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_script_is_printed_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    if (program := shutil.which(shell)) is not None:
        subprocess.run([program, "-n"], input=text, text=True, check=True)


def test_version_lists_components(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "-json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nutch2py"] == __version__
    assert {"scrapy", "lmdb", "tantivy", "mrjob", "happybase", "pysolr"} <= {name.lower() for name in found}
    assert main(["version"]) == 0
    assert f"lmdb {found['lmdb']}" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_accepts_common_options(name: str) -> None:
    known = {spelling for word in completion_options(command_parser(name)) for spelling in word.spellings}
    common = {"-v", "--verbose", "-q", "--quiet", "--log-file", "--log-format", "--debug", "--conf", "-D", "-crawlId"}
    assert common <= known


def test_commands_import_nothing_that_only_some_of_them_need() -> None:
    """Every command imports all of them at its start: what one needs is imported where it runs."""
    code = "import nutch2py.commands, sys; print(*sorted(name for name in sys.modules if name.startswith('nutch2py.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[1] for name in done.stdout.split()}
    assert loaded == {"commands", "conf", "errors", "version"}
