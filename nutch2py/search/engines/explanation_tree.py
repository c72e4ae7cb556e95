"""Formats score explanations of tantivy and OpenSearch, which are trees of the same shape, as text."""

from __future__ import annotations

import re
from typing import Any

from nutch2py.backends.index_fields import TEXT_FIELDS

_FIELD_NAMES = ("id", *TEXT_FIELDS, "other", "exact")  # tantivy numbers fields in the order of their definition
_TERM_PATTERN = re.compile(r"Term=Term\(field=(\d+), type=\w+, (.*)\)")


def _format_term(match: re.Match[str]) -> str:
    number = int(match[1])
    return f"{_FIELD_NAMES[number] if number < len(_FIELD_NAMES) else number}:{match[2]}"


def format_tree(node: dict[str, Any], depth: int = 0) -> list[str]:
    """Return an explanation as indented lines; skip steps that only pass on a value, except those of words."""
    details = node.get("details") or []
    if (
        len(details) == 1
        and not node["description"].startswith("weight(")
        and abs(details[0]["value"] - node["value"]) < 1e-6
    ):
        return format_tree(details[0], depth)
    context = "".join(f" {_TERM_PATTERN.sub(_format_term, each)}" for each in node.get("context") or [])
    lines = [f"{'    ' * depth}{node['value']:.4g}  {node['description']}{context}"]
    for each in details:
        lines += format_tree(each, depth + 1)
    return lines
