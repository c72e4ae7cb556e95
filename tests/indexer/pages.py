"""Pages and documents for the tests of this package."""

from __future__ import annotations

from typing import Any

from nutch2py.cells import ParseStatus
from nutch2py.indexer.document import NutchDocument
from nutch2py.webpage import WebPage


def page(**values: Any) -> WebPage:
    """Return a page that was parsed well, with ``values`` set."""
    made = WebPage()
    made.parse_status = ParseStatus(1)
    made.status = 2
    for name, value in values.items():
        setattr(made, name, value)
    return made


def doc(doc_id: str, **fields: str | list[str]) -> NutchDocument:
    """Return a document of an id and fields."""
    made = NutchDocument()
    made.add("id", doc_id)
    for name, value in fields.items():
        for one in [value] if isinstance(value, str) else value:
            made.add(name, one)
    return made
