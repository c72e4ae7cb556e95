"""Start of the browser: failures are reported with a remedy; no privileges are needed."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nutch2py.browser import chromium
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from tests.browser.conftest import Render
from tests.processes import alive, commands, wait_until
from tests.site.server import Reply, ScriptedSite

SHELL = b"<div id=root></div><script>root.textContent = 'made ' + 'by a script'; fetch('/shown')</script>"


def program(folder: Path, text: str) -> str:
    path = folder / "browser"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\nexit 0\n", "the browser does not start"),
        ("#!/bin/sh\nkill -SEGV $$\n", "the browser does not start"),
        ("#!/none\n", "the browser does not start"),
        ("\x7fELF, of another processor", "the browser does not start"),
        ("#!/bin/sh\necho 'unknown option: remote-debugging-pipe' >&2\nexit 2\n", "unknown option"),
        ("#!/bin/sh\nexec sleep 600\n", "the browser does not start"),
    ],
    ids=["ends", "crashes", "no interpreter", "no program", "too old", "says nothing"],
)
def test_invalid_browser_path_is_rejected(
    site: ScriptedSite, render: Render, tmp_path: Path, text: str, said: str
) -> None:
    site.on("/", Reply(body=SHELL))
    with pytest.raises(ConfigurationError, match=said):
        render(
            site.url("/"),
            browser_executable=program(tmp_path, text),
            browser_start_timeout="3" if "sleep" in text else "60",
            browser_sandbox=str(
                os.geteuid() != 0
            ).lower(),  # else setpriv needs the folder of the test for another user
        )
    assert not render.pages


def test_missing_browser_error_names_fix(site: ScriptedSite, render: Render, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ConfigurationError, match="apt-get install chromium"):
        render(site.url("/"))
    assert site.seen == []


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
def test_missing_temp_folder_is_reported(
    site: ScriptedSite, render: Render, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(error, os.strerror(error))

    site.on("/", Reply(body=SHELL))
    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(ConfigurationError, match=rf"{os.strerror(error)}.*TMPDIR"):
        render(site.url("/"))
    assert not render.pages


TASK = """
import signal, sys
from nutch2py.browser.renderer_factory import open_renderer
from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.fetcher import Fetcher, FetchItem
from nutch2py.url.keys import reverse_url
from nutch2py.records.webpage import WebPage
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
url, rules = sys.argv[1:]
conf = Configuration.load(overrides={
    "http.agent.name": "probe", "http.filter.ipaddress.exclude": "", "plugin.includes.add": "protocol-browser",
    "browser.rules": rules, "browser.time.limit": "600", "browser.start.timeout": "180",
})
item = FetchItem(reverse_url(url), url, WebPage())
Fetcher(conf, 1, open_renderer=open_renderer(conf)).run(iter([item]), lambda item: print(item.page.content))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a directory that every user can access, for the files of a task."""
    path = Path(tempfile.mkdtemp(prefix="browser-task-"))
    below = path / ("long-" * 12)  # tasks of a cluster have such paths, which are too long for a socket
    below.mkdir()
    for each in (path, below):
        each.chmod(0o777)
    yield below
    subprocess.run(["rm", "-rf", str(path)], check=True)


def of_browser(folder: Path) -> list[int]:
    mark = str(folder).encode()
    return [pid for pid, command in commands() if any(mark in word for word in command) and b"-c" not in command]


def test_browser_runs_without_privileges_and_home(site: ScriptedSite, folder: Path, render: Render) -> None:
    """With the sandbox enabled, as user nobody without a writable home."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None or sys.prefix.startswith("/root"):
        pytest.skip("runs without privileges already, or cannot become another user")
    site.on("/", Reply(body=SHELL))
    as_nobody = [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]
    task = [*as_nobody, sys.executable, "-c", TASK, site.url("/"), "all render"]
    environment = {**os.environ, "TMPDIR": str(folder), "HOME": "/proc/none"}
    done = subprocess.run(task, env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert "made by a script" in done.stdout, done.stderr
    assert not of_browser(folder)
    assert not list(folder.glob("nutch2py-browser-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_task_leaves_no_browser_process(
    site: ScriptedSite, folder: Path, render: Render, number: signal.Signals
) -> None:
    site.on("/", Reply(body=SHELL))
    words = [sys.executable, "-c", TASK, site.url("/"), "all render delay=600"]
    task = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(folder)}, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: site.gets("/shown") or task.poll() is not None)
        assert task.poll() is None
        processes = [*of_browser(folder), *chromium.iter_descendants(task.pid)]
        assert len(processes) > 3
        task.send_signal(number)
        task.wait()
    finally:
        task.kill()
        task.wait()
    wait_until(lambda: not any(map(alive, processes)))
    assert not of_browser(folder)
    if number == signal.SIGINT:
        assert not list(folder.glob("nutch2py-browser-*"))


def test_two_tasks_have_separate_browsers(site: ScriptedSite, browser_conf: Configuration, render: Render) -> None:
    site.on("/", Reply(body=SHELL))
    tasks = [Render(browser_conf.copy()) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda task: task(site.url("/"), rules="all render"), tasks))
    assert [b"made by a script" in (task.pages[site.url("/")].content or b"") for task in tasks] == [True, True]


@pytest.mark.parametrize("kind", [b"--type=gpu-process", b"NetworkService", b"StorageService"])
def test_killed_browser_subprocess_loses_no_page(
    site: ScriptedSite,
    render: Render,
    homes: list[chromium.BrowserProfile],
    monkeypatch: pytest.MonkeyPatch,
    kind: bytes,
) -> None:
    """Chromium restarts its GPU process; without one of the others, one new browser replaces it.

    The process is killed when a page is first checked; the page may have no document then, or fail to open.
    """
    killed: list[int] = []

    def memory(pid: int) -> int:
        words = next((words for each, words in commands() if each == pid), [])
        if kind in b" ".join(words).split(b" --enable-features")[0] and not killed:
            killed.append(pid)
            chromium.kill_process(pid)
        return 0

    monkeypatch.setattr(chromium, "get_private_memory", memory)
    show = b"fetch('/data').finally(() => { root.textContent = 'here ' + localStorage.kept; })"
    body = b"<div id=root></div><script>localStorage.kept = 'and there'; setTimeout(() => " + show + b", 2000)</script>"
    site.on("/data", Reply(body=b"x"))
    urls = [site.url(f"/{number}") for number in range(4)]
    for number in range(4):
        site.on(f"/{number}", Reply(body=body))
    render(*urls, rules="all render selector=#root:not(:empty)")
    assert killed
    assert [b">here and there<" in (render.pages[url].content or b"") for url in urls] == [True] * 4
    assert len(homes) == (1 if kind == b"--type=gpu-process" else 2)
    assert "rendered_until_browser.time.limit" not in render.report.counters
