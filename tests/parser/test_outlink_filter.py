import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Outlink
from nutch2py.parser.links import outlink_filter
from nutch2py.parser.links.outlink_filter import OutlinkFilter


def test_link_cache_is_bounded_and_transparent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlink_filter, "CACHED_URLS", 4)
    rules = OutlinkFilter(Configuration({"plugin.includes": "urlfilter-validator|urlnormalizer-basic"}))
    long = f"http://a.example.com/{'x' * 2000}"
    written = [f"http://A.example.com/{n % 7}/../p" for n in range(30)] + ["http://no host/", long, long]
    accepted = []
    for url in written:
        accepted.append(rules.accept(url))
        assert len(rules.accept_cache) <= 4
        assert long not in rules.accept_cache
    assert accepted == ["http://a.example.com/p"] * 30 + [None, long, long]


@pytest.mark.parametrize(("most", "anchor"), [("-1", "words of a link"), ("5", "words"), ("0", "")])
def test_anchors_are_truncated(most: str, anchor: str) -> None:
    rules = OutlinkFilter(Configuration({"db.max.anchor.length": most}))
    links = [Outlink("http://h.example.com/", "words of a link"), Outlink("http://h.example.com/", "others")]
    assert rules.filter_outlinks("http://h.example.com/a", links) == {"http://h.example.com/": anchor}
