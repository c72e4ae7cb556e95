"""HTML features beyond Nutch's parser: X-Robots-Tag, canonical links, main text."""

from __future__ import annotations

import sys

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.indexer.document_builder import is_noindex
from nutch2py.indexer.filters.index_basic import BasicIndexingFilter
from nutch2py.interfaces import Parse
from nutch2py.parser.html import main_text
from nutch2py.parser.html.html_parser import HtmlParser
from nutch2py.parser.html.main_text import MAIN_TEXT_KEY, main_or_full_text
from nutch2py.parser.robots_directives import parse_x_robots_tag
from nutch2py.parser.row_parser import RowParser
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import MetadataKey, ParseStatusCode, WebPage

from .pages import KEY, URL, fetched


def parse(conf: Configuration, page: WebPage) -> Parse:
    return HtmlParser(conf).parse(URL, page)


def stored(page: WebPage, found: Parse) -> WebPage:
    page.text, page.title = found.text, found.title
    return page


@pytest.mark.parametrize(("value", "found"), [
    ("noindex", {"noindex"}), ("NoIndex, NOFOLLOW", {"noindex", "nofollow"}), ("none", {"noindex", "nofollow"}),
    ("otherbot: noindex", set()), ("nutch-test: noindex", {"noindex"}),
    ("otherbot: none, nutch-test: noarchive", {"noarchive"}),
    ("max-snippet: 5, nofollow", {"nofollow"}), ("unavailable_after: 25 Jun 2010 15:00:00 PST", set()),
    ("", set()), ("all", set()),
])  # fmt: skip
def test_x_robots_tag_directives_are_parsed(value: str, found: set[str]) -> None:
    for name in ("X-Robots-Tag", "x-robots-tag", "X-ROBOTS-TAG"):
        assert parse_x_robots_tag({"Server": "x", name: value}, ["Nutch-Test"]) == found


def test_x_robots_tag_equals_meta_element(conf: Configuration) -> None:
    body = b"<title>T</title><a href=x>x</a>"
    found = parse(conf, fetched(body, X_Robots_Tag="noindex"))
    assert (found.title, found.text, len(found.outlinks)) == ("", "", 1)
    found = parse(conf, fetched(body, X_Robots_Tag="nutch-test: nofollow"))
    assert (found.title, found.text, len(found.outlinks)) == ("T", "T x", 0)
    page = fetched(body, X_Robots_Tag="noarchive")
    parse(conf, page)
    assert page.metadata[MetadataKey.CACHING_FORBIDDEN] == b"content"


@pytest.mark.parametrize("media_type", ["text/html", "text/plain", "application/rss+xml", "text/csv"])
def test_noarchive_lasts_as_long_as_the_page_asks_for_it(conf: Configuration, media_type: str) -> None:
    """Whatever its format; a parse that fails leaves what was."""
    body = b"<rss><channel><title>t</title></channel></rss>" if "rss" in media_type else b"a word"
    parsing = RowParser(conf)
    page = fetched(body, media_type, X_Robots_Tag="noarchive")
    assert parsing.parse_row(KEY, page).label == "success"
    assert page.metadata[MetadataKey.CACHING_FORBIDDEN] == b"content"
    page.headers["X-Robots-Tag"] = "nosnippet"
    page.content_type, before = "image/none", media_type
    parsing.parse_row(KEY, page)
    assert page.metadata[MetadataKey.CACHING_FORBIDDEN] == b"content"
    page.content_type = before
    assert parsing.parse_row(KEY, page).label == "success"
    assert MetadataKey.CACHING_FORBIDDEN not in page.metadata


@pytest.mark.parametrize("media_type", ["text/html", "text/plain"])
def test_x_robots_tag_can_be_ignored_as_in_nutch(conf: Configuration, media_type: str) -> None:
    conf.set("parser.robots.header", "false")
    page = fetched(b"<a href=http://o.test/>x</a> http://o.test/", media_type, X_Robots_Tag="none, noarchive")
    assert RowParser(conf).parse_row(KEY, page).label == "success"
    assert page.text
    assert dict(page.outlinks)
    assert MetadataKey.CACHING_FORBIDDEN not in page.metadata
    assert not is_noindex(page, frozenset(("x",)), reads_header=False)
    assert is_noindex(page, frozenset(("x",)))


