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
_MOST_PLACES = 50
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
    for place in body.css(_PLACES)[:_MOST_PLACES]:
        if len(place.text()) * 3 >= whole:
            root = place
            break
    furniture = {node.mem_id: True for node in root.css(_FURNITURE)} if root is body else {}
    kept: list[tuple[str, bool, bool]] = []  # text, is long, is a heading
    for block in _leaves(root):
        if _is_furniture(block, root, furniture):
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
    blocks = root.css(_BLOCKS)
    known = {block.mem_id for block in blocks}
    holders: set[int] = set()
    seen: set[int] = set()
    for block in blocks:
        node = block.parent
        while node is not None and node.mem_id not in seen:
            seen.add(node.mem_id)
            if node.mem_id in known:
                holders.add(node.mem_id)
                break
            node = node.parent
    return [block for block in blocks if block.mem_id not in holders]


def _is_furniture(block: LexborNode, root: LexborNode, found: dict[int, bool]) -> bool:
    """Tell whether a block or what is around it is furniture. ``found``: what is known, of each node looked at once."""
    path: list[int] = []
    node: LexborNode | None = block
    answer = False
    while node is not None and node.mem_id != root.mem_id:
        known = found.get(node.mem_id)
        if known is not None:
            answer = known
            break
        path.append(node.mem_id)
        attributes = node.attributes
        words = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower().split()
        if any(word in _NAMED for word in words):
            answer = True
            break
        node = node.parent
    found.update(dict.fromkeys(path, answer))
    return answer
