"""NutchDocument: an index document, field name -> values in the order they were added."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Self

from nutch2py.records.cells import float32

# Characters that XML 1.0 (the format of Solr) or Unicode forbids: C0 controls but tab and line ends, lone
# surrogates, and noncharacters. Nutch strips noncharacters from title and content only; an index rejects the whole
# batch when another field contains a forbidden character.
_CONTROL_BYTES = bytes([*range(9), 11, 12, *range(14, 32)])
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# separate, as a pattern compares ranges beyond U+FFFF one by one with each character
_FORBIDDEN_ABOVE = re.compile(
    "[" + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(1, 17)) + "]"
)


def clean_text(value: str) -> str:
    r"""Return ``value`` without characters that indexes reject: controls, lone surrogates, noncharacters.

    >>> clean_text("a\x00b\ud800c\td")
    'abc\td'
    """
    return value if value.isprintable() or _is_clean(value) else _FORBIDDEN_ABOVE.sub("", _FORBIDDEN.sub("", value))


def _is_clean(value: str) -> bool:
    """Return whether the text certainly has no forbidden character, by its bytes: 100 times faster than a pattern.

    In UTF-8 the noncharacters are EF B7 90 to EF B7 AF, and those that end with BF BE or BF BF; other characters end
    so, too.
    """
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        return False
    if len(raw.translate(None, _CONTROL_BYTES)) != len(raw):
        return False
    return len(raw) == len(value) or not (b"\xbf\xbe" in raw or b"\xbf\xbf" in raw or b"\xef\xb7" in raw)


def format_java_float(value: float) -> str:
    """Return a float of four bytes as Java's ``Float.toString`` writes it: the format of ``boost`` in the index.

    >>> [format_java_float(value) for value in (1.0, 0.5 ** 0.5, 1e-5, float("nan"))]
    ['1.0', '0.70710677', '1.0E-5', 'NaN']
    """
    single = float32(value)
    if math.isnan(single):
        return "NaN"
    if math.isinf(single):
        return "Infinity" if single > 0 else "-Infinity"
    digits = next(text for p in range(9) if float32(float(text := f"{single:.{p}e}")) == single)
    mantissa, _, exponent_text = digits.partition("e")
    exponent = int(exponent_text)
    if single != 0 and not -3 <= exponent < 7:
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{exponent}"
    return f"{float(digits):.{max(1, len(mantissa.replace('-', '').replace('.', '')) - 1 - exponent)}f}"


class NutchDocument:
    """One document of an index.

    ``fields``: name -> list of texts, never an empty list; values are cleaned of forbidden characters
    (:func:`clean_text`). ``score``: the boost of the whole document. Iterating yields ``(name, values)``.
    """

    __slots__ = ("fields", "score")

    def __init__(self, fields: Mapping[str, list[str]] | None = None, score: float = 0.0) -> None:
        self.fields: dict[str, list[str]] = {name: [*values] for name, values in (fields or {}).items() if values}
        self.score = score

    def add(self, name: str, value: str) -> None:
        """Append a value to the field ``name``; ``id`` is not cleaned, because deletes name it."""
        self.fields.setdefault(name, []).append(value if name == "id" else clean_text(value))

    def get(self, name: str) -> str | None:
        """Return the first value of ``name``, or None."""
        values = self.fields.get(name)
        return values[0] if values else None

    def values(self, name: str) -> list[str]:
        """Return every value of ``name``, empty when there is none."""
        return self.fields.get(name, [])

    def remove(self, name: str) -> list[str]:
        """Remove a field and return its values."""
        return self.fields.pop(name, [])

    def copy(self) -> NutchDocument:
        """Return an independent copy."""
        return NutchDocument(self.fields, self.score)

    @property
    def id(self) -> str:
        """The value of ``id``, the key of the document in every index. KeyError if it is missing."""
        return self.fields["id"][0]

    def to_json(self) -> dict[str, object]:
        """Return the fields as JSON types: a single value as a text, several as a list."""
        return {name: values[0] if len(values) == 1 else list(values) for name, values in self.fields.items()}

    @classmethod
    def from_json(cls, fields: Mapping[str, object], score: float | None = None) -> Self:
        """Build a document from the result of :meth:`to_json`; the score is that of ``boost`` unless given."""
        document = cls()
        for name, value in fields.items():
            for one in value if isinstance(value, list) else [value]:
                document.add(name, str(one))
        if score is None:
            try:
                score = float(document.get("boost") or 0.0)
            except ValueError:
                score = 0.0
        document.score = score
        return document

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        return iter(self.fields.items())

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NutchDocument) and self.fields == other.fields and self.score == other.score

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"NutchDocument({self.fields!r}, score={self.score!r})"
