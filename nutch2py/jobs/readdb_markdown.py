"""The main text of a row as Markdown, for ``readdb -dump -markdown``."""

from __future__ import annotations

from typing import Any

from nutch2py.conf import Configuration
from nutch2py.parser.bounded_parsing import BoundedParsing
from nutch2py.parser.main_text import require_main_text
from nutch2py.record import Field
from nutch2py.webpage import WebPage


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
