"""``nutch2py init``: a folder with what people change, that every command takes, and that replaces nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.commands.conf_template import TEMPLATE_PROPERTIES, render_site_xml, write_conf_dir
from nutch2py.conf.configuration import Configuration
from nutch2py.support.atomic_files import atomic_write
from tests.failing_disk import failing_disk

NAMES = [name for names in TEMPLATE_PROPERTIES.values() for name in names]


def test_options_set_properties_and_keep_shipped_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["-agent", "a & <b>", "-delay", "2.5", "-store", "embedded:here", "-email", "me@a.test"]
    assert main(["init", "site", "https://a.test/", "https://b.test/", *words]) == 0
    said = capsys.readouterr().out
    assert said.startswith("site/nutch-site.xml\nsite/seeds.txt\n")
    conf, shipped = Configuration.load("site"), Configuration.load()
    changed = {name: conf.get(name) for name in conf if conf.get(name) != shipped.get(name)}
    assert changed == {
        "http.agent.name": "a & <b>",
        "http.agent.email": "me@a.test",
        "fetcher.server.delay": "2.5",
        "fetcher.min.crawl.delay": "2.5",  # these two are what that one is
        "fetcher.exceptions.per.queue.delay": "2.5",
        "storage.data.store": "embedded:here",
    }
    assert (tmp_path / "site" / "seeds.txt").read_text() == "https://a.test/\nhttps://b.test/\n"
    assert main(["showproperties", "--conf", "site"]) == 0
    assert "http.agent.name=a & <b>" in capsys.readouterr().out


def test_every_commented_property_can_be_enabled(tmp_path: Path) -> None:
    text = render_site_xml({})
    for name in NAMES:
        line = next(line for line in text.splitlines() if f"<name>{name}</name>" in line)
        assert line.startswith("  <!-- <property>")
        text = text.replace(line, line.replace("<!-- ", "").replace(" -->", ""))
    (tmp_path / "nutch-site.xml").write_text(text)
    conf, shipped = Configuration.load(tmp_path), Configuration.load()
    assert {name: conf.get(name) for name in NAMES} == {name: shipped.get(name) for name in NAMES}


@pytest.mark.parametrize("there", ["nutch-site.xml", "seeds.txt"])
def test_existing_files_are_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str], there: str) -> None:
    (tmp_path / there).write_text("mine")
    assert main(["init", str(tmp_path), "https://a.test/"]) == 3
    assert f"{tmp_path / there} already exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_unwritable_file_is_named_in_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "site")]) == 3
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("part", ["seeds.txt", "nutch-site.xml", "/site/"])
@pytest.mark.parametrize("folder", ["site", "site/deep"])
def test_full_disk_leaves_all_files_or_none(tmp_path: Path, disk: Path, number: int, part: str, folder: str) -> None:
    command = [sys.executable, "-m", "nutch2py", "init", folder, "https://a.test/", "-agent", "a"]
    environment = {**os.environ, **failing_disk(disk, number, part)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert [*tmp_path.iterdir()] == []
    assert subprocess.run(command, cwd=tmp_path, check=False, stdout=subprocess.DEVNULL).returncode == 0
    assert len([*(tmp_path / folder).iterdir()]) == 2


def test_invalid_number_is_rejected_and_nothing_created(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "site"), "-delay", "soon"]) == 2
    assert [*tmp_path.iterdir()] == []


def test_created_paths_are_returned(tmp_path: Path) -> None:
    assert write_conf_dir(tmp_path / "a" / "b", {}) == [tmp_path / "a" / "b" / "nutch-site.xml"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["init", " "], 255, "init names no folder: write init DIR, or init . for this one"),
        (["init", "n" * 300], 3, "File name too long: name another folder"),
        (["report", "-o", "pipe"], 4, "cannot write pipe: it is a device or a pipe: name a file that you can write"),
        (["report", "-o", "/dev/null"], 4, "cannot write /dev/null: it is a device or a pipe: name a file"),
        (["exporttable", "pipe"], 4, "cannot write pipe: it is a device or a pipe: name a file that you can write"),
    ],
)
def test_invalid_path_is_rejected(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    message: str,
) -> None:
    """No device gives its place to a file, as it would to root."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "seeds").write_text("http://a.test/\n")
    assert main(["inject", "seeds"]) == 0
    before = sorted(tmp_path.iterdir())
    assert main(words) == code
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    assert not any(path.is_file() for path in (tmp_path / "pipe", Path("/dev/null")))


def test_symbolic_link_is_kept_and_its_target_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with atomic_write(Path("link")) as out:
        out.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_init_prints_commands_valid_in_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "my crawl"]) == 0
    assert "doctor --conf 'my crawl'; nutch2py crawl --conf 'my crawl' URL" in capsys.readouterr().out
