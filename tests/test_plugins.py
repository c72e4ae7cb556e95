"""Plug-ins: which run, in what order, by what names; and a stranger's, taken from the documentation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from nutch2py import plugins
from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError

ROOT = Path(__file__).resolve().parent.parent


class First:
    java_class = "org.example.First"

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf


class Second(First):
    java_class = "org.example.Second"


class Third(First):
    java_class = "org.example.Third"


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register three plug-ins, and one that cannot be imported, at every extension point."""
    found = {
        name: EntryPoint(name, f"{__name__}:{cls}", "nutch2py.test")
        for name, cls in [("test-c", "Third"), ("test-a", "First"), ("test-b", "Second"), ("broken", "Missing")]
    }
    monkeypatch.setattr(plugins, "registered", lambda _point: found)


def ids(conf: Configuration, point: str = "urlfilter") -> list[str]:
    return [type(plugin).__name__ for plugin in plugins.ordered(conf, point, "test.order")]


@pytest.mark.usefixtures("three")
class TestChoice:
    def test_includes_must_match_the_whole_id(self) -> None:
        assert ids(Configuration({"plugin.includes": "test-(a|b)"})) == ["First", "Second"]
        assert ids(Configuration({"plugin.includes": "test"})) == []
        assert ids(Configuration({"plugin.includes": ""})) == []

    def test_excludes_takes_out(self) -> None:
        assert ids(Configuration({"plugin.includes": "test-.*", "plugin.excludes": "test-(a|c)"})) == ["Second"]

    def test_points_with_a_property_of_their_own_ask_for_no_includes(self) -> None:
        conf = Configuration({"plugin.includes": "other"})
        assert isinstance(plugins.named(conf, "signature", "test-b"), Second)

    def test_a_bad_expression_is_refused_with_its_property(self) -> None:
        with pytest.raises(ConfigurationError, match=r"property plugin\.includes is not a regular expression"):
            ids(Configuration({"plugin.includes": "test-("}))

    def test_a_plugin_that_cannot_be_imported_is_named(self) -> None:
        with pytest.raises(ConfigurationError, match=r"plug-in broken .* cannot be loaded.*plugin\.includes"):
            ids(Configuration({"plugin.includes": "broken"}))

    def test_a_plugin_that_is_not_enabled_is_not_imported(self) -> None:
        assert ids(Configuration({"plugin.includes": "test-a"})) == ["First"]


@pytest.mark.usefixtures("three")
class TestOrder:
    def order(self, names: str) -> list[str]:
        return ids(Configuration({"plugin.includes": "test-.*", "test.order": names}))

    def test_by_id_when_nothing_is_said(self) -> None:
        assert self.order("") == ["First", "Second", "Third"]

    @pytest.mark.parametrize(
        "names", ["test-c test-a", "org.example.Third,org.example.First", "Third\n\tFirst", f"{__name__}.Third First"]
    )
    def test_named_ones_come_first_by_id_java_or_python_name(self, names: str) -> None:
        assert self.order(names) == ["Third", "First", "Second"]

    def test_a_name_that_is_not_enabled_is_warned_of(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.order("org.example.Nobody test-c") == ["Third", "First", "Second"]
        assert "test.order names org.example.Nobody" in capsys.readouterr().err

    def test_a_name_given_twice_counts_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.order("test-b org.example.Second") == ["Second", "First", "Third"]
        assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("three")
class TestNamed:
    @pytest.mark.parametrize("name", ["test-b", "some.package.test-b"])
    def test_by_id(self, name: str) -> None:
        assert isinstance(plugins.named(Configuration(), "signature", name), Second)

    def test_the_configuration_is_handed_over(self) -> None:
        conf = Configuration({"a": "b"})
        assert plugins.named(conf, "signature", "test-a").conf is conf

    def test_an_unknown_name_lists_the_known_ones(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = {"test-a": EntryPoint("test-a", f"{__name__}:First", "nutch2py.test")}
        monkeypatch.setattr(plugins, "registered", lambda _point: found)
        assert isinstance(plugins.named(Configuration(), "signature", "org.example.First"), First)
        with pytest.raises(ConfigurationError, match="no plug-in of signature is called nobody: known are test-a"):
            plugins.named(Configuration(), "signature", "nobody")


def built_ins() -> list[tuple[str, str, str]]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        (group.removeprefix("nutch2py."), name, value)
        for group, entries in project["entry-points"].items()
        for name, value in entries.items()
    ]


@pytest.mark.parametrize(("point", "name", "value"), built_ins())
def test_every_built_in_plugin_can_be_imported_and_made(point: str, name: str, value: str, conf: Configuration) -> None:
    plugin = plugins.load(EntryPoint(name, value, f"nutch2py.{point}"))
    assert plugin(conf) is not None


def test_the_default_includes_enable_plugins_of_every_point_that_needs_one(conf: Configuration) -> None:
    for point in ("urlnormalizer", "urlfilter", "parser", "scoringfilter", "indexingfilter"):
        assert plugins.enabled(conf, point), point


def documented_plugin() -> tuple[str, dict[str, Any]]:
    text = (ROOT / "docs" / "plugins" / "index.md").read_text(encoding="utf-8")
    python, toml = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)[0] for kind in ("python", "toml"))
    return python, tomllib.loads(toml)["project"]


def test_the_plugin_of_the_documentation_runs_when_it_is_installed(tmp_path: Path) -> None:
    source, project = documented_plugin()
    assert len([line for line in source.splitlines() if line.strip()]) <= 20
    (group, entries), *_ = project["entry-points"].items()
    ((name, value),) = entries.items()
    (tmp_path / f"{value.partition(':')[0]}.py").write_text(source, encoding="utf-8")
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n", encoding="utf-8")
    program = (
        "from nutch2py.conf import Configuration\n"
        "from nutch2py.url.url_filters import URLFilters\n"
        "conf = Configuration.load(overrides={'plugin.includes': 'urlfilter-(regex|validator|session)',"
        " 'urlfilter.regex.file': 'RULES'})\n"
        "filters = URLFilters(conf)\n"
        "for url in ('http://example.org/a', 'http://example.org/a?x=1&SID=2'):\n"
        "    print(filters.filter(url))\n"
    ).replace("RULES", str(tmp_path / "rules.txt"))
    (tmp_path / "rules.txt").write_text("+.\n", encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.split() == ["http://example.org/a", "None"], run.stderr
