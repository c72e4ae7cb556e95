"""Charts in a browser: no overlapping text at any width, accessible, without requests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nutch2py.charts.chart import read_stylesheet
from tests.charts.chrome import OVERLAPS, VIEWS, faults, open_page, save, too_wide
from tests.charts.samples import COUNTS, HOSTILE, render_charts

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LAYOUT = """body { margin: 1.2rem; background: var(--paper); color: var(--ink); font: 16px system-ui, sans-serif; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(21rem, 100%), 1fr)); gap: 2rem; }"""


@pytest.mark.parametrize(
    ("size", "scheme", "names"),
    [(*view, HOSTILE if number in (1, 2) else ()) for number, view in enumerate(VIEWS)],
    ids=["plain", "hostile", "hostile-wide", "plain-wide"],
)
def test_every_chart_kind_renders_in_browser(
    chrome: Browser, axe: str, tmp_path: Path, size: str, scheme: str, names: tuple[str, ...]
) -> None:
    drawn = [chart for count in COUNTS for chart in render_charts(count, names)]
    wide = next(chart for chart in render_charts(40, names) if chart.title == "Links")
    charts_html = "".join(chart.html() for chart in drawn)
    document = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Pictures</title><style>{read_stylesheet()}{LAYOUT}</style><body><main><h1>Pictures</h1>{charts_html}"
        f'<div style="grid-column: 1 / -1">{wide.html()}</div></main>'
    )
    path = tmp_path / "pictures.html"
    path.write_text(document, "utf-8")
    with open_page(chrome, size, scheme) as page:
        page.goto(path.as_uri())
        save(page, f"pictures-{size}-{scheme}{'-hostile' if names else ''}", os.environ.get("NUTCH2PY_SCREENSHOTS"))
        assert page.evaluate(OVERLAPS) == []
        assert too_wide(page) == 0
        assert faults(page, axe) == []
        assert page.title() == "Pictures"
        assert page.console_lines == []  # type: ignore[attr-defined]
        assert page.requested_urls == [path.as_uri()]  # type: ignore[attr-defined]