def test_x_robots_tag_applies_to_other_formats(conf: Configuration) -> None:
    parsing = RowParser(conf)
    page = fetched(b"see http://o.test/", "text/plain", X_Robots_Tag="none")
    assert parsing.parse_row(KEY, page).label == "success"
    assert (page.text, page.title, dict(page.outlinks)) == ("", "", {})


CANONICAL = b"<head><base href='http://h.test/b/'><link rel='x Canonical' href='c#f'></head><a href=l>l</a>"


def test_canonical_link_is_stored_as_metadata(conf: Configuration) -> None:
    page = fetched(CANONICAL)
    assert parse(conf, page).minor == 0
    assert page.metadata["canonical"] == b"http://h.test/b/c"
    page.content = b"<p>no longer"
    parse(conf, page)
    assert "canonical" not in page.metadata


@pytest.mark.parametrize("body", [
    b"<body><link rel=canonical href=/x>", b"<link rel=canonical>", b"<link rel=canonical href='javascript:x'>",
    b"<a rel=canonical href=/x>", b"canonical",
])  # fmt: skip
def test_invalid_canonical_link_is_ignored(conf: Configuration, body: bytes) -> None:
    page = fetched(body)
    parse(conf, page)
    assert "canonical" not in page.metadata


def test_canonical_link_is_redirect_when_configured(conf: Configuration) -> None:
    conf.set("parser.html.canonical", "redirect")
    page = fetched(CANONICAL)
    assert RowParser(conf).parse_row(KEY, page).status == (1, 100, ("http://h.test/b/c", "5"))
    assert "http://h.test/b/c" in page.outlinks
    own = fetched(b"<link rel=canonical href='/d/p.html#x'>text")
    assert parse(conf, own).minor == 0  # the page itself
    conf.set("parser.html.canonical", "none")
    page = fetched(CANONICAL)
    parse(conf, page)
    assert "canonical" not in page.metadata
    conf.set("parser.html.canonical", "maybe")
    with pytest.raises(ConfigurationError, match=r"parser\.html\.canonical"):
        HtmlParser(conf)


LONG = "A sentence of the article that goes on for a while, so that it is told from a label of a menu. "


def test_main_text_is_stored_next_to_text(conf: Configuration) -> None:
    body = (
        "<body><header><h1>Site</h1></header><nav><ul><li><a href=/1>One</a><li><a href=/2>Two</a></ul></nav>"
        f"<article><h1>Head</h1><p>{LONG * 2}</p><p>{LONG} <a href=/3>three</a></p></article>"
        "<footer>Imprint and so on <a href=/4>here</a></footer></body>"
    )
    page = fetched(body.encode())
    conf.set("parser.html.main.text", True)
    found = parse(conf, page)
    assert "Imprint" in found.text
    assert len(found.outlinks) == 4
    main = main_or_full_text(page)
    assert page.metadata[MAIN_TEXT_KEY].decode() == main
    assert main.startswith("Head\n" + LONG.strip())
    assert "Imprint" not in main
    document = BasicIndexingFilter(conf).filter(NutchDocument(), "http://h.test/", stored(page, found))
    assert document is not None
    assert (document.fields["maintext"], document.fields["content"]) == ([main], [found.text])
    conf.set("indexer.content.main", True)
    document = BasicIndexingFilter(conf).filter(NutchDocument(), "http://h.test/", stored(page, found))
    assert document is not None
    assert (document.fields.get("maintext"), document.fields["content"]) == (None, [main])
    conf.set("parser.html.main.text", False)
    parse(conf, page)
    assert MAIN_TEXT_KEY not in page.metadata  # of an earlier parse
    conf.set("tika.boilerpipe", True)
    assert parse(conf, page).text == main


