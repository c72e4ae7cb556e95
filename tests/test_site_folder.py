"""``nutch2py init``: a folder with what people change, that every command takes, and that replaces nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf import Configuration
from nutch2py.site_folder import CHANGED, make, site_xml

NAMES = [name for names in CHANGED.values() for name in names]


def test_what_options_give_is_set_and_all_else_is_as_shipped(
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


def test_every_comment_is_a_property_that_can_be_taken_out_of_it(tmp_path: Path) -> None:
    text = site_xml({})
    for name in NAMES:
        line = next(line for line in text.splitlines() if f"<name>{name}</name>" in line)
        assert line.startswith("  <!-- <property>")
        text = text.replace(line, line.replace("<!-- ", "").replace(" -->", ""))
    (tmp_path / "nutch-site.xml").write_text(text)
    conf, shipped = Configuration.load(tmp_path), Configuration.load()
    assert {name: conf.get(name) for name in NAMES} == {name: shipped.get(name) for name in NAMES}


@pytest.mark.parametrize("there", ["nutch-site.xml", "seeds.txt"])
def test_nothing_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str], there: str) -> None:
    (tmp_path / there).write_text("mine")
    assert main(["init", str(tmp_path), "https://a.test/"]) == 3
    assert f"{tmp_path / there} is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_what_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "site")]) == 3
    assert "cannot write" in capsys.readouterr().err


def test_a_number_that_is_none_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "site"), "-delay", "soon"]) == 2
    assert [*tmp_path.iterdir()] == []


def test_what_is_made_is_returned(tmp_path: Path) -> None:
    assert make(tmp_path / "a" / "b", {}) == [tmp_path / "a" / "b" / "nutch-site.xml"]
