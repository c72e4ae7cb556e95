"""Renders a row in the requested format, optionally with its main text as Markdown (``readdb -markdown``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.row_output.row_formats import format_csv_line, format_json_row, get_csv_values
from nutch2py.jobs.row_output.row_text import format_page, page_fields
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage

RowSections = Mapping[str, bool]
"""Optional parts to show: content, headers, links, text."""
OutputFormat = Literal["text", "json", "csv"]
"""Output format of rows and statistics."""


class MarkdownRenderer:
    """Renders the content of rows as Markdown, with the limits of the parse job. Must be closed."""

    fields: frozenset[RecordField]

    def __init__(self, conf: Configuration) -> None:
        # The parsers cost start-up, which readdb without -markdown saves.
        from nutch2py.parser.html.main_text import require_trafilatura
        from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient

        require_trafilatura("-markdown")
        conf = conf.copy()
        conf.set("tika.boilerpipe", True)
        conf.set("parser.html.main.text.form", "markdown")
        self._parsing = ParseWorkerClient(conf)
        self.fields = self._parsing.fields | {WebPage.text}

    def render(self, url: str, page: WebPage) -> str | None:
        """Return the main text of an HTML page, otherwise the text of the row, or None."""
        if page.content and page.content_type in ("text/html", "application/xhtml+xml"):
            # of a copy: the row must not change
            found = self._parsing.parse(url, WebPage(page.current_cells(self._parsing.fields)))
            if found.text:
                return found.text
        return page.text

    def close(self) -> None:
        """Stop the parser process."""
        self._parsing.close()


def shown_fields(sections: RowSections, markdown: MarkdownRenderer | None) -> frozenset[RecordField]:
    """Return the fields needed to show a row."""
    return page_fields(**sections) | (markdown.fields if markdown else frozenset())


def render_row(
    output_format: OutputFormat,
    key: str,
    url: str,
    page: WebPage,
    sections: RowSections,
    markdown: MarkdownRenderer | None,
    shown_key: str = "",
    show_url: Callable[[str], str] = str,
) -> str:
    """Return a row as it is printed.

    In text format, ``shown_key`` is the value of ``key:``, by default the URL, and ``show_url`` writes the URLs.
    """
    if output_format == "csv":
        return format_csv_line(get_csv_values(key, page))
    text = markdown.render(url, page) if markdown else None
    if output_format == "json":
        return format_json_row(key, page, page_fields(**sections), text)
    return format_page(shown_key or show_url(url), page, **sections, markdown=text, show_url=show_url)
