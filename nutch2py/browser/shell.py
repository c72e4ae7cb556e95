"""Is a fetched page an empty shell, which only scripts fill? Decided by signs that were measured on real pages.

The signs and the numbers behind them: docs/plugins/protocol-browser.md.
"""

from __future__ import annotations

from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

MOST_TEXT = 250
"""Characters of text that a shell has at most."""
LITTLE_TEXT = 60
"""Characters that are so few that scripts alone are a sign."""
MOST_LINKS = 3
"""Links with a text that a shell has at most."""

_MOST_LOOKED_AT = 10  # elements of a kind; they can stand in each other, each with the text of all
_ROOTS = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #svelte, #q-app, #ember-app, #react-root, #app-root, #main-app, "
    "#application, #mount, app-root, my-app, [ng-app], [data-reactroot], [data-server-rendered], [data-svelte-root], "
    "[data-v-app], [v-cloak], [ng-version]"
)
_UNSEEN = ("script", "style", "template", "svg", "head")


class Signs(NamedTuple):
    """What tells of a shell.

    ``text``: characters that a reader sees without scripts; ``links``: links with a text; ``scripts``: scripts of the
    page that are loaded or are of a module, or ``inline`` characters in it. ``root``: an empty element that frameworks
    fill. ``notice``: the page says that it needs scripts. ``frames``: it is made of other pages.
    """

    text: int
    links: int
    scripts: int
    inline: int
    root: bool
    notice: bool
    frames: bool

    @property
    def shell(self) -> bool:
        """Whether the page is an empty shell."""
        if self.frames or not (self.scripts or self.inline) or self.text > MOST_TEXT or self.links > MOST_LINKS:
            return False
        return self.root or self.notice or self.text <= LITTLE_TEXT


def signs_of(html: str) -> Signs:
    """Return the signs of a page."""
    tree = LexborHTMLParser(html)
    notice = any(
        "javascript" in (node.text() or node.html or "").lower() for node in tree.css("noscript")[:_MOST_LOOKED_AT]
    )
    scripts = inline = 0
    for node in tree.css("script"):
        kind = (node.attributes.get("type") or "").strip().lower()
        if kind and kind != "module" and "javascript" not in kind and "ecmascript" not in kind:
            continue
        if "src" in node.attributes:
            scripts += 1
        else:
            inline += len(node.text().strip())
    root = any(not (node.text() or "").strip() for node in tree.css(_ROOTS)[:_MOST_LOOKED_AT])
    frames = tree.css_first("frameset, iframe") is not None
    tree.strip_tags([*_UNSEEN, "noscript"])
    body = tree.body
    text = " ".join((body.text(separator=" ") if body is not None else "").split())
    links = sum(1 for node in tree.css("a[href]") if (node.text() or "").strip())
    notice = notice or (len(text) <= MOST_TEXT and "enable javascript" in text.lower())
    return Signs(len(text), links, scripts, inline, root, notice, frames)
