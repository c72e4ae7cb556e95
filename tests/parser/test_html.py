from collections.abc import Callable
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.html.html_parser import HtmlParser
from nutch2py.records.webpage import WebPage

from .pages import fetched


def parse(html: str, conf: Configuration, **headers: str) -> tuple[Parse, WebPage]:
    page = fetched(html.encode(), **headers)
    return HtmlParser(conf).parse("http://h.test/d/p.html", page), page


def test_dom_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    passed, excepted = 0, 0
    for case in (found := cases("dom_parse_html")):
        args, expect = case["args"], case["expect"]
        if case["source"].endswith(("#13", "#14")):
            assert case["versions"] == ["1.x"]
            excepted += 1
            continue
        conf = Configuration.load(overrides={name: str(value).lower() for name, value in args["conf"].items()})
        result = HtmlParser(conf).parse(args["base"], fetched(case["input"].encode(), url=args["base"]))
        assert result.text.split() == expect["text"].split(), case
        assert result.title == expect["title"], case
        assert [link._asdict() for link in result.outlinks] == expect["outlinks"], case
        passed += 1
    print(f"dom_parse_html: {passed}/{len(found)}, {excepted} only in 1.x")


def test_html_parser_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    conf = Configuration.load(overrides={"plugin.includes": "parse-html|parse-metatags"})
    passed, excepted = 0, 0
    for case in (found := cases("html_parser")):
        args, expect = case["args"], case["expect"]
        if case["source"].endswith("testResolveBaseUrl"):
            assert case["versions"] == ["1.x"]
            excepted += 1
            continue
        text = case["input"]
        if args["encode_bytes_with"] == "utf-16":
            text = text.removeprefix("\ufeff")  # the codec writes the mark itself
        page = fetched(text.encode(args["encode_bytes_with"]), args["content_type"], args["url"])
        result = HtmlParser(conf).parse(args["url"], page)
        assert result.title == expect["title"], case
        assert page.metadata["meta_keywords"].decode() == expect["meta.keywords"], case
        assert all(part in result.text for part in expect["text_contains"]), case
        passed += 1
    print(f"html_parser: {passed}/{len(found)}, {excepted} only in 1.x")


def test_noindex_drops_text_and_nofollow_drops_links(conf: Configuration) -> None:
    html = "<head><title>T</title><meta name=robots content={}></head><a href=x>a</a>"
    noindex, _ = parse(html.format("noindex"), conf)
    nofollow, _ = parse(html.format("nofollow"), conf)
    assert (noindex.text, noindex.title, len(noindex.outlinks)) == ("", "", 1)
    assert (nofollow.text, nofollow.title, len(nofollow.outlinks), nofollow.nofollow) == ("T a", "T", 0, 1)


def test_nofollow_page_text_excludes_scripts(conf: Configuration) -> None:
    result, _ = parse("<meta name=robots content=nofollow><script>var x</script>text", conf)
    assert result.text == "text"


def test_refresh_is_redirect_with_target_and_delay(conf: Configuration) -> None:
    result, _ = parse("<meta http-equiv=refresh content='7; url=/there'>", conf)
    assert (result.major, result.minor, result.args) == (1, 100, ("http://h.test/there", "7"))


def test_encoding_is_stored_as_metadata(conf: Configuration) -> None:
    _, page = parse("x", conf, Content_Type="text/html; charset=GBK")
    assert page.metadata["OriginalCharEncoding"] == page.metadata["CharEncodingForConversion"] == b"gb18030"


def test_cache_forbidden_follows_page(conf: Configuration) -> None:
    _, page = parse("<meta name=robots content=noarchive>", conf)
    assert page.metadata["caching.forbidden"] == b"content"
    page.content = b"<p>open again</p>"
    HtmlParser(conf).parse("http://h.test/", page)
    assert "caching.forbidden" not in page.metadata


def test_page_without_url_fails(conf: Configuration) -> None:
    result = HtmlParser(conf).parse("nonsense", fetched(b"x", url="nonsense"))
    assert result.major == 2
    assert "MalformedURLException" in result.args[0]
