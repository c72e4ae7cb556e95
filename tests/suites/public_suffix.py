"""Registered domains by the public suffix list: the list's own test cases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.url.idn import host_to_ascii
from nutch2py.url.url_parts import DomainRules
from tests.suites.suite import Case, Goal, Repository

GOALS = (Goal("domains", 1.0), Goal("domains without the private part", 1.0))
_LIST = Repository("publicsuffix/list", "e8c9a2b2b2856b6449999dd0ec0d118f364ed0cd", ("/tests/test_psl.txt",))
_CASE = re.compile(r"^checkPublicSuffix\('([^']+)', (?:'([^']+)'|null)\);", re.MULTILINE)
_PRIVATE = ".uk.com"  # the only private suffix of the cases


def cases(data: Path) -> Iterator[Case]:
    """Yield all cases; those of a private suffix expect another domain without the private part."""
    text = (_LIST.folder(data) / "tests" / "test_psl.txt").read_text(encoding="utf-8")
    both = DomainRules.from_conf(Configuration.load(overrides={"publicsuffix.private": "true"}))
    icann = DomainRules.from_conf(Configuration.load())
    for host, domain in (match.groups() for match in _CASE.finditer(text)):
        yield _case("domains", both, host, domain)
        private = f".{host}".endswith(_PRIVATE)
        yield _case("domains without the private part", icann, host, "uk.com" if private else domain)


def _case(part: str, rules: DomainRules, host: str, domain: str | None) -> Case:
    """Compare the domain; a public suffix, which has none, is its own domain in the package, as in Nutch."""
    found = rules.domain_of_host(host)
    is_invalid = host.startswith(".")
    is_suffix = is_invalid or "." not in found or rules.suffix_of_host(host) == host_to_ascii(found)
    expected = domain or host.lower()
    left = "" if found == expected and is_suffix == (domain is None) else f"{found}, not {domain}"
    return Case(part, host, left)
