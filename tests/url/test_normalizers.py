from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.url.keys import unreverse_url
from nutch2py.url.normalizers.url_normalizers import SCOPE_FETCHER, SCOPE_INJECT, URLNormalizers
from nutch2py.url.url_length import max_url_length


def _names(normalizers: URLNormalizers) -> list[str]:
    return [type(normalizer).__name__ for normalizer in normalizers.normalizers]


def test_default_order_is_nutchs(conf: Configuration) -> None:
    assert _names(URLNormalizers(conf)) == ["BasicURLNormalizer", "RegexURLNormalizer", "PassURLNormalizer"]


def test_scope_sets_order_and_selection(conf: Configuration) -> None:
    conf.set("urlnormalizer.order.inject", "urlnormalizer-regex urlnormalizer-pass")
    conf.set("urlnormalizer.scope.fetcher", "org.apache.nutch.net.urlnormalizer.pass.PassURLNormalizer")
    assert _names(URLNormalizers(conf, SCOPE_INJECT)) == [
        "RegexURLNormalizer",
        "PassURLNormalizer",
        "BasicURLNormalizer",
    ]
    assert _names(URLNormalizers(conf, SCOPE_FETCHER)) == ["PassURLNormalizer"]


def test_malformed_url_returns_none_with_reason(conf: Configuration) -> None:
    normalizers = URLNormalizers(conf)
    assert normalizers.normalize("not a url") is None
    with pytest.raises(ValueError, match=r"^no protocol: not a url$"):
        normalizers.normalize_or_raise("not a url")


def test_loop_stops_when_url_is_unchanged(conf: Configuration) -> None:
    conf.set(
        "urlnormalizer.regex.rules",
        "<regex-normalize><regex><pattern>xy</pattern><substitution/></regex></regex-normalize>",
    )
    url = "http://a.org/xxxyyy"
    assert URLNormalizers(conf).normalize(url) == "http://a.org/xxyy"
    conf.set("urlnormalizer.loop.count", 10)
    assert URLNormalizers(conf).normalize(url) == "http://a.org/"


def test_normalizer_cache_is_bounded(conf: Configuration) -> None:
    normalizers = URLNormalizers(conf)
    for number in range(20_000):
        assert normalizers.normalize(f"http://A.org/{number}") == f"http://a.org/{number}"
    assert len(normalizers.cache) <= 16_384


def test_recorded_urls_are_canonical(conf: Configuration, recording: Path) -> None:
    """Every URL of the recorded crawl was normalized by Nutch 2.4: our normalizers leave them unchanged."""
    urls = set()
    with gzip.open(recording / "dumps" / "round4-updatedb.jsonl.gz", "rt", encoding="utf-8") as dump:
        for line in dump:
            row = json.loads(line)
            urls.add(unreverse_url(row["row"]))
            urls |= {name[3:] for name in row["cells"] if name.startswith("ol:")}
    normalizers = URLNormalizers(conf)
    changed = {url for url in urls if normalizers.normalize(url) != url}
    print(f"recorded URLs {len(urls) - len(changed)}/{len(urls)}")
    assert changed == set()


def test_url_beyond_limit_returns_none(conf: Configuration) -> None:
    conf.set("http.url.limit", "40")
    normalizers = URLNormalizers(conf)
    url = "http://a.org/".ljust(40, "a")
    assert normalizers.normalize(url) == url
    assert normalizers.normalize(f"{url}a") is None
    with pytest.raises(ValueError, match="a URL of 41 characters, the limit is 40"):
        normalizers.normalize_or_raise(f"{url}a")


def test_url_lengthened_beyond_limit_returns_none(conf: Configuration) -> None:
    conf.set("http.url.limit", "40")
    conf.set("urlnormalizer.basic.nutch1.rules", "true")
    normalizers = URLNormalizers(conf)
    assert normalizers.normalize("http://a.org/ééé") == "http://a.org/%C3%A9%C3%A9%C3%A9"
    assert normalizers.normalize("http://a.org/" + "é" * 5) is None


@pytest.mark.parametrize(("limit", "most"), [("-1", 32_800), ("1000000", 32_800), ("0", 0)])
def test_url_limit_is_within_row_key_limit(conf: Configuration, limit: str, most: int) -> None:
    conf.set("http.url.limit", limit)
    assert max_url_length(conf) == most
