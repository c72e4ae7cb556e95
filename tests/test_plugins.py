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

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import Parse, Parser
from nutch2py.plugins import loading
from nutch2py.records.record import Field
from nutch2py.records.webpage import WebPage

ROOT = Path(__file__).resolve().parent.parent


class First:
    """Fits two contracts, and derives from none."""

    java_class = "org.example.First"
    fields: frozenset[Field[Any]] = frozenset()

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf

    def filter(self, url: str) -> str | None:
        return url

    def calculate(self, url: str, page: WebPage) -> bytes:
        return b""


class Second(First):
    java_class = "org.example.Second"


class Third(First):
    java_class = "org.example.Third"


def entry(cls: str, point: str = "parser", name: str = "test") -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{cls}", f"nutch2py.{point}")


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register three plug-ins, and one that cannot be imported, at every extension point."""
    names = {"test-c": "Third", "test-a": "First", "test-b": "Second", "broken": "Missing"}
    monkeypatch.setattr(
        loading, "installed_plugins", lambda point: {name: entry(cls, point, name) for name, cls in names.items()}
    )


def ids(conf: Configuration, point: str = "urlfilter") -> list[str]:
    return [type(plugin).__name__ for plugin in loading.create_ordered_plugins(conf, point, "test.order")]


@pytest.mark.usefixtures("three")
class TestChoice:
    def test_includes_must_match_whole_id(self) -> None:
        assert ids(Configuration({"plugin.includes": "test-(a|b)"})) == ["First", "Second"]
        assert ids(Configuration({"plugin.includes": "test"})) == []
        assert ids(Configuration({"plugin.includes": ""})) == []

    def test_includes_add_extends_the_list(self) -> None:
        added = Configuration({"plugin.includes": "test-b", "plugin.includes.add": "test-(a|x)"})
        assert ids(added) == ["First", "Second"]
        added.set("plugin.excludes", "test-a")
        assert ids(added) == ["Second"]

    def test_excludes_removes_plugins(self) -> None:
        assert ids(Configuration({"plugin.includes": "test-.*", "plugin.excludes": "test-(a|c)"})) == ["Second"]

    def test_points_with_own_property_ignore_includes(self) -> None:
        conf = Configuration({"plugin.includes": "other"})
        assert isinstance(loading.create_named_plugin(conf, "signature", "test-b"), Second)

    def test_invalid_includes_regex_error_names_property(self) -> None:
        with pytest.raises(ConfigurationError, match=r"property plugin\.includes is not a regular expression"):
            ids(Configuration({"plugin.includes": "test-("}))

    def test_unimportable_plugin_is_named_in_error(self) -> None:
        with pytest.raises(ConfigurationError, match=r"plug-in broken .* cannot be loaded.*plugin\.includes"):
            ids(Configuration({"plugin.includes": "broken"}))

    def test_disabled_plugin_is_not_imported(self) -> None:
        assert ids(Configuration({"plugin.includes": "test-a"})) == ["First"]


@pytest.mark.usefixtures("three")
class TestOrder:
    def order(self, names: str) -> list[str]:
        return ids(Configuration({"plugin.includes": "test-.*", "test.order": names}))

    def test_order_defaults_to_plugin_id(self) -> None:
        assert self.order("") == ["First", "Second", "Third"]

    @pytest.mark.parametrize(
        "names", ["test-c test-a", "org.example.Third,org.example.First", "Third\n\tFirst", f"{__name__}.Third First"]
    )
    def test_ordered_names_accept_id_java_or_python_name(self, names: str) -> None:
        assert self.order(names) == ["Third", "First", "Second"]

    def test_ordering_disabled_plugin_logs_warning(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.order("org.example.Nobody test-c") == ["Third", "First", "Second"]
        assert "test.order names org.example.Nobody" in capsys.readouterr().err

    def test_repeated_name_in_order_counts_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.order("test-b org.example.Second") == ["Second", "First", "Third"]
        assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("three")
class TestNamed:
    @pytest.mark.parametrize("name", ["test-b", "some.package.test-b"])
    def test_named_returns_plugin_by_id(self, name: str) -> None:
        assert isinstance(loading.create_named_plugin(Configuration(), "signature", name), Second)

    def test_named_passes_configuration(self) -> None:
        conf = Configuration({"a": "b"})
        assert loading.create_named_plugin(conf, "signature", "test-a").conf is conf

    def test_unknown_name_error_lists_known_names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(loading, "installed_plugins", lambda point: {"test-a": entry("First", point, "test-a")})
        assert isinstance(loading.create_named_plugin(Configuration(), "signature", "org.example.First"), First)
        with pytest.raises(ConfigurationError, match="no plug-in of signature is called nobody: known are test-a"):
            loading.create_named_plugin(Configuration(), "signature", "nobody")


class Reads:
    """Only the required members of a parser."""

    fields = frozenset({WebPage.content})

    def parse(self, url: str, page: WebPage) -> Parse:
        return Parse(f"{url} {page.content!r}", "", ())


class Says(Reads):
    """Some optional members too, as a class attribute, an attribute of the object and a property."""

    content_types = "text/says"

    def __init__(self, conf: Configuration) -> None:
        self.java_class = "org.says"

    @property
    def part_of(self) -> str:
        return "parse-tika"


class Derived(Parser):
    """Derives from its contract."""

    fields = frozenset({WebPage.content})

    def parse(self, url: str, page: WebPage) -> Parse:
        return Parse("", "", ())


class DerivedWithout(Parser):
    """Has no parse."""

    fields = frozenset({WebPage.content})


class Empty:
    """Has nothing."""


class Declares:
    """Says that it has fields, and never sets them."""

    fields: frozenset[Field[Any]]

    def parse(self, url: str, page: WebPage) -> Parse:
        return Parse("", "", ())


class Schedule:
    """A schedule that derives from nothing; when it is made it knows what it reads."""

    def __init__(self, conf: Configuration) -> None:
        self.fields = frozenset({WebPage.fetch_time})

    def anything(self, *_: object) -> None:
        """Replaces the methods."""

    initialize = set_fetch_schedule = set_page_gone_schedule = set_page_retry_schedule = anything
    should_fetch = force_refetch = anything


class QuickSchedule(Schedule):
    """Names the fields that it reads to decide whether a row is due."""

    due_fields = frozenset({WebPage.status})


class Meta(type):
    """A metaclass of its own."""


class Odd(Reads, metaclass=Meta):
    """Cannot be one with a Protocol."""


NO_CLASS = object()


class TestContract:
    def made(self, cls: str, point: str = "parser") -> Any:
        return loading.load_plugin(entry(cls, point))(Configuration())

    @pytest.mark.parametrize("cls", ["Reads", "Derived"])
    def test_missing_optional_members_get_defaults(self, cls: str) -> None:
        made = self.made(cls)
        assert (made.content_types, made.part_of, made.java_class) == (".*", "", "")

    def test_own_members_override_defaults(self) -> None:
        made = self.made("Says")
        assert (made.content_types, made.part_of, made.java_class) == ("text/says", "parse-tika", "org.says")
        assert made.parse("u", WebPage()).text == "u None"

    def test_plugin_keeps_its_own_class_name(self) -> None:
        plugin = loading.load_plugin(entry("Reads"))
        assert plugin.names == {"test", "Reads", f"{__name__}.Reads"}
        assert repr(plugin.implementation) == repr(Reads)
        assert isinstance(plugin(Configuration()), Reads)
        assert loading.load_plugin(entry("Reads")).implementation is plugin.implementation

    def test_subclass_of_contract_is_used_unchanged(self) -> None:
        assert loading.load_plugin(entry("Derived")).implementation is Derived

    def test_fields_of_one_method_extend_to_all_methods(self) -> None:
        assert self.made("Schedule", "fetchschedule").due_fields == {WebPage.fetch_time}
        assert self.made("QuickSchedule", "fetchschedule").due_fields == {WebPage.status}

    @pytest.mark.parametrize(
        ("cls", "point", "lacking"),
        [
            ("DerivedWithout", "parser", "parse,"),
            ("Empty", "urlfilter", "filter,"),
            ("Empty", "scoringfilter", "distribute and generator_sort_value and indexer_score and in"),
            ("Reads", "parsefilter", "filter,"),
            ("Declares", "parser", "fields,"),
        ],
    )
    def test_missing_member_error_names_plugin_entry_point_and_file(self, cls: str, point: str, lacking: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            self.made(cls, point)
        message = str(caught.value)
        assert message.startswith(f"plug-in test ({__name__}:{cls}, {__file__}) lacks {lacking}")
        assert f"which nutch2py.interfaces.{loading.EXTENSION_POINTS[point].__name__} requires" in message
        assert message.endswith("remove it from plugin.includes")

    def test_plugin_named_by_property_ignores_includes(self) -> None:
        with pytest.raises(ConfigurationError, match=r"lacks calculate, which .* or name another$"):
            self.made("Reads", "signature")

    @pytest.mark.parametrize(("cls", "reason"), [("NO_CLASS", "it is not a class but"), ("Odd", "metaclass conflict")])
    def test_non_class_plugin_is_named_in_error(self, cls: str, reason: str) -> None:
        with pytest.raises(ConfigurationError, match=rf"plug-in test \({__name__}:{cls}\) cannot be loaded: {reason}"):
            self.made(cls)

    def test_failing_plugin_module_is_named_in_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "module_that_fails.py").write_text("raise RuntimeError('no weather today')")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ConfigurationError, match=r"plug-in x .* cannot be loaded: no weather today: install"):
            loading.load_plugin(EntryPoint("x", "module_that_fails:Parser", "nutch2py.parser"))


def built_ins() -> list[tuple[str, str, str]]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        (group.removeprefix("nutch2py."), name, value)
        for group, entries in project["entry-points"].items()
        for name, value in entries.items()
    ]


@pytest.mark.parametrize(("point", "name", "value"), built_ins())
def test_every_built_in_plugin_can_be_instantiated(point: str, name: str, value: str, conf: Configuration) -> None:
    plugin = loading.load_plugin(EntryPoint(name, value, f"nutch2py.{point}"))
    assert plugin(conf) is not None


def test_default_includes_cover_every_required_point(conf: Configuration) -> None:
    for point in ("urlnormalizer", "urlfilter", "parser", "scoringfilter", "indexingfilter"):
        assert loading.enabled_plugins(conf, point), point


def documented_plugin() -> tuple[str, dict[str, Any]]:
    text = (ROOT / "docs" / "plugins" / "index.md").read_text(encoding="utf-8")
    python, toml = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)[0] for kind in ("python", "toml"))
    return python, tomllib.loads(toml)["project"]


def test_documented_plugin_runs_when_installed(tmp_path: Path) -> None:
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
        "from nutch2py.conf.configuration import Configuration\n"
        "from nutch2py.url.filters.url_filters import URLFilters\n"
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
