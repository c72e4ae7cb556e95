"""Do the fields of an index take the documents that are to be sent? Asked before the first one is sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

DATES = ("tstamp", "date", "lastModified", "publishedDate", "updatedDate")
"""Fields of documents that hold a point in time."""


class IndexField(NamedTuple):
    """A field of an index: its type's name, ``kind`` (text, string, date, number, boolean or other).

    ``many``: it takes several values. ``lenient``: what it takes is for the server to say.
    """

    type: str
    kind: str
    many: bool
    lenient: bool = False


class IndexFields(ABC):
    """The fields that an index has. ``wanted``: field of Nutch -> the kind that it must have."""

    wanted: Mapping[str, str]
    advice_for_many = "takes one value, pages have several"

    @abstractmethod
    def field(self, name: str) -> IndexField | None:
        """Return the field that takes ``name``, None when there is none."""

    @abstractmethod
    def takes(self, field: IndexField, value: str) -> bool:
        """Tell whether a field takes a value."""

    def problems(self, columns: Mapping[str, Sequence[Sequence[str]]], origin: Mapping[str, str]) -> dict[str, str]:
        """Return what is wrong with fields: name -> one clause.

        ``columns``: field -> the values that it has in each of some documents. ``origin``: field of the index -> field
        of Nutch, where they have different names.
        """
        wrong = {name: self._problem(name, rows, origin.get(name, name)) for name, rows in columns.items()}
        return {name: problem for name, problem in wrong.items() if problem}

    def missing(self, names: Iterable[str]) -> dict[str, str]:
        """Return the fields among ``names`` that the index lacks, as :meth:`problems` does."""
        return {name: f"field {name} is missing" for name in names if self.field(name) is None}

    def _problem(self, name: str, rows: Sequence[Sequence[str]], nutch_name: str) -> str:
        field = self.field(name)
        if field is None:
            return f"field {name} is missing"
        wanted = self.wanted.get(nutch_name, "")
        if wanted and field.kind not in (wanted, "other"):
            return f"field {name} has the type {field.type}, a {wanted} is needed"
        if not field.many and any(len(values) > 1 for values in rows):
            return f"field {name} {self.advice_for_many}"
        # one value that does not fit is a bad document, which is refused; when none fits, it is the field
        if not wanted and not field.lenient and not any(self.takes(field, value) for row in rows for value in row):
            return f"field {name} has the type {field.type}, which does not take {rows[0][0][:40]!r}"
        return ""


def columns_of(documents: Iterable[Mapping[str, Any]], known: set[str]) -> dict[str, list[list[str]]]:
    """Return the values of every field that is not ``known`` yet, a list a document, and note them as known."""
    columns: dict[str, list[list[str]]] = {}
    for document in documents:
        for name in document.keys() - known:
            value = document[name]
            columns.setdefault(name, []).append(value if isinstance(value, list) else [value])
    known |= columns.keys()
    return columns
