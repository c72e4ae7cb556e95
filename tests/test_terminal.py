"""No text of the web controls a terminal: what commands print, log and report passes one escaping place."""

from __future__ import annotations

import ast
import io
import logging
from pathlib import Path

import pytest

import nutch2py
from nutch2py import cli
from nutch2py.conf.configuration import Configuration
from nutch2py.crawl_loop.progress_view import create_view
from nutch2py.support import log_file
from nutch2py.support.reporting import print_output, warn
from nutch2py.support.terminal import EscapingStream, StyledText, escape_controls
from tests.site.server import Reply, ScriptedSite

PACKAGE = Path(nutch2py.__file__).parent
CONTROLS = [
    *(chr(code) for code in (*range(9), 11, 12, *range(14, 32), *range(127, 160))),
    *"\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    "\ud800", "\udc1b",
]  # fmt: skip
HOSTILE = "x\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\rover\x08\x85y"
RAW_OUTPUT = {
    "__main__.py:_exit_interrupted": "a fixed line, from a signal handler",
    "mapreduce/runners/fork_server.py": "standard streams of a task: files, or the pipe to the driver",
    "mapreduce/runners/client_watchdog.py": "the pipe to the driver, which prints its lines",
}
"""Places that write to the standard streams without the escaping stream, with the reason."""


def controls_in(text: str) -> list[str]:
    return [repr(c) for c in text.replace("\r\n", "\n") if c in CONTROLS or c == "\r"]


@pytest.mark.parametrize("control", [*CONTROLS, "\r"], ids=lambda c: f"{ord(c):04x}")
def test_control_character_is_escaped_as_json_does(control: str) -> None:
    assert escape_controls(f"a{control}b") == f"a\\u{ord(control):04x}b"


def test_text_of_languages_and_line_ends_is_kept() -> None:
    text = "Füße\t北京奥运会 می\u200cخواهم 👩\u200d🚀 e\u0301\r\nnext\n"
    assert escape_controls(text) == text


def test_only_styled_text_may_control_the_terminal() -> None:
    stream = io.StringIO()
    escaping = EscapingStream(stream)
    print(StyledText("\x1b[1mbold\x1b[0m"), file=escaping, end="")
    print(StyledText("\x1b[1m") + "\x1b[2J", file=escaping, end="")  # the sum is no styled text
    escaping.writelines(["\x07", "\x9b"])
    assert stream.getvalue() == "\x1b[1mbold\x1b[0m\\u001b[1m\\u001b[2J\\u0007\\u009b"


def test_output_and_warnings_of_library_calls_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_output(HOSTILE)
    warn(HOSTILE)
    captured = capsys.readouterr()
    assert controls_in(captured.out + captured.err) == []
    assert "\\u001b]0;owned\\u0007" in captured.out
    assert "\\u202egnp.exe" in captured.err


def test_log_file_lines_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log_file.open_log(path, "text")
    try:
        warn(HOSTILE)
        logging.getLogger("library").warning("%s", HOSTILE)
    finally:
        log_file.close_log()
    text = path.read_text(encoding="utf-8")
    assert text.count("\\u001b[2J") == 2
    assert controls_in(text) == []


def test_live_progress_escapes_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    view = create_view(stream)
    view.on_line(f"fetching http://a.org/{HOSTILE}")
    view.close()
    assert controls_in(escape_controls(stream.getvalue())) == []
    assert "\x1b]0" not in stream.getvalue()


@pytest.fixture
def hostile_site(site: ScriptedSite) -> ScriptedSite:
    """A page with control characters in each place that a command prints."""
    title = "needle \x1b]0;owned\x07 \u202egnp.exe \x9b2J \u2066t"
    body = (
        f"<html><head><title>{title}</title><meta name=description content='\u202ed\x1b[2J'></head><body>"
        f"<p>needle text \x1b[2J\x07 \u202egnp.exe \x9b31m \u2028 &#x202e; &#x2066;</p>"
        f"<a href='/next\u202e'>anchor \x1b[5m\u202eanchor</a></body></html>"
    ).encode()
    headers = [("Content-Language", "en"), ("X-Odd", "a\x1b[2Jb\x9b\u202ec"), ("ETag", '"\x1b[2J"')]
    site.on("/", Reply(body=body, content_type="text/html; charset=utf-8", headers=headers))
    next_body = b"<title>\xe2\x80\xaenext</title>needle"
    site.on("/next%E2%80%AE", Reply(body=next_body, content_type="text/html; charset=utf-8"))
    return site


