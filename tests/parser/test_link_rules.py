import pytest

from nutch2py.conf import Configuration
from nutch2py.contracts import Outlink
from nutch2py.parser import link_rules
from nutch2py.parser.link_rules import LinkRules


def test_what_is_remembered_has_a_bound_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_rules, "_REMEMBERED", 4)
    rules = LinkRules(Configuration({"plugin.includes": "urlfilter-validator|urlnormalizer-basic"}))
    long = f"http://a.example.com/{'x' * 2000}"
    written = [f"http://A.example.com/{n % 7}/../p" for n in range(30)] + ["http://no host/", long, long]
    accepted = []
    for url in written:
        accepted.append(rules.accept(url))
        assert len(rules._accepted) <= 4
        assert long not in rules._accepted
    assert accepted == ["http://a.example.com/p"] * 30 + [None, long, long]


@pytest.mark.parametrize(("most", "anchor"), [("-1", "words of a link"), ("5", "words"), ("0", "")])
def test_anchors_are_cut(most: str, anchor: str) -> None:
    rules = LinkRules(Configuration({"db.max.anchor.length": most}))
    links = [Outlink("http://h.example.com/", "words of a link"), Outlink("http://h.example.com/", "others")]
    assert rules.kept("http://h.example.com/a", links) == {"http://h.example.com/": anchor}
