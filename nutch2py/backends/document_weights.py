"""Weight of a document in the relevance of a search: powers of its fields (``index.weight.fields``)."""

from __future__ import annotations

import math

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.records.document import NutchDocument

MIN_WEIGHT, MAX_WEIGHT = 1e-4, 1e4
DEFAULT_WEIGHT_FIELDS, DEFAULT_WEIGHT_POWER = ("pagerank",), 0.35


class DocumentWeights:
    """Weight of a document: the product of ``index.weight.fields``, each raised to a power.

    ``powers``: powers by field, in the order given: the number after ``^``, or ``index.weight.power``.
    """

    def __init__(self, conf: Configuration) -> None:
        default_power = conf.get_float("index.weight.power", DEFAULT_WEIGHT_POWER)
        self.powers: dict[str, float] = {}
        for entry in conf.get_strings("index.weight.fields", DEFAULT_WEIGHT_FIELDS):
            name, caret, power = entry.partition("^")
            try:
                self.powers[name.strip()] = float(power) if caret else default_power
            except ValueError:
                raise ConfigurationError(
                    f"index.weight.fields has {entry!r}: write field or field^power, as pagerank^0.25"
                ) from None

    def __str__(self) -> str:
        return " · ".join(f"{name} ^ {power:g}" for name, power in self.powers.items()) or "1"

    def weight_of(self, document: NutchDocument) -> float:
        """Return the weight; a field that is absent or not a number counts as 1."""
        weight = 1.0
        for name, power in self.powers.items():
            try:
                value = float(document.get(name) or 1.0)
            except ValueError:
                continue
            if not math.isnan(value):
                weight *= min(max(value, MIN_WEIGHT), MAX_WEIGHT) ** power
        return min(max(weight, MIN_WEIGHT), MAX_WEIGHT)
