"""The public cases of every normalizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import URLNormalizer
from nutch2py.plugins.loading import create_named_plugin
from nutch2py.url.normalizers.url_normalizers import URLNormalizers

Case = dict[str, Any]
Cases = Callable[[str], list[Case]]
ERROR = {"error": "MalformedURLException"}


def _run(name: str, table: list[Case], normalizer_of: Callable[[Case], URLNormalizer]) -> None:
    failed = []
    for case in table:
        try:
            found: Any = normalizer_of(case).normalize(case["input"], case["args"].get("scope", "default"))
        except ValueError:
            found = ERROR
        if found != case["expect"]:
            failed.append((case["input"], found, case["expect"]))
    print(f"{name} {len(table) - len(failed)}/{len(table)}")
    assert failed == []


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("host", ("urlnormalizer.hosts.rules", "hosts_file_lines")),
        ("slash", ("urlnormalizer.slashes.rules", "slashes_file_lines")),
        ("protocol", ("urlnormalizer.protocols.rules", "protocols_file_lines")),
        ("ajax", None),
        ("querystring", None),
        ("pass", None),
    ],
)
def test_normalizer_public_cases(cases: Cases, name: str, rules: tuple[str, str] | None) -> None:
    def normalizer_of(case: Case) -> URLNormalizer:
        text = {} if rules is None else {rules[0]: "\n".join(case["args"][rules[1]])}
        normalizer: URLNormalizer = create_named_plugin(Configuration(text), "urlnormalizer", f"urlnormalizer-{name}")
        return normalizer

    _run(f"urlnormalizer_{name}", cases(f"urlnormalizer_{name}"), normalizer_of)


def _basic(case: Case, nutch1: str) -> URLNormalizer:
    properties = {name: _text(value) for name, value in case["args"].get("conf", {}).items()}
    properties["urlnormalizer.basic.nutch1.rules"] = nutch1
    normalizer: URLNormalizer = create_named_plugin(Configuration(properties), "urlnormalizer", "urlnormalizer-basic")
    return normalizer


def test_basic_nutch_1_cases(cases: Cases) -> None:
    """All, with the rules of Nutch 1."""
    _run("urlnormalizer_basic", cases("urlnormalizer_basic"), lambda case: _basic(case, "true"))


def test_basic_nutch_2_cases(cases: Cases) -> None:
    """Those that hold for both lines, with the rules of Nutch 2."""
    both = [case for case in cases("urlnormalizer_basic") if "2.x" in case["versions"]]
    _run("urlnormalizer_basic (2.x)", both, lambda case: _basic(case, "false"))


def test_regex_normalizer_cases(cases: Cases, case_fixture: Callable[[str], Any]) -> None:
    @cache
    def normalizer(reference: str) -> URLNormalizer:
        rules = "".join(
            f"<regex><pattern>{escape(pattern)}</pattern><substitution>{escape(text)}</substitution></regex>"
            for pattern, text in case_fixture(reference)
        )
        conf = Configuration({"urlnormalizer.regex.rules": f"<regex-normalize>{rules}</regex-normalize>"})
        found: URLNormalizer = create_named_plugin(conf, "urlnormalizer", "urlnormalizer-regex")
        return found

    _run("urlnormalizer_regex", cases("urlnormalizer_regex"), lambda case: normalizer(case["args"]["rules"]))


def test_normalizer_chain_cases(cases: Cases, conf: Configuration) -> None:
    table = cases("urlnormalizers_chain")
    for case in table:
        conf.set(
            "urlnormalizer.order", " ".join(f"urlnormalizer-{n}" for n in case["args"]["urlnormalizer.order"].split())
        )
        assert URLNormalizers(conf, case["args"]["scope"]).normalize(case["input"]) == case["expect"]
    print(f"urlnormalizers_chain {len(table)}/{len(table)}")
