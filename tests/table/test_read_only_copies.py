"""Commands that only read, over a crawl on a read-only disk, and as a user without write rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nutch2py import Crawl
from nutch2py.errors import StoreError
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from nutch2py.table.embedded.storage import table_files
from tests.jobs.crawl import properties, seeds, site

COMMANDS = """
import contextlib, io, sys, urllib.request
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.server.http_server import HttpServer
from tests.server.running_server import serving

url, out = sys.argv[1:]
lines = (
    ["readdb", "-stats"], ["readdb", "-url", url], ["readdb", "-batches"], ["checktable"], ["jobs"],
    ["exporttable", f"{out}/table.jsonl"], ["report", "-o", f"{out}/report.html"], ["search", "text"],
    ["updatedb", "-all"],
)
for words in lines:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(words)
    print(words[0], code, said.getvalue().count("\\n") if code == 0 else said.getvalue())
with serving(HttpServer(Configuration.load(), ("127.0.0.1", 0))) as server:
    for path in ("crawl", "crawl/hosts", "?q=text", "search.json?q=text", "suggest?q=te"):
        with urllib.request.urlopen(server.url + path) as response:
            print("serve", path, response.status)
"""
"""Runs the commands in the current folder, with their exit codes."""
MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" && exec "$@"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a crawl with an index, as the defaults name them."""
    home = tmp_path_factory.mktemp("home")
    (home / "conf").mkdir(parents=True)
    settings = {**properties(), "index.embedded.path": str(home / "crawldata" / "index")}
    with site() as url, Crawl(f"embedded:{home / 'crawldata'}", settings) as crawl:
        crawl.inject(seeds(url))
        batch = crawl.generate().batch_id
        crawl.fetch(batch)
        crawl.parse(batch)
        crawl.updatedb(batch)
        crawl.index(batch)
        crawl.updatehostdb()
        (home / "url").write_text(next(url for url, _ in crawl.pages()))
    table_files.close_all()
    return home


def run_commands(folder: Path, out: Path, prefix: list[str]) -> list[str]:
    """Return the lines of :data:`COMMANDS`, run without write rights."""
    out.mkdir()
    root = Path(__file__).parent.parent.parent
    words = [*prefix, sys.executable, "-c", COMMANDS, (folder / "url").read_text(), str(out)]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(out)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def assert_read(lines: list[str], out: Path, reason: str) -> None:
    commands = ("readdb", "readdb", "readdb", "checktable", "jobs", "exporttable", "report", "search")
    assert [line.rpartition(" ")[0] for line in lines[:8]] == [f"{name} 0" for name in commands], lines
    assert lines[8].startswith("updatedb 4"), lines
    assert reason in " ".join(lines[8:13])
    assert [line.split()[-1] for line in lines if line.startswith("serve ")] == ["200"] * 5
    assert len((out / "table.jsonl").read_text().splitlines()) > 20
    assert "pages" in (out / "report.html").read_text()


def test_user_without_write_rights_reads_crawl(folder: Path, tmp_path: Path) -> None:
    prefix: list[str] = []
    if os.getuid() == 0:  # whom rights of files do not bind, unless without these capabilities
        if shutil.which("setpriv") is None:
            pytest.skip("root without setpriv writes everywhere")
        prefix = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    subprocess.run(["chmod", "-R", "a-w", folder], check=True)
    try:
        assert_read(run_commands(folder, tmp_path / "out", prefix), tmp_path / "out", "Permission denied")
    finally:
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)


def test_crawl_on_read_only_disk_is_read(folder: Path, tmp_path: Path) -> None:
    prefix = ["unshare", "--mount", "sh", "-c", MOUNT, str(folder)]
    if os.getuid() != 0 or shutil.which("unshare") is None or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("mounting needs root and the right to mount")
    assert_read(run_commands(folder, tmp_path / "out", prefix), tmp_path / "out", "read-only")


def test_change_during_unlocked_read_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = properties()
    obstacle = PermissionError(13, "Permission denied")
    module = "nutch2py.table.embedded.storage.table_files.find_write_obstacle"
    with Crawl(f"embedded:{folder / 'crawldata'}", settings) as crawl:
        with monkeypatch.context() as patch:
            patch.setattr(module, lambda _: obstacle)
            store = open_store(crawl.conf, WebPage)
            files = store.get_files()  # type: ignore[attr-defined]
        where = str(crawl.conf.get("storage.data.store"))
        code = f"from nutch2py import Crawl; Crawl({where!r}, {settings!r}).inject(['http://n.test/'])"
        with pytest.raises(StoreError, match="was changed while it was read"), files.read_transaction():
            subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, capture_output=True)
        store.close()
