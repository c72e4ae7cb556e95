from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest
from selectolax.lexbor import LexborNode

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_structured import StructuredIndexingFilter
from nutch2py.parser.filters.structured_filter import STRUCTURED_DATA_KEY, StructuredParseFilter
from nutch2py.parser.html import structured_data
from nutch2py.parser.html.dom import node_text, parse_tree, remove_scripts
from nutch2py.parser.html.html_parser import HtmlParser
from nutch2py.parser.html.structured_data import STRUCTURED_DATA_LIMITS, extract_structured_data, read_json_ld
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage

from .pages import URL, fetched

BASE = "http://h/d/"


def data(html: str) -> dict[str, object]:
    tree = parse_tree(html)
    remove_scripts(tree)
    return extract_structured_data(tree, html, BASE)


def script(json: str) -> str:
    return f"<script type='application/ld+json'>{json}</script>"


def test_open_graph_and_twitter_cards_are_read() -> None:
    html = (
        "<meta property='og:title' content=' A title '><meta property=og:image content=a.png><meta property=og:image "
        "content=b.png><meta name=twitter:card content=summary><meta name=author content=x><meta property=og:url>"
    )
    assert data(html) == {
        "meta": {"og:title": ["A title"], "og:image": ["a.png", "b.png"], "twitter:card": ["summary"]}
    }


def test_related_pages_are_read() -> None:
    html = (
        "<link rel='alternate' hreflang=DE href=de.html><link rel=alternate hreflang=x-default href=/>"
        "<link rel=alternate type=application/rss+xml href=feed>"
        "<link rel=next href=?p=2><link rel=previous href=p><link rel=canonical href=c>"
    )
    languages = {"de": "http://h/d/de.html", "x-default": "http://h/"}
    assert data(html) == {
        "links": {"hreflang": languages, "next": "http://h/d/?p=2", "prev": "http://h/d/p", "canonical": "http://h/d/c"}
    }


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ('{"a": 1}', [{"a": 1}]),
        (' [{"a": 1}, 2, {"b": "x // y"}] ', [{"a": 1}, {"b": "x // y"}]),
        ('<!-- {"a": 1} -->', [{"a": 1}]),
        ('//<![CDATA[\n{"a": "]"}\n//]]>', [{"a": "]"}]),
        ('<!-- said --> {"a": "<!-- kept -->"} // so', [{"a": "<!-- kept -->"}]),
        ('{"a": [1, 2, ], /* why */ "u": "http://h/", }', [{"a": [1, 2], "u": "http://h/"}]),
        ("{&quot;a&quot;: 1}", [{"a": 1}]),
        ('{"a": "line\nend"}', [{"a": "line\nend"}]),
        ("{", []),
        ("null", []),
        ("[" * 5000, []),
    ],
)  # fmt: skip
def test_json_ld_is_read_leniently(written: str, found: list[object]) -> None:
    assert list(read_json_ld(script(written) + script('{"z": 0}'))) == [*found, {"z": 0}]


def test_microdata_items_are_read() -> None:
    html = (
        "<div itemscope itemtype='http://schema.org/Book' itemref=more><b itemprop='name alternateName'>A  book</b>"
        "<a itemprop=url href=b>x</a><time itemprop=date datetime=2026-01-02>now</time><meta itemprop=n content=5>"
        "<p itemprop=author itemscope><span itemprop=name>Me</span></p><data itemprop=d value=7>seven</data></div>"
        "<i id=more><img itemprop=image src=i.png></i>"
    )
    properties = {
        "name": ["A book"], "alternateName": ["A book"], "url": ["http://h/d/b"], "date": ["2026-01-02"], "n": ["5"],
        "author": [{"properties": {"name": ["Me"]}}], "d": ["7"], "image": ["http://h/d/i.png"],
    }  # fmt: skip
    assert data(html) == {"microdata": [{"type": ["http://schema.org/Book"], "properties": properties}]}


def test_input_values_are_read() -> None:
    html = "<form itemscope><input itemprop=query-input name=q required maxlength=9><input itemprop=none></form>"
    asked = {"valueName": "q", "valueRequired": True, "valueMaxLength": "9"}
    assert data(html) == {"microdata": [{"properties": {"query-input": [asked], "none": [""]}}]}


def test_top_level_items_are_separate() -> None:
    html = "<div itemscope itemref=x><b itemprop=a>1</b></div><p id=x itemscope><b itemprop=b>2</b></p>"
    assert data(html) == {"microdata": [{"properties": {"a": ["1"]}}, {"properties": {"b": ["2"]}}]}


def test_self_containing_items_terminate() -> None:
    html = "<div id=a itemscope><b itemprop=x itemscope itemref=a></b></div>"
    assert str(data(html)).count("properties") <= STRUCTURED_DATA_LIMITS.depth + 2


