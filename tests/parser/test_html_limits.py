"""Pages with a tree that would take excessive time or memory: they lose markup, never links or text."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.html.dom import anchor_text, find_title, node_text, parse_tree, remove_scripts
from nutch2py.parser.html.html_limits import (
    ATTRIBUTE_LIMIT,
    DEPTH_LIMIT,
    FORMATTING_LIMIT,
    HtmlLimits,
    estimate_formatting_copies,
)
from nutch2py.parser.html.nesting_depth import measure_nesting_depth
from nutch2py.parser.row_parser import RowParser

from .pages import KEY, fetched

LIMITS = HtmlLimits()
PAGE = "<title>t</title><p>words <a href=/l>link</a>"


def tree_of(html: str) -> LexborHTMLParser:
    tree = parse_tree(html)
    remove_scripts(tree)
    return tree


def most_attributes(html: str) -> int:
    return max(len(node.attributes) for node in tree_of(html).css("*"))


def numbered(form: str, count: int) -> str:
    return "".join(form.format(number) for number in range(count))


HIDDEN = {
    "one element": "<p " + numbered("b{} ", 20_000) + ">",
    "without white space": "<p/" + numbered("b{}/", 20_000) + ">",
    "quoted": "<p " + numbered("b{}='>'", 20_000) + ">",
    "never closed": "<p " + numbered("b{}=1 ", 20_000),
    "html again": numbered("<html b{}=1>", 20_000),
    "body again": numbered("<body b{}=1>", 20_000),
    "after a comment that looks like a value": '<!-- <p x=" -->' + "<p " + numbered("b{} ", 20_000) + ">",
    "after a script": "<script>if (a<b x='</script><p " + numbered("b{} ", 20_000) + ">",
    "after a style in SVG": "<svg><style><p " + numbered("b{} ", 20_000) + "></style>",
    "after a name": "<b<b<p " + numbered("b{} ", 20_000) + ">",
    "with NUL": "<p " + numbered("b{}\0 ", 20_000) + ">",
    "in capitals": numbered("<HTML b{}=1>", 20_000),
    "html in a value": "<!--<html x='-->" + numbered("<html b{}=1>", 20_000),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_attributes_beyond_limit_are_dropped(name: str) -> None:
    html, met = LIMITS.apply(PAGE + HIDDEN[name])
    assert met == (ATTRIBUTE_LIMIT,)
    assert most_attributes(html) <= LIMITS.attributes
    tree = tree_of(html)
    assert find_title(tree) == "t"
    assert [anchor_text(link) for link in tree.css("a[href='/l']")] == ["link"]


def test_page_with_too_many_attributes_keeps_text() -> None:
    page = (
        "<p " + numbered("b{} ", 10_000) + ">one</p><script>if (a<b) x='<i>'</script><!-- <p> -->"
        '<a class=x title=\'a>b "c"\' href="/q?a=1&amp;b=2">two</a><IMG src = s.png><p 1=2>three'
    )
    html, _ = LIMITS.apply(page)
    tree = tree_of(html)
    assert tree.root is not None
    assert node_text(tree.root).split() == ["one", "two", "three"]
    link = tree.css("a")[0].attributes
    assert (link["href"], link["title"]) == ("/q?a=1&b=2", 'a>b "c"')
    assert tree.css("img")[0].attributes["src"] == "s.png"


@pytest.mark.parametrize("opening", ["<b id={}>", "<b id='{}'>", "<FONT/color={}>", "<i\na=1 b={}>", "<u a='>' b={}>"])
def test_open_formatting_elements_are_limited(opening: str) -> None:
    html, met = LIMITS.apply(PAGE + "<p>" + numbered(opening, 1_000) + "<p>x" * 10_000)
    assert FORMATTING_LIMIT in met
    tree = tree_of(html)
    assert len(tree.css("*")) < 15_000
    assert [anchor_text(link) for link in tree.css("a[href]")] == ["link"]
    assert tree.root is not None
    assert node_text(tree.root).split() == ["t", "words", "link", *["x"] * 10_000]


def test_unmatched_end_tag_does_not_hide_formatting_elements() -> None:
    for hidden in ("<!--</b>-->", "<table></b></table>", "<p title='</b>'>", "<applet></b></applet>"):
        assert FORMATTING_LIMIT in LIMITS.apply("<p>" + numbered("<b id={}>" + hidden, 1_000) + "<p>x" * 10_000)[1]


def test_formatting_copies_match_standard() -> None:
    assert estimate_formatting_copies("<b><i><u>" * 2 + "<p>x" * 94) == 6 * 100
    assert estimate_formatting_copies("<b>" * 50 + "<p>x" * 50) == 3 * 100
    assert estimate_formatting_copies("<b id=1>" * 50 + "<p>x" * 50) == 3 * 100
    assert estimate_formatting_copies(numbered("<b id={}>", 50) + "<p>x" * 50) == 50 * 100
    assert estimate_formatting_copies(numbered("<b id={}>x <a href='/'>y</a></b>", 50)) == 0
    assert estimate_formatting_copies(numbered("<b id={}>x</i>", 50)) == 50 * 100


@pytest.mark.parametrize(("start", "end"), [
    ("<div>", "</div>"), ("<ins></del>", ""), ("<SECTION class='a'>", "</p>"), ("<div><!--</div>-->", ""),
    ("<div><script></div></script>", ""),
])  # fmt: skip
def test_deeply_nested_page_is_flattened_and_keeps_text_and_links(start: str, end: str) -> None:
    page = "<title>t</title>" + start * 60_000 + "<a href='x'>deep</a>" + end * 60_000
    html, met = LIMITS.apply(page)
    assert met[-1] == DEPTH_LIMIT
    tree = tree_of(html)
    assert len(tree.css("div,section")) == 0
    assert find_title(tree) == "t"
    assert [anchor_text(link) for link in tree.css("a[href]")] == ["deep"]
    assert tree.root is not None
    assert node_text(tree.root).split() == ["t", "deep"]


def test_depth_counts_nesting_elements() -> None:
    assert measure_nesting_depth("<div><b>x</b><b>y</b></div>" * 9, 100) == 2
    assert measure_nesting_depth("<li>x" * 50 + "<br>" * 50, 100) == 0
    assert measure_nesting_depth("</b>" * 5 + "<i></b>" * 7, 100) == 7


def test_ordinary_page_is_unchanged() -> None:
    row = "<tr><td><b>n</b> <code class='c x'>v</code> <i id='i{}'>t</i> <a href='/{}'>l</a></td></tr>"
    page = "<html><body class=a><table>" + "".join(row.format(n, n) for n in range(300)) + "</table>"
    page += "<script>" + "if(a<b&&c<d){e('<div>')}" * 5_000 + "</script>" + "words " * 50_000
    assert LIMITS.apply(page) == (page, ())


def test_limits_are_properties_and_exceeded_ones_are_recorded(conf: Configuration) -> None:
    body = b"<title>t</title><p " + b" ".join(b"a%d" % n for n in range(30)) + b" " * 20_000 + b">text"
    page = fetched(body)
    assert RowParser(conf).parse_row(KEY, page).label == "success"
    assert "parser.html.limit" not in page.metadata
    conf.set("parser.html.max.attributes", 20)
    assert RowParser(conf).parse_row(KEY, page).label == "success"
    assert (page.metadata["parser.html.limit"], page.title, page.text) == (b"attributes", "t", "t text")
    conf.set("parser.html.max.attributes", 0)
    assert RowParser(conf).parse_row(KEY, page).label == "success"
    assert "parser.html.limit" not in page.metadata
