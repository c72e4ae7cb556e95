import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.parser.html.dom import anchor_text, collapse, find_title, node_text, parse_tree, remove_scripts


def text_of(html: str) -> str:
    tree = parse_tree(html)
    remove_scripts(tree)
    assert tree.root is not None
    return node_text(tree.root)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a</p><p>b</p>", "a b"),
        ("<p>a</p>\n<p>b</p>", "a\nb"),
        ("<p>a</p>\n<i> </i>\t<p>b</p>\n", "a\nb\n"),
        ("<p>  a \n b\t</p>", "a b"),
        ("<p>a<b>b</b>c</p>", "a b c"),
        ("<p>a&nbsp;&nbsp; b</p>", "a\xa0\xa0 b"),
        ("<p>a<!-- not --><script>not</script><style>not</style></p>b", "a b"),
        ("<noscript>shown</noscript>", "shown"),
        ("<p>x\x0by\x1c</p>", "x y"),
        ("<p>\x01</p><p>b</p>", "b"),
        ("<title> T </title>\n<p>b", "T\nb"),
        ("", ""),
    ],
)
def test_text_nodes_are_joined_like_nutch(html: str, text: str) -> None:
    assert text_of(html) == text


def node_by_node(nodes: list[str]) -> str:
    """Put text nodes together one after the other, as the rule is written down."""
    text = ""
    for node in nodes:
        node = re.sub(r"[ \t\n\x0b\f\r]+", " ", node).strip("".join(map(chr, range(33))))
        if node:
            text += (" " if text and not text.endswith((" ", "\n")) else "") + node
        elif text and not text.endswith("\n"):
            text = text.rstrip(" ") + "\n"
    return text


@given(st.lists(st.text("ab \n\t\x0b\x01\x1f\xa0中😀", min_size=1, max_size=6), max_size=12))
def test_single_pass_equals_separate_passes(nodes: list[str]) -> None:
    assert collapse("\0".join(nodes)) == node_by_node(nodes)


def test_control_characters_are_trimmed_but_kept_inside() -> None:
    assert collapse("\x01a\x02b\x03\0c") == "a\x02b c"


@pytest.mark.parametrize(
    "drawing",
    ["<svg><title>drawing</title></svg>", "<svg><g><title>a</title><path></g></svg>", "<math><title>m</math>"],
)
def test_title_ignores_svg_title(drawing: str) -> None:
    assert find_title(parse_tree(f"<body>{drawing}<title> the\n page </title>")) == "the page"
    assert find_title(parse_tree(f"<body>{drawing}")) == ""
    assert find_title(parse_tree("<svg><foreignObject><div><title>a</title></div></foreignObject></svg>")) == "a"
    assert find_title(parse_tree("<svg><title>drawing</title></svg>")) == ""


def test_anchor_is_text_of_link() -> None:
    links = parse_tree("<a> one </a><a>two <b>words</b></a><a>a\xa0b  c</a><a>\n x\n</a><a><img></a>").css("a")
    assert [anchor_text(link) for link in links] == ["one", "two words", "a\xa0b c", "x", ""]


def test_self_closed_iframe_in_xhtml_swallows_nothing() -> None:
    assert text_of('<body><iframe src="a.html"/><p>after</p></body>') == "after"


def test_xhtml_elements_may_be_self_closed() -> None:
    html = (
        '<?xml version="1.0"?><html><head><title/><script src="a.js" /></head><body><a id="x"/><br/>text</body></html>'
    )
    tree = parse_tree(html, xml=True)
    assert tree.root is not None
    assert node_text(tree.root) == "text"
    assert [link.text() for link in tree.css("a")] == [""]