def test_rdfa_items_are_read() -> None:
    html = (
        "<div vocab='http://schema.org/' typeof=Person resource='#me'><span property=name>Me</span><a property=url "
        "href=u>u</a><div property=address typeof='PostalAddress ex:Place'><i property=city content=C>c</i></div></div>"
    )
    address = {"type": ["http://schema.org/PostalAddress", "ex:Place"], "properties": {"city": ["C"]}}
    properties = {"name": ["Me"], "url": ["http://h/d/u"], "address": [address]}
    person = {"type": ["http://schema.org/Person"], "id": "http://h/d/#me", "properties": properties}
    assert data(html) == {"rdfa": [person]}


def test_structured_data_sets_index_fields(conf: Configuration) -> None:
    conf.set("plugin.includes", "parse-html|index-structured")
    author, others = '"author": {"name": "Ann"}', '"image": ["i", "i"], "@graph": [{"@type": "Org"}]'
    ld = f'{{"@type": ["Article"], {author}, "price": 5, {others}}}'
    page = fetched(
        b"<meta property=og:type content=article><link rel=alternate hreflang=de href=/de>" + script(ld).encode()
    )
    HtmlParser(conf).parse(URL, page)
    document = StructuredIndexingFilter(conf).filter(NutchDocument(), URL, page)
    assert document is not None
    assert document.fields == {
        "og_type": ["article"], "schema_type": ["Article", "Org"], "schema_author": ["Ann"], "schema_price": ["5"],
        "schema_image": ["i"], "schema_name": ["Ann"], "link_hreflang": ["de http://h.test/de"],
    }  # fmt: skip
    page.content = b"nothing"
    HtmlParser(conf).parse(URL, page)
    assert STRUCTURED_DATA_KEY not in page.metadata


def test_stored_data_is_bounded_and_serializable(conf: Configuration) -> None:
    conf.set("plugin.includes", "parse-html|index-structured")
    deep, odd = '{"a":' * 500 + "1" + "}" * 500, '{"n": 123456789012345678901234567890, "s": "\\ud800", "x": NaN}'
    page = fetched((script(deep) + script(odd)).encode())
    HtmlParser(conf).parse(URL, page)
    assert orjson.loads(page.metadata[STRUCTURED_DATA_KEY])["jsonld"][1] == {
        "n": "123456789012345678901234567890",
        "s": "?",
        "x": None,
    }
    much = '{"a": [' + "1," * 60_000 + "1]}"
    page = fetched(f"<meta property=og:type content=a>{script(much)}".encode())
    HtmlParser(conf).parse(URL, page)
    assert orjson.loads(page.metadata[STRUCTURED_DATA_KEY]) == {"meta": {"og:type": ["a"]}}


def test_row_without_entry_is_unchanged(conf: Configuration) -> None:
    page = WebPage()
    indexing = StructuredIndexingFilter(conf)
    assert indexing.filter(NutchDocument(), URL, page) == NutchDocument()
    page.metadata[STRUCTURED_DATA_KEY] = b"{"
    assert indexing.filter(NutchDocument(), URL, page) == NutchDocument()
    assert StructuredParseFilter(conf).fields == {WebPage.metadata}


def valued(values: str) -> str:
    return "<div itemscope>" + values


BLOWN: dict[str, Callable[[int], str]] = {
    "names of a value": lambda n: valued("<p itemprop='" + " ".join(map(str, range(n))) + "'>" + "t " * n),
    "names of items in items": lambda n: valued("<div itemscope itemprop='a b c'>" * 14 + "x" * n),
    "types with a vocabulary": lambda n: f"<div vocab={'v' * n}>" + "<p typeof='a b c d e f g h'>" * (n // 30),
    "names of meta elements": lambda n: (
        "<meta property='" + " ".join(f"og:{i}" for i in range(n)) + f"' content={'c' * n}>"
    ),
    "values in values": lambda n: valued("".join(f"<i itemprop=a{i}>" for i in range(n // 20)) + "t " * n),
    "items in items": lambda n: "<div itemscope>" * (n // 20) + "t " * n,
    "elements in values": lambda n: valued("<i itemprop=a>" * (n // 20) + "<b></b>" * n),
    "one element of many items": lambda n: (
        f"<p id=x itemprop=y>{'t ' * n}</p>" + "<div itemscope itemref=x></div>" * (n // 20)
    ),
}


@pytest.mark.parametrize("blown", BLOWN)
def test_repeated_text_is_limited(blown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value counts as often as it is kept, under each name, and a text as often as it is read."""
    reads = 0

    def reading(node: LexborNode) -> str:
        nonlocal reads
        text = node_text(node)
        reads += len(text) + 100
        return text

    monkeypatch.setattr(structured_data, "node_text", reading)
    found = data(BLOWN[blown](20_000))
    assert reads < 2 * STRUCTURED_DATA_LIMITS.read_chars
    assert len(orjson.dumps(found)) < 4 * STRUCTURED_DATA_LIMITS.kept_chars


def test_items_are_stored_under_each_type() -> None:
    html = "<div itemscope><p itemscope itemprop='a b'><i itemprop='c d'>x</i></p></div>"
    inner = {"properties": {"c": ["x"], "d": ["x"]}}
    assert data(html) == {"microdata": [{"properties": {"a": [inner], "b": [inner]}}]}
