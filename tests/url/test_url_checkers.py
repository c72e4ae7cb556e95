from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.url.url_checkers import filter_lines, normalize_lines


def test_normalizerchecker_normalizes_lines(conf: Configuration) -> None:
    lines = ["HTTP://A.org/b/../c#d\n", "nothing\n", " http://a.org "]
    assert list(normalize_lines(conf, lines)) == ["http://a.org/c", "", "http://a.org/"]


def test_normalizerchecker_with_one_normalizer(conf: Configuration) -> None:
    name = "org.apache.nutch.net.urlnormalizer.pass.PassURLNormalizer"
    assert list(normalize_lines(conf, ["HTTP://A.org"], "inject", name)) == ["HTTP://A.org"]


def test_filterchecker_filters_lines(conf: Configuration) -> None:
    lines = ["http://www.a.org/\n", "http://www.a.org/x.gif\n", "http://localhost/"]
    assert list(filter_lines(conf, lines)) == ["+http://www.a.org/", "-http://www.a.org/x.gif", "-http://localhost/"]
    assert list(filter_lines(conf, lines[2:], "RegexURLFilter")) == ["+http://localhost/"]
