"""plugin: what is installed, what runs, and a class of a plug-in that is run."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import EXTENSION_POINTS
from nutch2py.plugins import loading as found
from nutch2py.plugins.plugin_list import list_plugins


class Echo:
    """A filter, and a program beside it."""

    def __init__(self, conf: Configuration) -> None:
        """Take nothing."""

    def filter(self, url: str) -> str | None:
        """Let all pass."""
        return url

    @staticmethod
    def main(words: list[str]) -> int | None:
        """Say what was given."""
        print("echo", *words)
        return len(words) or None


@pytest.fixture
def echo_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("echo_plugin")
    module.Echo, Echo.__module__ = Echo, "echo_plugin"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "echo_plugin", module)
    entry = EntryPoint("urlfilter-echo", "echo_plugin:Echo", "nutch2py.urlfilter")
    real = found.installed_plugins

    def registered(point: str) -> dict[str, EntryPoint]:
        return {**real(point), **({entry.name: entry} if point == "urlfilter" else {})}

    monkeypatch.setattr(found, "installed_plugins", registered)
    monkeypatch.setattr("nutch2py.plugins.plugin_list.installed_plugins", registered)


def test_every_extension_point_lists_plugins(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    listed = list_plugins(conf)
    assert {each.point for each in listed} == {*EXTENSION_POINTS}
    runs = {each.id: each.runs for each in listed}
    assert runs["urlfilter-regex"]
    assert not runs["indexer-csv"]
    for point in ("fetchschedule", "signature", "encoder"):
        assert sum(each.runs for each in listed if each.point == point) == (point != "encoder")
    assert (runs["DefaultFetchSchedule"], runs["AdaptiveFetchSchedule"], runs["MD5Signature"]) == (True, False, True)
    conf.set("db.fetch.schedule.class", "org.apache.nutch.crawl.AdaptiveFetchSchedule")
    assert {each.id: each.runs for each in list_plugins(conf)}["AdaptiveFetchSchedule"]
    assert main(["plugin", "-json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(listed)


def test_single_extension_point_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugin", "urlfilter-regex"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("urlfilter\turlfilter-regex\truns\tnutch2py.url.")
    assert rest
    assert main(["plugin", "urlfilter-regex", "-json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == "urlfilter-regex"
    assert main(["plugin", "urlfilter-regexp"]) == 255
    assert "there is no plug-in urlfilter-regexp" in capsys.readouterr().err


@pytest.mark.usefixtures("echo_plugin")
@pytest.mark.parametrize("name", ["Echo", "echo_plugin.Echo"])
def test_plugin_main_is_run(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["plugin", "urlfilter-echo", name]) == 0
    assert main(["plugin", "urlfilter-echo", name, "a", "b"]) == 2
    assert main(["org.apache.nutch.plugin.PluginRepository", "urlfilter-echo", name, "--", "-x"]) == 1
    assert capsys.readouterr().out.splitlines() == ["echo", "echo a b", "echo -x"]


@pytest.mark.usefixtures("echo_plugin")
@pytest.mark.parametrize(
    ("name", "message"),
    [("Other", "has no Other"), ("no_such.module.Class", "cannot be imported"), ("filter", "has no filter")],
)
def test_missing_plugin_class_is_reported(capsys: pytest.CaptureFixture[str], name: str, message: str) -> None:
    assert main(["plugin", "urlfilter-echo", name]) == 255
    assert message in capsys.readouterr().err
