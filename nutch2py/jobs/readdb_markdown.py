"""A row in the form that is asked for, with the main text as Markdown (``readdb -markdown``) when it is to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from nutch2py.conf import Configuration
from nutch2py.jobs.readdb_text import page_fields, page_text
from nutch2py.jobs.row_forms import csv_line, csv_row, json_row
from nutch2py.parser.bounded_parsing import BoundedParsing
from nutch2py.parser.main_text import require_main_text
from nutch2py.record import Field
from nutch2py.webpage import WebPage

Shown = Mapping[str, bool]
"""Which of content, headers, links and text to show beside the rest."""
Form = Literal["text", "json", "csv"]
"""How rows and statistics are printed."""


class MarkdownReader:
    """Rows to Markdown, from their content: parsed within the same bounds as by the job. To be closed."""

    fields: frozenset[Field[Any]]

    def __init__(self, conf: Configuration) -> None:
        require_main_text("-markdown")
        conf = conf.copy()
        conf.set("tika.boilerpipe", True)
        conf.set("parser.html.main.text.form", "markdown")
        self._parsing = BoundedParsing(conf)
        self.fields = self._parsing.fields | {WebPage.text}

    def read(self, url: str, page: WebPage) -> str | None:
        """Return the main text of an HTML page; of other types, and where none stands out, the text. None without."""
        if page.content and page.content_type in ("text/html", "application/xhtml+xml"):
            found = self._parsing.parse(url, WebPage(page.current(self._parsing.fields)))  # the row stays as it is
            if found.text:
                return found.text
        return page.text

    def close(self) -> None:
        """End the process that parses."""
        self._parsing.close()


def shown_fields(shown: Shown, markdown: MarkdownReader | None) -> frozenset[Field[Any]]:
    """Return what is read of a row to show it."""
    return page_fields(**shown) | (markdown.fields if markdown else frozenset())


def in_form(
    form: Form, key: str, url: str, page: WebPage, shown: Shown, markdown: MarkdownReader | None, name: str = ""
) -> str:
    """Return a row as it is printed; ``name``: what stands for it behind ``key:`` in text, its URL by default."""
    if form == "csv":
        return csv_line(csv_row(key, page))
    text = markdown.read(url, page) if markdown else None
    if form == "json":
        return json_row(key, page, page_fields(**shown), text)
    return page_text(name or url, page, **shown, markdown=text)
