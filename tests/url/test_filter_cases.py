"""The public cases of every filter."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLFilter
from nutch2py.plugins.loading import create_named_plugin

Case = dict[str, Any]
Cases = Callable[[str], list[Case]]
Fixture = Callable[[str], Any]

NO_RULES = "# none"


@cache
def _filter(plugin_id: str, properties: str) -> URLFilter:
    found: URLFilter = create_named_plugin(Configuration(json.loads(properties)), "urlfilter", plugin_id)
    return found


def _properties(name: str, case: Case, fixture: Fixture) -> dict[str, str]:
    args = case["args"]
    properties = {key: str(value) for key, value in (args.get("conf") or {}).items()}
    if name == "suffix":
        mode = "+" if args.get("modeAccept") else "-"
        mode += ("I" if args.get("ignoreCase") else "") + ("P" if args.get("filterFromPath") else "")
        properties["urlfilter.suffix.rules"] = f"{mode}\n{args['suffix_file']}"
    elif name == "prefix":
        properties["urlfilter.prefix.rules"] = args["prefix_file"]
    elif name in {"domain", "domaindenylist"}:
        properties[f"urlfilter.{name}.rules"] = "\n".join(args["domain_file_lines"] or [NO_RULES])
    elif name == "validator":
        properties |= {key: str(value) for key, value in args.items()}
    else:
        rules = args["rules"] if isinstance(args["rules"], list) else fixture(args["rules"])
        properties[f"urlfilter.{name}.rules"] = "\n".join(rules or [NO_RULES])
    return properties


@pytest.mark.parametrize(
    "name", ["regex", "automaton", "fast", "prefix", "suffix", "domain", "domaindenylist", "validator"]
)
def test_url_filter_public_cases(cases: Cases, case_fixture: Fixture, name: str) -> None:
    fixture = cache(case_fixture)
    table, failed = cases(f"urlfilter_{name}"), []
    for case in table:
        found = _filter(f"urlfilter-{name}", json.dumps(_properties(name, case, fixture)))
        url = case["input"] or ""  # null is no URL, and no caller passes one
        if (found.filter(url) is not None) != (case["expect"] == "accept"):
            failed.append(case)
    print(f"urlfilter_{name} {len(table) - len(failed)}/{len(table)}")
    assert failed == []
