"""IndexSchema: checks whether the fields of an index accept documents, before the first one is sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

DATE_FIELDS = ("tstamp", "date", "lastModified", "publishedDate", "updatedDate")
"""Fields of documents that hold a point in time."""


def parse_number(value: Any) -> float | None:
    """Return a stored value, or the only one of several, as a number; None for anything else."""
    values = value if isinstance(value, list) else [value]
    try:
        return float(values[0]) if len(values) == 1 else None
    except (TypeError, ValueError):
        return None


class IndexField(NamedTuple):
    """A field of an index.

    Attributes:
        type: Name of the field's type.
        kind: text, string, date, number, boolean or other.
        is_multivalued: Whether it accepts several values.
        is_lenient: Whether only the server can decide what it accepts.

    """

    type: str
    kind: str
    is_multivalued: bool
    is_lenient: bool = False


class IndexSchema(ABC):
    """The fields of an index. ``required_kinds``: Nutch's field -> required kind."""

    required_kinds: Mapping[str, str]
    single_value_problem = "takes one value, pages have several"

    @abstractmethod
    def find_field(self, name: str) -> IndexField | None:
        """Return the field that stores ``name``, None when there is none."""

    @abstractmethod
    def accepts(self, field: IndexField, value: str) -> bool:
        """Return whether a field accepts a value."""

    def find_problems(
        self, columns: Mapping[str, Sequence[Sequence[str]]], nutch_names: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the problems with fields: name -> one clause.

        Args:
            columns: Field -> its values in each of some documents.
            nutch_names: Field of the index -> Nutch's field, where the names differ.

        """
        problems = {name: self._find_problem(name, rows, nutch_names.get(name, name)) for name, rows in columns.items()}
        return {name: problem for name, problem in problems.items() if problem}

    def find_missing(self, names: Iterable[str]) -> dict[str, str]:
        """Return the fields among ``names`` that the index lacks, as :meth:`find_problems` does."""
        return {name: f"field {name} is missing" for name in names if self.find_field(name) is None}

    def _find_problem(self, name: str, rows: Sequence[Sequence[str]], nutch_name: str) -> str:
        field = self.find_field(name)
        if field is None:
            return f"field {name} is missing"
        required = self.required_kinds.get(nutch_name, "")
        if required and field.kind not in (required, "other"):
            return f"field {name} has the type {field.type}, a {required} is needed"
        if not field.is_multivalued and any(len(values) > 1 for values in rows):
            return f"field {name} {self.single_value_problem}"
        # One unacceptable value is a bad document, which is rejected alone; when all are, the field is wrong.
        if (
            not required
            and not field.is_lenient
            and not any(self.accepts(field, value) for row in rows for value in row)
        ):
            return f"field {name} has the type {field.type}, which does not take {rows[0][0][:40]!r}"
        return ""


def collect_new_columns(documents: Iterable[Mapping[str, Any]], known: set[str]) -> dict[str, list[list[str]]]:
    """Return the values of every field that is not in ``known``, one list per document; add the fields to ``known``."""
    columns: dict[str, list[list[str]]] = {}
    for document in documents:
        for name in document.keys() - known:
            value = document[name]
            columns.setdefault(name, []).append(value if isinstance(value, list) else [value])
    known |= columns.keys()
    return columns
