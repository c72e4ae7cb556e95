"""Configuration: precedence, meaning of values, and messages for malformed ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError


def write(folder: Path, text: str, name: str = "nutch-site.xml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f'<?xml version="1.0"?>\n<configuration>{text}</configuration>', encoding="utf-8")
    return folder


def prop(name: str, value: str, more: str = "") -> str:
    return f"<property><name>{name}</name><value>{value}</value>{more}</property>"


def test_defaults_without_site_file_are_complete() -> None:
    conf = Configuration.load()
    assert conf.get_int("db.fetch.interval.default") == 2592000
    assert conf.get_trimmed("http.agent.name") == ""


def test_site_overrides_default_and_option_overrides_site(tmp_path: Path) -> None:
    folder = write(tmp_path / "conf", prop("http.timeout", "1") + prop("fetcher.threads.fetch", "2"))
    conf = Configuration.load(folder, {"http.timeout": "3"})
    assert (conf.get_int("http.timeout"), conf.get_int("fetcher.threads.fetch")) == (3, 2)
    assert conf.get_int("db.fetch.retry.max") == 3


def test_nutch_conf_dir_variable_sets_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUTCH_CONF_DIR", str(write(tmp_path / "conf", prop("http.timeout", "7"))))
    assert Configuration.load().get_int("http.timeout") == 7


def test_conf_argument_overrides_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUTCH_CONF_DIR", str(write(tmp_path / "a", prop("http.timeout", "7"))))
    assert Configuration.load(write(tmp_path / "b", prop("http.timeout", "8"))).get_int("http.timeout") == 8


def test_folder_with_own_defaults_keeps_missing_shipped_defaults(tmp_path: Path) -> None:
    folder = write(tmp_path, prop("http.timeout", "5"), "nutch-default.xml")
    conf = Configuration.load(folder)
    assert conf.get_int("http.timeout") == 5
    assert conf.get("mapreduce.runner") == "inline"


def test_final_property_is_not_overridden_by_later_files(tmp_path: Path) -> None:
    folder = write(tmp_path, prop("http.timeout", "5", "<final>true</final>"), "nutch-default.xml")
    write(folder, prop("http.timeout", "6"))
    assert Configuration.load(folder).get_int("http.timeout") == 5


def test_rule_file_in_folder_overrides_shipped_file(tmp_path: Path) -> None:
    (tmp_path / "my-rules.txt").write_text("\ufeff+.\n", encoding="utf-8")
    conf = Configuration.load(tmp_path)
    assert conf.resource_text("my-rules.txt") == "+.\n"
    assert conf.resource("nutch-default.xml") == data_dir("conf") / "nutch-default.xml"
    assert conf.resource("no-such-file") is None
    assert conf.resource(str(tmp_path / "my-rules.txt")) == tmp_path / "my-rules.txt"


def test_variables_expand_to_properties_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWL_HOME", "/data")
    conf = Configuration({"a": "${b}/${env.CRAWL_HOME}", "b": "${c}", "c": "x", "unknown": "${no.such}/y"})
    assert conf.get("a") == "x//data"
    assert conf.get("unknown") == "${no.such}/y"


def test_variable_in_defaults_follows_referenced_property() -> None:
    conf = Configuration.load(overrides={"fetcher.server.delay": "0.25"})
    assert conf.get_float("fetcher.min.crawl.delay") == 0.25


def test_self_referencing_property_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="nest too deep"):
        Configuration({"a": "${b}", "b": "${a}"}).get("a")


@pytest.mark.parametrize(
    ("value", "expected"), [("12", 12), (" 12\n", 12), ("-3", -3), ("0x10", 16), ("-0X10", -16), ("", 7)]
)
def test_get_int_parses_whole_numbers(value: str, expected: int) -> None:
    assert Configuration({"n": value}).get_int("n", 7) == expected


@pytest.mark.parametrize(("value", "expected"), [("0.5", 0.5), ("1.0f", 1.0), ("2D", 2.0), ("1e3", 1000.0), ("", 7.0)])
def test_get_float_parses_numbers(value: str, expected: float) -> None:
    assert Configuration({"n": value}).get_float("n", 7.0) == expected


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("FALSE", False), (" True ", True), ("", True)])
def test_get_bool_parses_booleans(value: str, expected: bool) -> None:
    assert Configuration({"b": value}).get_bool("b", True) is expected


@pytest.mark.parametrize(
    ("getter", "value", "says"),
    [
        ("get_int", "12x", "not a whole number"),
        ("get_int", "1.5", "not a whole number"),
        ("get_float", "fast", "not a number"),
        ("get_bool", "yes", "not true or false"),
    ],
)
def test_malformed_value_error_names_property_and_fix(getter: str, value: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        getattr(Configuration({"some.name": value}), getter)("some.name")
    message = str(caught.value)
    assert "some.name" in message
    assert repr(value) in message
    assert says in message
    assert "correct it" in message
    assert "\n" not in message


def test_list_values_are_trimmed_and_empty_parts_dropped() -> None:
    conf = Configuration({"l": " a, b ,,c", "words": "a b\n\tc"})
    assert conf.get_strings("l") == ["a", "b", "c"]
    assert conf.get_strings("words", separators=" \n\t") == ["a", "b", "c"]
    assert conf.get_strings("none", ["d"]) == ["d"]


def test_missing_conf_folder_is_named_in_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no-folder does not exist: name a folder"):
        Configuration.load(tmp_path / "no-folder")


def test_broken_xml_is_named_in_error(tmp_path: Path) -> None:
    (tmp_path / "nutch-site.xml").write_text("<configuration><property>", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"cannot read .*nutch-site.xml: .*: repair the file's XML"):
        Configuration.load(tmp_path)


def test_copy_changes_independently() -> None:
    conf = Configuration({"a": "1"})
    other = conf.copy()
    other.set("a", True)
    other.set_default("a", "3")
    other.set_default("b", "4")
    assert (conf.get("a"), other.get("a"), other.get("b"), "b" in conf) == ("1", "true", "4", False)


def test_nutch_2_conf_folder_works_unchanged(recording: Path, tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    shutil.copytree(recording / "conf", folder)
    conf = Configuration.load(folder)
    assert conf.get("http.agent.name") == "interop-probe"
    assert conf.get_float("fetcher.server.delay", 5.0) == 0.0
    assert conf.get("storage.data.store.class") == "org.apache.gora.hbase.store.HBaseStore"
    # its own files first, ours for what it lacks
    assert conf.resource("regex-urlfilter.txt") == (folder / "regex-urlfilter.txt").resolve()
    assert conf.get("storage.schema.webpage") == "webpage"
    assert conf.get_bool("indexer.delete")


def test_error_names_the_file_to_edit(tmp_path: Path) -> None:
    assert Configuration.load(tmp_path).site_file == str(tmp_path / "nutch-site.xml")
    assert "nutch2py init" in Configuration.load().site_file
