"""The main text of a page, without navigation and other boilerplate (``parser.html.main.text``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nutch2py.parser.dom import collapse

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_FURNITURE = (
    "nav,aside,form,footer,header,menu,button,select,dialog,template,noscript,[role=navigation],[role=banner],"
    "[role=contentinfo],[role=search],[role=complementary],[aria-hidden=true],[hidden]"
)
_NAMED = (
    "navbar", "nav", "menu", "sidebar", "footer", "header", "breadcrumb", "breadcrumbs", "toc", "cookie", "banner",
    "advert", "ads", "share", "social", "related", "comments", "pagination", "skip-link", "toolbar",
)  # fmt: skip
_BLOCKS = "p,pre,blockquote,td,li,dd,dt,h1,h2,h3,h4,h5,h6,figcaption,section,article,div"
_PLACES = "main,article,[role=main],[itemprop=articleBody]"
_MIN_LENGTH = 80  # characters of a block that is text and no label
_MAX_LINKED = 0.5  # part of a block that may be links
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def main_text(tree: LexborHTMLParser) -> str:
    """Return the text of what a reader came for, "" when nothing stands out.

    The place that the page itself calls main is taken when it holds a third of the text or more; furniture by name or
    role is left out; of the blocks that are left, those that are mostly links, or short and not between long ones, go.
    This is the link-density rule of Kohlschütter, Fankhauser and Nejdl (WSDM 2010) without its training.
    """
    body = tree.body
    if body is None:
        return ""
    whole = max(1, len(body.text()))
    root = body
    for place in body.css(_PLACES):
        if len(place.text()) * 3 >= whole:
            root = place
            break
    skipped = {node.mem_id for node in root.css(_FURNITURE)} if root is body else set()
    kept: list[tuple[str, bool, bool]] = []  # text, is long, is a heading
    for block in _leaves(root):
        if _is_furniture(block, root, skipped):
            continue
        text = collapse(block.text(separator="\0"))
        if not text.strip():
            continue
        linked = sum(len(link.text()) for link in block.css("a"))
        if linked > _MAX_LINKED * len(text):
            continue
        kept.append((text, len(text) >= _MIN_LENGTH, block.tag in _HEADINGS))
    long = [entry[1] for entry in kept]
    chosen = [
        text
        for index, (text, is_long, is_heading) in enumerate(kept)
        if is_long or (any(long[index + 1 : index + 3]) and (is_heading or any(long[max(0, index - 2) : index])))
    ]
    return "\n".join(chosen)


def _leaves(root: LexborNode) -> list[LexborNode]:
    """Return the blocks that hold no other block."""
    return [block for block in root.css(_BLOCKS) if len(block.css(_BLOCKS)) <= 1]


def _is_furniture(block: LexborNode, root: LexborNode, skipped: set[int]) -> bool:
    node: LexborNode | None = block
    while node is not None and node.mem_id != root.mem_id:
        if node.mem_id in skipped:
            return True
        attributes = node.attributes
        words = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower().split()
        if any(word in _NAMED for word in words):
            return True
        node = node.parent
    return False
