"""Comparison of a page before and after rendering: the report of ``parsechecker -render``."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.browser.app_shell import detect_shell_signs
from nutch2py.browser.browser_rules import BrowserRules
from nutch2py.conf.configuration import Configuration
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.webpage import WebPage


def format_render_diff(conf: Configuration, url: str, plain: WebPage, rendered: WebPage) -> str:
    """Return the report: rule and signs, both versions side by side, and the links of only one version."""
    decision = BrowserRules(conf).decide(url)
    waits = " ".join(wait.kind for wait in decision.waits)
    signs = detect_shell_signs((plain.content or b"").decode("utf-8", "replace"))
    sign_text = ", ".join(f"{name} {_format_value(value)}" for name, value in signs._asdict().items())
    worker = ParseWorkerClient(conf)
    try:
        parses = [worker.parse(url, page) for page in (plain, rendered)]
    finally:
        worker.close()
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
        f"rule: {decision.mode} {waits}",
        f"signs: {sign_text}: {'an empty shell' if signs.is_shell else 'no shell'}",
        f"browser: {limits or 'nothing to render'}",
        *(f"{name:12}{left[:40]:42}{right}".rstrip() for name, left, right in rows),
    ]
    before, after = ({link.url: link.anchor for link in parse.outlinks} for parse in parses)
    lines += _diff_links("+", after, before)
    lines += _diff_links("-", before, after)
    return "\n".join(lines) + "\n\n"


def _diff_links(mark: str, these: dict[str, str], others: dict[str, str]) -> Iterator[str]:
    yield from (f"{mark} {link} {anchor}".rstrip() for link, anchor in these.items() if link not in others)


def _format_value(value: int | bool) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