def test_main_text_requires_library(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    main_text.load_extractor.cache_clear()
    conf.set("parser.html.main.text", True)
    with pytest.raises(ConfigurationError, match=r"parser\.html\.main\.text needs trafilatura.*nutch2py\[main-text\]"):
        HtmlParser(conf)


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_main_text_includes_script_rendered_article(conf: Configuration, form: str) -> None:
    conf.set("parser.html.main.text", True)
    conf.set("parser.html.main.text.form", form)
    sentence = "今天凌晨，三星在美国旧金山举行发布会，正式发布旗下新一代旗舰手机，包括三款新机。"
    article = "".join(f"<section><span>{number}：{sentence}</span></section>" for number in range(20))
    page = fetched(
        f"<meta charset=utf-8><h1>手机</h1><p>微信扫一扫，关注该公众号</p>"
        f"<div id=js_content style='visibility: hidden'>{article}</div>".encode()
    )
    parse(conf, page)
    assert page.metadata[MAIN_TEXT_KEY].decode().count("旧金山") == 20


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_short_main_text_is_completed_by_readability(conf: Configuration, form: str) -> None:
    """The first algorithm finds the second paragraph only: the others are text of div elements."""
    conf.set("parser.html.main.text", True)
    conf.set("parser.html.main.text.form", form)
    paragraphs = [f"{name}. {LONG * 2}" for name in ("First", "Second", "Third")]
    page = fetched(
        f"<body><article><h1>Head</h1><div>{paragraphs[0]}<p>{paragraphs[1]}</p></div><div>{paragraphs[2]}</div>"
        "</article><footer>Imprint and so on <a href=/4>here</a></footer>".encode()
    )
    parse(conf, page)
    main = page.metadata[MAIN_TEXT_KEY].decode()
    assert all(paragraph.strip() in main for paragraph in paragraphs)
    assert "Imprint" not in main


@pytest.mark.parametrize("menu", [0, 1])
def test_main_text_of_a_small_share_of_the_page_is_replaced_if_all_algorithms_find_more(menu: int) -> None:
    tried = list[object]()

    def extract(html: str, **options: object) -> str:
        tried.append(options.get("fast"))
        return "much more text" if options else "some"

    found = main_text.extract_with_second_try("<p>page", 39 + 2 * menu, extract, lambda summary: "")
    assert (found, tried) == (("much more text", [None, False]) if menu else ("some", [None]))


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("a b c d e f g h i j k l m n o p", "a b c d e f g h i j k l m n o p"),  # the same article, and more
        ("menu of x y z and more words than found before", "a b c d e f g h"),  # another part of the page
        ("a b c d e f g h i", "a b c d e f g h"),  # about the same
        ("今日は天気がいいですねa b c d e f g h", "今日は天気がいいですねa b c d e f g h"),
    ],
)
def test_second_text_is_taken_if_it_contains_the_first_and_is_much_longer(second: str, expected: str) -> None:
    assert (
        main_text.extract_with_second_try("<p>page", 100, lambda html: "a b c d e f g h", lambda summary: second)
        == expected
    )


def test_error_of_readability_keeps_the_first_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise AssertionError

    monkeypatch.setattr(main_text, "load_readability", lambda: fail)
    assert "sentence" in main_text.extract_main_text(f"<html><body><article><p>{LONG}</p></article>", 400)


def test_page_without_main_text_keeps_all_text(conf: Configuration) -> None:
    conf.set("tika.boilerpipe", True)
    assert parse(conf, fetched(b"<body><nav>menu <a href=/>all</a></nav>")).text == "menu all"
    assert parse(conf, fetched(b"")).text == ""


FOREIGN = [*(f"xlink:{each}" for each in ("actuate", "arcrole", "href", "role", "show", "title", "type")),
           "xml:lang", "xml:space", "xmlns:xlink", "xmlns"]  # fmt: skip
"""Attributes that the HTML standard gives a namespace in drawings and formulas: selectors find them by local names."""
TAGS = "a area form frame iframe script link img meta base image use object title h1 div span".split()  # noqa: SIM905
EVERYTHING = "rel='canonical tag license next' itemscope itemprop=x property=og:x typeof=T content=c name=n "


@pytest.mark.parametrize("root", ["svg", "math", "svg><foreignObject", "svg><title", "math><mtext", "p"])
@pytest.mark.parametrize("own", ["", EVERYTHING])
def test_svg_elements_do_not_fail_filters(conf: Configuration, root: str, own: str) -> None:
    others = "index-structured|microformats-reltag|creativecommons|headings|parse-js|parse-metatags"
    conf.set("plugin.includes.add", others)
    conf.set("parser.html.form.use_action", "true")
    conf.set("parser.html.outlinks.more", "image/href,use/href,img/srcset,a/title")
    parser = HtmlParser(conf)
    given = own + " ".join(f"{name}='/n-{place}'" for place, name in enumerate(FOREIGN))
    for tag in TAGS:
        drawing = f"<{root}><{tag} {given}>text</{tag}></{root.partition('>')[0]}>"
        found = parser.parse(URL, fetched(f"{drawing}<a href=last>t</a>".encode()))
        assert "http://h.test/d/last" in [link.url for link in found.outlinks]
        assert found.major == ParseStatusCode.SUCCESS
