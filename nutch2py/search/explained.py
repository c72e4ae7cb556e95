"""Explanations of scores as lines: those of tantivy, and those of OpenSearch, are trees of the same shape."""

from __future__ import annotations

import re
from typing import Any

from nutch2py.backends.index_folder import TEXT_FIELDS

_SCHEMA = ("id", *TEXT_FIELDS, "other", "exact")  # tantivy numbers fields in the order in which a schema got them
_TERM = re.compile(r"Term=Term\(field=(\d+), type=\w+, (.*)\)")


def _term_shown(match: re.Match[str]) -> str:
    number = int(match[1])
    return f"{_SCHEMA[number] if number < len(_SCHEMA) else number}:{match[2]}"


def tree_lines(node: dict[str, Any], depth: int = 0) -> list[str]:
    """Return an explanation as indented lines; steps that hand on one value are passed over, but for those of words."""
    details = node.get("details") or []
    if (
        len(details) == 1
        and not node["description"].startswith("weight(")
        and abs(details[0]["value"] - node["value"]) < 1e-6
    ):
        return tree_lines(details[0], depth)
    context = "".join(f" {_TERM.sub(_term_shown, each)}" for each in node.get("context") or [])
    lines = [f"{'    ' * depth}{node['value']:.4g}  {node['description']}{context}"]
    for each in details:
        lines += tree_lines(each, depth + 1)
    return lines
