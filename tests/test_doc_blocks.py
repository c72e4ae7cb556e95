"""Every fenced block of the documentation runs, or is parsed and checked by name; one that is neither fails."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from nutch2py.cli import all_command_parsers
from tests.doc_blocks import Block, Step, blocks, commands, run, simple_commands, steps, steps_to_run
from tests.installed_wheel import environment, install
from tests.site.examples import example_hosts
from tests.test_docs import DEFAULTS, DOCS, PAGES, ROOT

LANGUAGES = {"console", "sh", "text", "python", "xml", "json", "toml", "javascript", "html", "yaml"}
STEPS = [ROOT / "README.md", DOCS / "index.md", DOCS / "install.md", *sorted((DOCS / "how-to").glob("*.md"))]
"""Pages of steps: all commands run, but for blocks with a reason."""
TUTORIALS = [*(DOCS / "tutorial").glob("*.md")]
"""Pages that test_tutorials.py runs."""


def page_steps(page: Path) -> list[Step]:
    """Return what runs of a page; tests of their own run the Python of reference pages (test_plugin_pages.py, …)."""
    return steps_to_run(page.read_text(encoding="utf-8"), python=page in STEPS)


RUNNING = [page for page in PAGES if page not in TUTORIALS and page.name != "CHANGELOG.md" and page_steps(page)]
BLOCKS = [
    (page, block)
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]
    if page.name != "CHANGELOG.md"
    for block in blocks(page.read_text(encoding="utf-8"))
]
OWN_PROPERTIES = re.compile(r"drafts\.|mine\.|index\.db\.md")
"""Properties of plug-ins that pages define."""
_SECONDS = 600.0
"""It only ends a page that hangs."""


def where(page: Path, block: Block) -> str:
    return f"{page.relative_to(ROOT)}:{block.line}"


def of(*languages: str) -> list[tuple[Path, Block]]:
    return [(page, block) for page, block in BLOCKS if block.language in languages]


def test_every_block_names_its_language() -> None:
    assert len(BLOCKS) > 150
    assert [where(page, block) for page, block in BLOCKS if block.language not in LANGUAGES] == []


def test_commands_of_running_pages_are_console_blocks() -> None:
    """So that a page of steps cannot hide a command from the test that runs it."""
    pages = {*STEPS, *TUTORIALS}
    assert [where(page, block) for page, block in of("sh") if page in pages] == []
    for _, block in of("console"):
        assert steps(block.text)


def argument_errors(words: list[str]) -> str:
    """Return why the parser of a command rejects words, "" when it accepts them."""
    parser = all_command_parsers().get(words[0])
    if parser is None:
        return f"there is no command {words[0]}"
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(errors):
            parser.parse_args(words[1:])
    except SystemExit as end:
        return errors.getvalue().strip() if end.code else ""
    except Exception as error:  # noqa: BLE001 - a type of an argument may raise an error of the program
        return str(error)
    return ""


def checked(words: list[str]) -> Iterator[str]:
    """Yield what is wrong with a command: words that its parser rejects, unknown properties, missing scripts."""
    while words and (words[0] in ("sudo", "bash", "nohup", "time", "export") or re.fullmatch(r"\w+=.*", words[0])):
        words = words[1:]
    if not words:
        return
    for name in re.findall(r"(?<=-D )'?([\w.]+)=", " ".join(words)):
        if name not in DEFAULTS and not OWN_PROPERTIES.match(name):
            yield f"there is no property {name}"
    program = words[0].rpartition("/")[2]
    if re.match(r"(nutch2py/)?(scripts|bench|tests)/", words[0]):
        path = ROOT / words[0].removeprefix("nutch2py/")
        if not path.is_file():
            yield f"there is no {words[0]}"
        if words[0].endswith("scripts/test") and re.fullmatch(r"[a-z_]+", words[1] if len(words) > 1 else ""):
            special = words[1] in ("long", "cluster")
            if not special and not (ROOT / "tests" / words[1] / "__main__.py").is_file():
                yield f"scripts/test has no {words[1]}"
    if program == "nutch2py" and len(words) > 1 and not words[1].startswith("-"):
        error = argument_errors(words[1:])
        if error:
            yield error


@pytest.mark.parametrize(
    ("page", "block"),
    of("console", "sh"),
    ids=lambda value: str(getattr(value, "line", value.name if isinstance(value, Path) else value)),
)
def test_commands_exist_with_their_options_and_properties(page: Path, block: Block) -> None:
    if block.language == "sh":
        done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    found = [each for line in commands(block) for words in simple_commands(line) for each in checked(words)]
    assert found == [], where(page, block)


def test_options_of_synopses_exist() -> None:
    wrong = []
    for page, block in of("text"):
        for name, rest in re.findall(r"^nutch2py (\S+)(.*(?:\n +[\[-].*)*)$", block.text, re.MULTILINE):
            parser = all_command_parsers().get(name)
            known = {option for action in parser.actions() for option in action.option_strings} if parser else set()
            options = re.findall(r"(?<![\w<-])--?[A-Za-z][\w-]*", rest)
            wrong += [f"{where(page, block)}: {name} {option}" for option in options if option not in known]
            wrong += [] if parser else [f"{where(page, block)}: {name}"]
    assert not wrong


def test_python_blocks_parse_and_import_existing_names() -> None:
    found = of("python")
    assert len(found) > 15
    for page, block in found:
        for node in ast.walk(ast.parse(block.text, where(page, block))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "nutch2py":
                module = importlib.import_module(node.module or "")
                missing = [each.name for each in node.names if not hasattr(module, each.name)]
                assert missing == [], where(page, block)


def test_data_blocks_parse_and_name_existing_properties() -> None:
    for page, block in of("xml"):
        root = ET.fromstring(f"<blocks>{block.text}</blocks>")
        names = [each.text or "" for each in root.iter("name")]
        assert [name for name in names if name not in DEFAULTS] == [], where(page, block)
    for page, block in of("json"):
        assert json.loads(block.text), where(page, block)
    for page, block in of("yaml"):
        assert yaml.safe_load(block.text), where(page, block)
    for page, block in of("toml"):
        assert tomllib.loads(block.text), where(page, block)
    node = shutil.which("node")
    for _, block in of("javascript") if node else ():
        done = subprocess.run([str(node), "--input-type=module", "--check"], input=block.text, text=True, check=False)
        assert done.returncode == 0


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of an installed wheel's commands; its defaults name a proxy to the example hosts."""
    folder = tmp_path_factory.mktemp("installed")
    python = install(folder)
    (defaults,) = folder.glob("venv/lib/python*/site-packages/nutch2py/**/nutch-default.xml")
    with example_hosts(folder) as port:
        text = defaults.read_text(encoding="utf-8")
        changes = {"http.proxy.host": "127.0.0.1", "http.proxy.port": str(port), "fetcher.server.delay": "0"}
        for name, value in changes.items():
            text, count = re.subn(rf"(<name>{re.escape(name)}</name>\s*<value>)[^<]*", rf"\g<1>{value}", text)
            assert count == 1
        defaults.write_text(text, encoding="utf-8")
        yield python.parent


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.stem)
def test_page_runs_as_written(page: Path, installed: Path, tmp_path: Path) -> None:
    variables = environment(PATH=f"{installed}:{environment()['PATH']}", HOME=str(tmp_path))
    wrong = run(page_steps(page), tmp_path, variables, seconds=_SECONDS)
    assert not wrong, "\n".join(wrong)


def test_steps_that_fail_or_print_something_else_are_noticed(tmp_path: Path) -> None:
    found = steps("$ echo one\ntwo\n$ false\n$ echo three\nthree\n")
    assert len(run(found, tmp_path, environment(), seconds=_SECONDS)) == 2


def test_wrong_commands_are_noticed() -> None:
    wrong = ["nutch2py nosuch", "nutch2py generate -topM 5", "nutch2py fetch 1-1 -D no.such=1", "scripts/nosuch"]
    for line in wrong:
        (words,) = simple_commands(line)
        assert [*checked(words)], line
    assert [*simple_commands("a <b 2>&1 | c 'd e' && f &")] == [["a"], ["c", "d e"], ["f"]]
    assert shlex.join(next(simple_commands("x > y z"))) == "x z"
