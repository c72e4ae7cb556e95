"""The parse filters parsefilter-regex, microformats-reltag and parse-js, and the signature SimHash."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.parser.filters.parsefilter_regex import RegexParseFilter, parse_rules
from nutch2py.parser.formats.javascript import JSParseFilter, extract_script_links
from nutch2py.parser.html.html_parser import HtmlParser
from nutch2py.parser.row_parser import RowParser
from nutch2py.parser.signatures.simhash import SimHashSignature, hamming_distance, simhash

from .pages import KEY, URL, fetched


def test_regex_rules_set_fields(conf: Configuration) -> None:
    conf.set("plugin.includes", "parse-html|parsefilter-regex")
    conf.set("parsefilter.regex.rules", "# rules\nform html <form\nnutch text (?i)\\bNUTCH\\b and more\nno text absent")
    page = fetched(b"<form>nutch and more</form>")
    HtmlParser(conf).parse(URL, page)
    assert [page.metadata[name] for name in ("form", "nutch", "no")] == [b"true", b"true", b"false"]


def test_regex_rules_are_read_from_file(conf: Configuration, tmp_path: Any) -> None:
    assert RegexParseFilter(conf).rules == []
    (tmp_path / "rules.txt").write_text("a text b", encoding="utf-8")
    conf.conf_dirs.insert(0, tmp_path)
    conf.set("parsefilter.regex.file", "rules.txt")
    assert [rule.field for rule in RegexParseFilter(conf).rules] == ["a"]


@pytest.mark.parametrize("line", ["field", "field body x", "field text (", "field text"])
def test_broken_regex_rules_are_reported(line: str) -> None:
    with pytest.raises(ConfigurationError, match="line 1"):
        parse_rules(line)


def test_rel_tags_are_extracted(conf: Configuration) -> None:
    conf.set("plugin.includes", "parse-html|microformats-reltag")
    page = fetched(
        b"<a rel=tag href='http://t.test/tag/one+two'>x</a><a rel='nofollow Tag' href='/tag/%C3%BC?q#f'>x</a>"
        b"<a href=/tag/three>x</a><a rel=tag href='http://['>x</a><a rel=tag href='/tag/'>x</a>"
    )
    HtmlParser(conf).parse(URL, page)
    assert page.metadata["Rel-Tag"].decode() == "one two\tü\t"


def test_javascript_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    conf = Configuration.load(overrides={"plugin.includes": "parse-(html|js)"})
    passed = total = 0
    for case in cases("parse_filters"):
        if case["args"]["plugin"] != "parse-js":
            continue
        total += 1
        body, expect = case["input"].encode(), case["expect"]
        if "outlinks" in expect:
            found = JSParseFilter(conf).parse(URL, fetched(body, "application/javascript"))
            assert [link.url for link in found.outlinks] == expect["outlinks"]
        else:
            found = HtmlParser(conf).parse(URL, fetched(body))
            assert {link.url for link in found.outlinks} >= set(expect["outlinks_contain"])
        passed += 1
    print(f"parse_filters, parse-js: {passed}/{total}")
    assert passed


def test_links_in_handlers_and_scripts_are_found(conf: Configuration) -> None:
    conf.set("plugin.includes", "parse-(html|js)")
    body = (
        b"<p onclick=\"go('/one.html')\">x</p><a href=\"javascript:open('www.two.test')\">y</a>"
        b"<script>var a = 'three.html', b = 'word', c = \"http://f.test/?a=1&amp;b=2\"</script><a href=/five>z</a>"
    )
    found = [link.url for link in HtmlParser(conf).parse(URL, fetched(body)).outlinks]
    assert sorted(found[:-1]) == [
        "http://f.test/?a=1&b=2", "http://h.test/d/three.html", "http://h.test/one.html", "http://www.two.test"
    ]  # fmt: skip
    assert found[-1] == "http://h.test/five"
    nofollow = b"<meta name=robots content=nofollow>" + body
    assert HtmlParser(conf).parse(URL, fetched(nofollow)).outlinks == []


def test_script_page_gives_title_and_links(conf: Configuration) -> None:
    conf.set("plugin.includes", "parse-(html|js)|urlfilter-validator|urlnormalizer-basic")
    page = fetched(b"// first line\nload('/x/y.html')", "application/javascript")
    assert RowParser(conf).parse_row(KEY, page).label == "success"
    assert (page.title, list(page.outlinks)) == ("// first line", ["http://h.test/x/y.html"])


def test_unterminated_strings_take_linear_time() -> None:
    assert list(extract_script_links("'" * 50_000 + "\\" * 50_000 + "'x", URL)) == []


def test_simhash_separates_near_and_far_texts(conf: Configuration) -> None:
    chance = random.Random(1)
    words = [f"word{n}" for n in range(2000)]
    text = chance.choices(words, k=600)
    near = list(text)
    near[10] = "changed"
    far = chance.choices(words, k=600)
    one, two, three = (simhash(each, 128) for each in (text, near, far))
    assert 0 < hamming_distance(one, two) < 20 < 40 < hamming_distance(one, three) < 90
    conf.set("db.signature.class", "SimHashSignature")
    page = fetched(f"<p>{' '.join(text)}".encode())
    RowParser(conf).parse_row(KEY, page)
    assert page.signature == one.to_bytes(16, "big")
    assert SimHashSignature().calculate(URL, fetched(b"")) != SimHashSignature().calculate("x", fetched(b"", url="x"))
