"""Structured data: extruct's samples of microdata, JSON-LD and Open Graph, with what it reads from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nutch2py.parser.html.dom import parse_tree, remove_scripts
from nutch2py.parser.html.structured_data import extract_structured_data
from tests.suites.suite import Case, Goal, Repository

GOALS = (Goal("microdata", 0.9), Goal("JSON-LD", 0.95), Goal("Open Graph", 0.9))
_EXTRUCT = Repository("scrapinghub/extruct", "a31daaadb82ec684b7d468d3b15734b8ae3b7265", ("/tests/samples/",))
_OWN_HOST = re.compile(r"http://(?:www|blog)\.example\.com/(?:microdata/|index\.html|progress-report)?")
_NAMED = {"product-ref.json": "an item without itemprop gives its properties to no other (HTML standard, 5.2.5): "}
_OTHER_FORMS = ("flat", "withtext", "microformat", "dublincore", "custom_url", "node_id", "Portfolio")


def cases(data: Path) -> Iterator[Case]:
    """Yield all cases."""
    for file in sorted((_EXTRUCT.folder(data) / "tests" / "samples").rglob("*.json*")):
        page = file.with_suffix(".html")
        if not page.exists() or "w3crdfa" in file.parts or any(word in file.name for word in _OTHER_FORMS):
            continue
        expected = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(expected, dict) and "items" in expected:
            expected = expected["items"]
        html = page.read_text(encoding="utf-8")
        tree = parse_tree(html)
        remove_scripts(tree)
        found = extract_structured_data(tree, html, "http://www.example.com/index.html")
        if file.suffix == ".jsonld":
            yield _case("JSON-LD", file, found.get("jsonld", []), expected)
        elif "opengraph" in file.name or "OG" in file.name:
            expected = [part for part in expected if "properties" in part] if isinstance(expected, list) else []
            names = {name.lower() for part in expected for name, _ in part["properties"]}
            meta = {name: values for name, values in found.get("meta", {}).items() if name in names}
            values = [[name.lower(), value.strip()] for part in expected for name, value in part["properties"]]
            yield _case("Open Graph", file, sorted([n, v] for n, vs in meta.items() for v in vs), sorted(values))
        else:
            expected = expected.get("microdata", []) if isinstance(expected, dict) else expected
            yield _case("microdata", file, found.get("microdata", []), expected)


def _case(part: str, file: Path, found: Any, expected: Any) -> Case:
    found, expected = _plain(found), _plain(expected)
    difference = f"{json.dumps(found)[:300]}, not {json.dumps(expected)[:300]}"
    return Case(part, file.name, "" if found == expected else _NAMED.get(file.name, "") + difference)


def _plain(value: Any) -> Any:
    """Return JSON in one form: a list of one value is that value, an address of the page's own host is relative."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each != {}}
    if isinstance(value, list):
        return _plain(value[0]) if len(value) == 1 else [_plain(each) for each in value]
    return _OWN_HOST.sub("", " ".join(value.split())).lstrip("/") if isinstance(value, str) else value
