from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.parser.parser_factory import ParserFactory, read_parse_plugins


def names(conf: Configuration, content_type: str) -> list[str]:
    return [type(parser).__name__ for parser in ParserFactory(conf).get_parsers(content_type)]


def conf_with(folder: Path, body: str, **properties: str) -> Configuration:
    (folder / "parse-plugins.xml").write_text(f"<parse-plugins>{body}</parse-plugins>")
    return Configuration({"plugin.includes": "parse-(html|text)", **properties}, [folder])


def test_html_and_text_parsers_are_default(conf: Configuration) -> None:
    assert names(conf, "text/html") == ["HtmlParser"]
    assert names(conf, "Text/HTML; charset=x") == ["HtmlParser"]
    assert "TextParser" in names(conf, "text/plain")
    assert "HtmlParser" not in names(conf, "text/plain")
    assert names(conf, "application/x-unheard-of") == []


def test_nutch_2_tika_configuration_enables_parsers(tmp_path: Path) -> None:
    body = '<mimeType name="*"><plugin id="parse-tika"/></mimeType>'
    conf = conf_with(tmp_path, body, **{"plugin.includes": "protocol-http|parse-(html|tika)"})
    assert names(conf, "text/plain") == ["TextParser"]
    conf = conf_with(tmp_path, body, **{"plugin.includes": "parse-html"})
    assert names(conf, "text/plain") == []
    conf = conf_with(tmp_path, body, **{"plugin.includes": "parse-tika", "plugin.excludes": "parse-text"})
    assert "TextParser" not in names(conf, "text/plain")


def test_parse_plugins_order_is_kept(tmp_path: Path) -> None:
    body = '<mimeType name="x/y"><plugin id="parse-text"/><plugin id="parse-html" order="1"/></mimeType>'
    assert names(conf_with(tmp_path, body), "x/y") == ["HtmlParser", "TextParser"]


def test_java_class_names_are_mapped(tmp_path: Path) -> None:
    body = '<mimeType name="x/y"><plugin id="org.apache.nutch.parse.html.HtmlParser"/></mimeType>'
    assert names(conf_with(tmp_path, body), "x/y") == ["HtmlParser"]


def test_mapped_disabled_plugin_logs_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = '<mimeType name="text/html"><plugin id="parse-html"/></mimeType>'
    assert names(conf_with(tmp_path, body, **{"plugin.includes": "parse-text"}), "text/html") == []
    assert "parse-html is mapped to text/html" in capsys.readouterr().err


def test_missing_or_broken_parse_plugins_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no configuration folder"):
        read_parse_plugins(Configuration({}, [tmp_path]))
    (tmp_path / "parse-plugins.xml").write_text("<parse-plugins>")
    with pytest.raises(ConfigurationError, match="repair"):
        read_parse_plugins(Configuration({}, [tmp_path]))
