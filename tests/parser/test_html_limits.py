"""Pages made so that their tree takes more time or memory than their size: they lose markup, never links or text."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from nutch2py.conf import Configuration
from nutch2py.parser.dom import anchor_text, cut_scripts, node_text, parse_tree, title_of
from nutch2py.parser.html_limits import ATTRIBUTES, DEPTH, FORMATTING, HtmlLimits, format_copies
from nutch2py.parser.nesting import nesting_depth
from nutch2py.parser.parsing import Parsing

from .pages import KEY, fetched

LIMITS = HtmlLimits()
PAGE = "<title>t</title><p>words <a href=/l>link</a>"


def tree_of(html: str) -> LexborHTMLParser:
    tree = parse_tree(html)
    cut_scripts(tree)
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
    "behind a comment that looks like a value": '<!-- <p x=" -->' + "<p " + numbered("b{} ", 20_000) + ">",
    "behind a script": "<script>if (a<b x='</script><p " + numbered("b{} ", 20_000) + ">",
    "behind a style in a drawing": "<svg><style><p " + numbered("b{} ", 20_000) + "></style>",
    "behind a name": "<b<b<p " + numbered("b{} ", 20_000) + ">",
    "with NUL": "<p " + numbered("b{}\0 ", 20_000) + ">",
    "in capitals": numbered("<HTML b{}=1>", 20_000),
    "html in a value": "<!--<html x='-->" + numbered("<html b{}=1>", 20_000),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_attributes_beyond_the_limit_are_left_out(name: str) -> None:
    html, met = LIMITS.apply(PAGE + HIDDEN[name])
    assert met == (ATTRIBUTES,)
    assert most_attributes(html) <= LIMITS.attributes
    tree = tree_of(html)
    assert title_of(tree) == "t"
    assert [anchor_text(link) for link in tree.css("a[href='/l']")] == ["link"]


def test_what_is_left_of_a_page_with_too_many_attributes() -> None:
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
def test_open_formatting_elements_are_not_copied_without_end(opening: str) -> None:
    html, met = LIMITS.apply(PAGE + "<p>" + numbered(opening, 1_000) + "<p>x" * 10_000)
    assert FORMATTING in met
    tree = tree_of(html)
    assert len(tree.css("*")) < 15_000
    assert [anchor_text(link) for link in tree.css("a[href]")] == ["link"]
    assert tree.root is not None
    assert node_text(tree.root).split() == ["t", "words", "link", *["x"] * 10_000]


def test_an_end_tag_that_closes_nothing_hides_no_formatting_element() -> None:
    for hidden in ("<!--</b>-->", "<table></b></table>", "<p title='</b>'>", "<applet></b></applet>"):
        assert FORMATTING in LIMITS.apply("<p>" + numbered("<b id={}>" + hidden, 1_000) + "<p>x" * 10_000)[1]


def test_copies_are_those_of_the_standard() -> None:
    assert format_copies("<b><i><u>" * 2 + "<p>x" * 94) == 6 * 100
    assert format_copies("<b>" * 50 + "<p>x" * 50) == 3 * 100
    assert format_copies("<b id=1>" * 50 + "<p>x" * 50) == 3 * 100
    assert format_copies(numbered("<b id={}>", 50) + "<p>x" * 50) == 50 * 100
    assert format_copies(numbered("<b id={}>x <a href='/'>y</a></b>", 50)) == 0
    assert format_copies(numbered("<b id={}>x</i>", 50)) == 50 * 100


@pytest.mark.parametrize(("start", "end"), [
    ("<div>", "</div>"), ("<ins></del>", ""), ("<SECTION class='a'>", "</p>"), ("<div><!--</div>-->", ""),
    ("<div><script></div></script>", ""),
])  # fmt: skip
def test_a_page_nested_too_deep_is_made_flat_and_keeps_its_text_and_links(start: str, end: str) -> None:
    page = "<title>t</title>" + start * 60_000 + "<a href='x'>deep</a>" + end * 60_000
    html, met = LIMITS.apply(page)
    assert met[-1] == DEPTH
    tree = tree_of(html)
    assert len(tree.css("div,section")) == 0
    assert title_of(tree) == "t"
    assert [anchor_text(link) for link in tree.css("a[href]")] == ["deep"]
    assert tree.root is not None
    assert node_text(tree.root).split() == ["t", "deep"]


def test_depth_counts_what_nests() -> None:
    assert nesting_depth("<div><b>x</b><b>y</b></div>" * 9, 100) == 2
    assert nesting_depth("<li>x" * 50 + "<br>" * 50, 100) == 0
    assert nesting_depth("</b>" * 5 + "<i></b>" * 7, 100) == 7


def test_a_page_as_pages_are_is_left_alone() -> None:
    row = "<tr><td><b>n</b> <code class='c x'>v</code> <i id='i{}'>t</i> <a href='/{}'>l</a></td></tr>"
    page = "<html><body class=a><table>" + "".join(row.format(n, n) for n in range(300)) + "</table>"
    page += "<script>" + "if(a<b&&c<d){e('<div>')}" * 5_000 + "</script>" + "words " * 50_000
    assert LIMITS.apply(page) == (page, ())


def test_limits_are_properties_and_a_row_names_those_it_met(conf: Configuration) -> None:
    body = b"<title>t</title><p " + b" ".join(b"a%d" % n for n in range(30)) + b" " * 20_000 + b">text"
    page = fetched(body)
    assert Parsing(conf).process(KEY, page).label == "success"
    assert "parser.html.limit" not in page.metadata
    conf.set("parser.html.max.attributes", 20)
    assert Parsing(conf).process(KEY, page).label == "success"
    assert (page.metadata["parser.html.limit"], page.title, page.text) == (b"attributes", "t", "t text")
    conf.set("parser.html.max.attributes", 0)
    assert Parsing(conf).process(KEY, page).label == "success"
    assert "parser.html.limit" not in page.metadata
