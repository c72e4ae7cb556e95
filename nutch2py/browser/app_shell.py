"""Detects app shells: fetched pages without content, which scripts would fill.

The signs and their measurements: docs/plugins/protocol-browser.md.
"""

from __future__ import annotations

from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

MAX_TEXT_LENGTH = 250
"""Maximum number of text characters of a shell."""
SPARSE_TEXT_LENGTH = 60
"""Number of characters below which scripts alone are a sign."""
MAX_LINKS = 3
"""Maximum number of links with text in a shell."""

_MAX_INSPECTED = 10  # elements per selector; nested ones each contain the whole text
_ROOT_SELECTORS = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #svelte, #q-app, #ember-app, #react-root, #app-root, #main-app, "
    "#application, #mount, app-root, my-app, [ng-app], [data-reactroot], [data-server-rendered], [data-svelte-root], "
    "[data-v-app], [v-cloak], [ng-version]"
)
_INVISIBLE_TAGS = ("script", "style", "template", "svg", "head")


class AppShellSigns(NamedTuple):
    """Signs of an app shell.

    Attributes:
        text: Characters visible without scripts.
        links: Links with text.
        scripts: External scripts, including modules.
        inline: Characters of inline scripts.
        root: Whether an empty element that frameworks fill exists.
        notice: Whether the page says that it requires scripts.
        frames: Whether the page contains frames.
    """

    text: int
    links: int
    scripts: int
    inline: int
    root: bool
    notice: bool
    frames: bool

    @property
    def is_shell(self) -> bool:
        """Whether the page is an empty shell."""
        if self.frames or not (self.scripts or self.inline) or self.text > MAX_TEXT_LENGTH or self.links > MAX_LINKS:
            return False
        return self.root or self.notice or self.text <= SPARSE_TEXT_LENGTH


def detect_shell_signs(html: str) -> AppShellSigns:
    """Return the signs of a page."""
    tree = LexborHTMLParser(html)
    notice = any(
        "javascript" in (node.text() or node.html or "").lower() for node in tree.css("noscript")[:_MAX_INSPECTED]
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
    root = any(not (node.text() or "").strip() for node in tree.css(_ROOT_SELECTORS)[:_MAX_INSPECTED])
    frames = tree.css_first("frameset, iframe") is not None
    tree.strip_tags([*_INVISIBLE_TAGS, "noscript"])
    body = tree.body
    text = " ".join((body.text(separator=" ") if body is not None else "").split())
    links = sum(1 for node in tree.css("a[href]") if (node.text() or "").strip())
    notice = notice or (len(text) <= MAX_TEXT_LENGTH and "enable javascript" in text.lower())
    return AppShellSigns(len(text), links, scripts, inline, root, notice, frames)