def run(capsys: pytest.CaptureFixture[str], conf: Configuration, *argv: str) -> str:
    options = {name: conf.get(name, "") for name in ("storage.data.store", "storage.embedded.map.size")}
    options |= {"http.agent.name": "nutch-test", "http.filter.ipaddress.exclude": "", "fetcher.server.delay": "0"}
    options |= {"index.parse.md": "description", "mapreduce.runner": "inline"}
    cli.main([*argv, *(word for name, value in options.items() for word in ("-D", f"{name}={value}"))])
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_commands_print_hostile_page_without_control_characters(
    hostile_site: ScriptedSite, conf: Configuration, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{hostile_site.port}/"
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{url}\n", encoding="utf-8")
    rules = tmp_path / "robots.txt"
    rules.write_text("User-agent: *\nDisallow: /\x1b\n", encoding="utf-8")
    urls = tmp_path / "urls.txt"
    urls.write_text(f"{url}\x1b[2J\u202e\n", encoding="utf-8")
    commands = [
        ["crawl", str(seeds), "-pages", "3", "-depth", "2"],
        ["readdb", "-url", url, "-content", "-headers", "-links", "-text"],
        ["readdb", "-stats"],
        ["readdb", "-topN", "5"],
        ["readlinkdb", "-url", url],
        ["readhostdb", "-get", "127.0.0.1"],
        ["search", "needle"],
        ["search", "needle", "-json"],
        ["search", "needle", "-explain", "-facets"],
        ["search", "\x1b[2J\u202e"],
        ["parsechecker", url, "-dumpText"],
        ["parsechecker", f"{url}\x1b[2J\u202e"],
        ["indexchecker", url],
        ["robotsparser", str(rules), str(urls), "bot"],
        ["filterchecker", f"{url}\x1b[2J\u202e"],
        ["normalizerchecker", f"{url}\x1b[2J\u202e"],
        ["jobs"],
        ["\x1b[2J"],
        ["readdb", "-url", "\x1b[2J\u202e"],
        ["fetch", "\x1b[2J\u202e"],
    ]
    printed = {" ".join(command): run(capsys, conf, *command) for command in commands}
    assert {name: controls_in(text) for name, text in printed.items() if controls_in(text)} == {}
    assert "needle" in printed[f"readdb -url {url} -content -headers -links -text"]
    assert "\\u202e" in printed[f"readdb -url {url} -content -headers -links -text"]
    assert "\\u202e" in printed[f"parsechecker {url} -dumpText"]


class _Writes(ast.NodeVisitor):
    """Finds writes to the standard streams that do not pass ``sys.stdout`` and ``sys.stderr`` as they are."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._functions = [""]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._functions.append(node.name)
        self.generic_visit(node)
        self._functions.pop()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        text = ast.unparse(node)
        if text in ("sys.__stdout__", "sys.__stderr__", "sys.stdout.buffer", "sys.stderr.buffer"):
            self.found.append(self._functions[-1])
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name, first = ast.unparse(node.func), ast.unparse(node.args[0]) if node.args else ""
        if name in ("os.write", "open", "os.fdopen", "io.open") and first in ("1", "2", "sys.stdout.fileno()"):
            self.found.append(self._functions[-1])
        self.generic_visit(node)


def test_no_module_bypasses_the_escaping_streams() -> None:
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        visitor = _Writes()
        visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
        name = path.relative_to(PACKAGE).as_posix()
        found |= {name if name in RAW_OUTPUT else f"{name}:{function}" for function in visitor.found}
    assert found == {*RAW_OUTPUT}
