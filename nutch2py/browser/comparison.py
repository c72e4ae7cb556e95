"""What a browser adds to a page: the report of ``parsechecker -render``."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.browser.rules import BrowserRules
from nutch2py.browser.shell import signs_of
from nutch2py.conf import Configuration
from nutch2py.parser.bounded_parsing import BoundedParsing
from nutch2py.webpage import WebPage


def comparison(conf: Configuration, url: str, plain: WebPage, rendered: WebPage) -> str:
    """Return the report: rule and signs, both ways side by side, the links that one of them has alone."""
    choice = BrowserRules(conf).choose(url)
    waits = " ".join(wait.what for wait in choice.waits)
    signs = signs_of((plain.content or b"").decode("utf-8", "replace"))
    told = ", ".join(f"{name} {_shown(value)}" for name, value in signs._asdict().items())
    parsing = BoundedParsing(conf)
    try:
        parses = [parsing.parse(url, page) for page in (plain, rendered)]
    finally:
        parsing.close()
    limits = " ".join(rendered.protocol_status.args) if rendered.protocol_status is not None else ""
    rows = [
        ("", "plain", "rendered"),
        ("bytes", *(str(len(page.content or b"")) for page in (plain, rendered))),
        ("title", *(parse.title for parse in parses)),
        ("characters", *(str(len(parse.text)) for parse in parses)),
        ("links", *(str(len(parse.outlinks)) for parse in parses)),
        ("base", *(page.base_url or url for page in (plain, rendered))),
    ]
    lines = [
        f"rule: {choice.way} {waits}",
        f"signs: {told}: {'an empty shell' if signs.shell else 'no shell'}",
        f"browser: {limits or 'nothing to render'}",
        *(f"{name:12}{left[:40]:42}{right}".rstrip() for name, left, right in rows),
    ]
    before, after = ({link.url: link.anchor for link in parse.outlinks} for parse in parses)
    lines += _only("+", after, before)
    lines += _only("-", before, after)
    return "\n".join(lines) + "\n\n"


def _only(mark: str, these: dict[str, str], others: dict[str, str]) -> Iterator[str]:
    yield from (f"{mark} {link} {anchor}".rstrip() for link, anchor in these.items() if link not in others)


def _shown(value: int | bool) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
