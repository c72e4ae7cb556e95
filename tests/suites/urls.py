"""URLs as browsers read them: the cases of the web platform tests, as Ada carries them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.links.outlink_filter import OutlinkFilter
from nutch2py.parser.links.url_reference import clean_reference
from nutch2py.url.browser_url import as_browser_url
from nutch2py.url.java_url import parse_url, resolve_url
from nutch2py.url.keys import reverse_url, unreverse_url
from tests.suites.suite import Case, Goal, Repository

GOALS = (Goal("links", 0.95), Goal("hosts", 1.0))
_ADA = Repository("ada-url/ada", "308110b26b32d12db492d460a41e57932366269d", ("/tests/wpt/*.json",))
_BASE = "ftp://doc.example.org/foo/bar"  # a scheme of its own: "https:h" is relative in a page of https
_MAX_LABEL, _MAX_NAME = 63, 253  # of a host that DNS can have


def cases(data: Path) -> Iterator[Case]:
    """Yield all cases."""
    folder = _ADA.folder(data) / "tests" / "wpt"
    # what Nutch's shipped rules leave out (queries, names without a domain) is no fault of reading
    links = OutlinkFilter(Configuration.load(overrides={"plugin.excludes": "urlfilter-validator|urlfilter-regex"}))
    for case in json.loads((folder / "urltestdata.json").read_text(encoding="utf-8")):
        if isinstance(case, str) or case.get("failure") or not case["href"].startswith(("http:", "https:")):
            continue
        base = case["base"] or _BASE
        if base.startswith(("http", "ftp")):
            yield _link(links, base, case["input"], case["href"])
    validated = OutlinkFilter(Configuration.load())
    for case in json.loads((folder / "toascii.json").read_text(encoding="utf-8")):
        if not isinstance(case, str) and case["output"] is not None and _is_in_dns(case["output"]):
            yield _host(validated, case["input"], case["output"])


def _link(links: OutlinkFilter, base: str, href: str, expected: str) -> Case:
    """Compare what is requested for a link, from the page to the row key and back."""
    try:
        kept = links.accept(resolve_url(base, clean_reference(href)))
        found = None if kept is None else _requested(unreverse_url(reverse_url(kept)))
    except ValueError as error:
        found = str(error)
    wanted = _requested(expected)
    return Case("links", f"{href!a} in {base}", "" if found == wanted else f"{found}, not {wanted}")


def _requested(url: str) -> str:
    """Return the URL without fragment and user info, which no row key has."""
    scheme, _, rest = (as_browser_url(url) or url).partition("#")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def _is_in_dns(host: str) -> bool:
    labels = host.split(".")
    return "=" not in host and all(0 < len(label) <= _MAX_LABEL for label in labels) and len(host) <= _MAX_NAME


def _host(links: OutlinkFilter, host: str, expected: str) -> Case:
    """Compare the host of a link; a name of one label gets a domain, which Nutch's validator demands."""
    domain = "" if "." in expected else ".example"
    try:
        kept = links.accept(resolve_url(_BASE, f"http://{host}{domain}/"))
        found = None if kept is None else parse_url(kept).host.removesuffix(domain)
    except ValueError as error:
        found = str(error)
    return Case("hosts", f"{host!a}", "" if found == expected.lower() else f"{found}, not {expected}")
