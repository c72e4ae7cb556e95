"""The depth measured from tags is never less than that of the tree, whatever hides it."""

# ruff: noqa: E501

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nutch2py.parser.html.dom import parse_tree
from nutch2py.parser.html.html_limits import DEPTH_LIMIT, HtmlLimits
from nutch2py.parser.html.nesting_depth import measure_nesting_depth
from tests.growth import assert_linear, repetitions

MOST = 100_000
DEEPER = 8  # uncounted elements (paragraphs, rows, cells …) may be between two counted ones


def depth_of(html: str) -> int:
    """Return how deep the tree is."""
    deepest, waiting = 0, [(parse_tree(html).root, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        child = node.child
        while child is not None:
            waiting.append((child, depth + 1))
            child = child.next
    return deepest


HIDING = [
    "<textarea><script></textarea><div>", "<div><a b='</div>'>", "<div><!--</div>-->", "<div></ </div>", "<div><! </div>",
    "<div><?x </div>", "<title><!--</title><div>", "<svg><title><!--</title></svg></div>--><div>", "<form><div></form>",
    "<div><table></div></table>", "<span><p></span><div></div>", "<div><select></div></select>", "<b><div></b>",
    "<style><!--</style><div>", "<div><script><!--<script></script></div></script>-->", "<i><li></i>", "<div><object></div>",
    "<select><style><!--</style></select></div>--><div>", "<div><xmp></div></xmp>", "<div><svg><![CDATA[</div>]]>",
    "<div><iframe></div></iframe>", "<math><mi><div></math>", "<svg><foreignObject><p></svg>", "<span><button></span>",
    "<ruby><rt></ruby>", "<div><noscript></div>", "<div><template></div></template>", "<a><div></a>", "<nobr><td></nobr>",
]  # fmt: skip


@pytest.mark.parametrize("unit", HIDING)
def test_nesting_scan_misses_no_depth(unit: str) -> None:
    html = unit * 60
    real = depth_of(html)
    assert DEEPER * measure_nesting_depth(html, MOST) + 30 >= real


def test_page_hiding_depth_is_flattened() -> None:
    for unit in ("<div><a b='</div>'>", "<div><!--</div>-->", "<form><div></form>"):
        assert DEPTH_LIMIT in HtmlLimits().apply(unit * 10_000)[1]
    assert DEPTH_LIMIT in HtmlLimits().apply("<textarea><script></textarea>" + "<div><p>" * 10_000)[1]


def test_ordinary_pages_are_not_deep() -> None:
    html = "<div class='a'><p>x<ul><li><a href=x>y</a><li>z</ul><img><br></p><svg><title>t</title><path d=x /><g><use/></g></svg>"
    html += "<table><tr><td><b>x</b></table><script>'<div>'</script><select><option>a</select><!-- <div> --></div>"
    assert measure_nesting_depth(html * 500, MOST) < 12


TAGS = ["div", "p", "span", "b", "a", "table", "tr", "td", "li", "ul", "select", "option", "svg", "math", "mi", "title", "style",
        "script", "textarea", "form", "button", "object", "h1", "template", "foreignObject", "g", "caption", "noscript", "xmp"]  # fmt: skip
PIECE = st.one_of(
    st.sampled_from(TAGS).map(lambda name: f"<{name}>"),
    st.sampled_from(TAGS).map(lambda name: f"</{name}>"),
    st.sampled_from(
        ["<!--", "-->", "<![CDATA[", "]]>", "<a b='", "'>", '<a b="', '">', "<?", "</ ", ">", "x", "<g/>", "<path/>"]
    ),
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.lists(PIECE, min_size=1, max_size=8))
@example(["<span>", "<b>", "<b>", "</span>"])
@example(["<div>", "<div>", "</caption>", "<caption>"])
def test_repeated_elements_are_not_deeper_than_reported(pieces: list[str]) -> None:
    html = "".join(pieces) * 40
    assert DEEPER * measure_nesting_depth(html, MOST) + 30 >= depth_of(html)


def test_nesting_scan_time_is_linear() -> None:
    pieces = [
        *HIDING,
        "<",
        "<a ",
        "<a b",
        "<a b='",
        "</",
        "<!",
        "<!--",
        "<![CDATA[",
        "</div>",
        "<script>",
        "</script",
        "<p>",
        "</p>",
    ]
    assert_linear(lambda html: measure_nesting_depth(html, 1 << 30), repetitions(pieces, ["", "<svg>"], [""]), 16_384)
