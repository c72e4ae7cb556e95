"""Do the fields of an index take the documents that are to be sent? Asked before the first one is sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

DATE_FIELDS = ("tstamp", "date", "lastModified", "publishedDate", "updatedDate")
"""Fields of documents that hold a point in time."""


class IndexField(NamedTuple):
    """A field of an index: its type's name, ``kind`` (text, string, date, number, boolean or other).

    ``is_multivalued``: it takes several values. ``is_lenient``: what it takes is for the server to say.
    """

    type: str
    kind: str
    is_multivalued: bool
    is_lenient: bool = False


class IndexSchema(ABC):
    """The fields that an index has. ``required_kinds``: field of Nutch -> the kind that it must have."""

    required_kinds: Mapping[str, str]
    single_value_problem = "takes one value, pages have several"

    @abstractmethod
    def find_field(self, name: str) -> IndexField | None:
        """Return the field that takes ``name``, None when there is none."""

    @abstractmethod
    def accepts(self, field: IndexField, value: str) -> bool:
        """Tell whether a field takes a value."""

    def find_problems(
        self, columns: Mapping[str, Sequence[Sequence[str]]], nutch_names: Mapping[str, str]
    ) -> dict[str, str]:
        """Return what is wrong with fields: name -> one clause.

        ``columns``: field -> the values that it has in each of some documents. ``nutch_names``: field of the index -> field
        of Nutch, where they have different names.
        """
        wrong = {name: self._find_problem(name, rows, nutch_names.get(name, name)) for name, rows in columns.items()}
        return {name: problem for name, problem in wrong.items() if problem}

    def find_missing(self, names: Iterable[str]) -> dict[str, str]:
        """Return the fields among ``names`` that the index lacks, as :meth:`problems` does."""
        return {name: f"field {name} is missing" for name in names if self.find_field(name) is None}

    def _find_problem(self, name: str, rows: Sequence[Sequence[str]], nutch_name: str) -> str:
        field = self.find_field(name)
        if field is None:
            return f"field {name} is missing"
        wanted = self.required_kinds.get(nutch_name, "")
        if wanted and field.kind not in (wanted, "other"):
            return f"field {name} has the type {field.type}, a {wanted} is needed"
        if not field.is_multivalued and any(len(values) > 1 for values in rows):
            return f"field {name} {self.single_value_problem}"
        # one value that does not fit is a bad document, which is refused; when none fits, it is the field
        if not wanted and not field.is_lenient and not any(self.accepts(field, value) for row in rows for value in row):
            return f"field {name} has the type {field.type}, which does not take {rows[0][0][:40]!r}"
        return ""


def collect_new_columns(documents: Iterable[Mapping[str, Any]], known: set[str]) -> dict[str, list[list[str]]]:
    """Return the values of every field that is not ``known`` yet, a list a document, and note them as known."""
    columns: dict[str, list[list[str]]] = {}
    for document in documents:
        for name in document.keys() - known:
            value = document[name]
            columns.setdefault(name, []).append(value if isinstance(value, list) else [value])
    known |= columns.keys()
    return columns
