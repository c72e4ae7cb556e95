"""Types of the objects of pypdfium2 that the parser uses, as protocols: the package is an optional extra."""

from __future__ import annotations

import ctypes
from typing import Protocol


class PdfTextPage(Protocol):
    """The text of a page: pypdfium2's ``PdfTextPage``."""

    def get_text_range(self, *, errors: str) -> str:
        """Return the text in the order of the page's content."""

    def get_text_bounded(self, left: float, bottom: float, right: float, top: float, errors: str) -> str:
        """Return the text within a rectangle, in points."""

    def count_chars(self) -> int:
        """Return the number of characters, negative for an error."""

    def close(self) -> None:
        """Free the page."""


class PdfPage(Protocol):
    """A page: pypdfium2's ``PdfPage``."""

    def get_textpage(self) -> PdfTextPage:
        """Return the text of the page."""

    def close(self) -> None:
        """Free the page."""


class PdfAttachment(Protocol):
    """An embedded file: pypdfium2's ``PdfAttachment``."""

    def get_name(self) -> str:
        """Return the name of the file."""

    def get_data(self) -> ctypes.Array[ctypes.c_char]:
        """Return the content."""


class PdfDocument(Protocol):
    """A document: pypdfium2's ``PdfDocument``."""

    formenv: object | None

    def __getitem__(self, number: int) -> PdfPage: ...

    def get_formtype(self) -> int:
        """Return the kind of the form, ``FORMTYPE_NONE`` without one."""

    def init_forms(self) -> None:
        """Prepare the form of the document, before any page is read."""

    def get_metadata_dict(self, *, skip_empty: bool) -> dict[str, str]:
        """Return the document information."""

    def count_attachments(self) -> int:
        """Return the number of embedded files."""

    def get_attachment(self, number: int) -> PdfAttachment:
        """Return an embedded file."""
