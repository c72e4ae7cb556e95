"""A row in the form that is asked for, with the main text as Markdown (``readdb -markdown``) when it is to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.row_output.row_formats import format_csv_line, format_json_row, get_csv_values
from nutch2py.jobs.row_output.row_text import format_page, page_fields
from nutch2py.parser.html.main_text import require_trafilatura
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.record import Field
from nutch2py.records.webpage import WebPage

RowSections = Mapping[str, bool]
"""Which of content, headers, links and text to show beside the rest."""
OutputFormat = Literal["text", "json", "csv"]
"""How rows and statistics are printed."""


class MarkdownRenderer:
    """Rows to Markdown, from their content: parsed within the same bounds as by the job. To be closed."""

    fields: frozenset[Field[Any]]

    def __init__(self, conf: Configuration) -> None:
        require_trafilatura("-markdown")
        conf = conf.copy()
        conf.set("tika.boilerpipe", True)
        conf.set("parser.html.main.text.form", "markdown")
        self._parsing = ParseWorkerClient(conf)
        self.fields = self._parsing.fields | {WebPage.text}

    def render(self, url: str, page: WebPage) -> str | None:
        """Return the main text of an HTML page; of other types, and where none stands out, the text. None without."""
        if page.content and page.content_type in ("text/html", "application/xhtml+xml"):
            found = self._parsing.parse(
                url, WebPage(page.current_cells(self._parsing.fields))
            )  # the row stays as it is
            if found.text:
                return found.text
        return page.text

    def close(self) -> None:
        """End the process that parses."""
        self._parsing.close()


def shown_fields(sections: RowSections, markdown: MarkdownRenderer | None) -> frozenset[Field[Any]]:
    """Return what is read of a row to show it."""
    return page_fields(**sections) | (markdown.fields if markdown else frozenset())


def render_row(
    output_format: OutputFormat,
    key: str,
    url: str,
    page: WebPage,
    sections: RowSections,
    markdown: MarkdownRenderer | None,
    shown_key: str = "",
) -> str:
    """Return a row as it is printed; ``shown_key``: what stands for it behind ``key:`` in text, its URL by default."""
    if output_format == "csv":
        return format_csv_line(get_csv_values(key, page))
    text = markdown.render(url, page) if markdown else None
    if output_format == "json":
        return format_json_row(key, page, page_fields(**sections), text)
    return format_page(shown_key or url, page, **sections, markdown=text)
