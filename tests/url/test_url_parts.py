from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.queues.queue_ids import QueueIdResolver
from nutch2py.interfaces import Outlink
from nutch2py.parser.links.outlink_filter import OutlinkFilter
from nutch2py.url import idn, url_parts
from nutch2py.url.url_partitioner import URLPartitioner
from nutch2py.url.url_parts import DomainRules, choose_repr, domain_of_host

Cases = Callable[[str], list[dict[str, Any]]]

# Nutch 2 has a suffix list of its own, of 2012; ours is the public one, as in Nutch 1. Nutch 1 expects our value for
# the same URL, or the suffix has left the list since. If the last label of a host is on no list, its domain is that
# label in Nutch 2, the whole host in Nutch 1, and the last two labels by the public list.
OLD_SUFFIX_LIST = {
    ("getDomainName", "http://example.com.nn"),
    ("getDomainName", "http://www.edu.tr.xyz"),
    ("getDomainName", "http://www.example.商業.tw"),
    ("getDomainSuffix", "http://www.edu.tr.xyz"),
    ("getDomainSuffix", "http://subdomain.example.presse.fr"),
    ("getDomainSuffix", "http://www.example.商業.tw"),
}


def _run(function: str, given: Any, args: dict[str, Any]) -> Any:
    if function == "chooseRepr":
        return url_parts.choose_repr(given[0], given[1], args["temp"])
    if function == "resolveURL":
        return url_parts.resolve_url(args["base"], given)
    if function == "convertIDNA2008":
        return (idn.host_to_ascii if args["toAscii"] else idn.host_to_unicode)(given)
    if function == "convertIDNA2003":
        # the cases call the third argument allowUnassigned; in URLUtil it is strictIDNA2003
        convert = idn.host_to_ascii_2003 if args["toAscii"] else idn.host_to_unicode_2003
        return convert(given, strict=args["allowUnassigned"])
    simple: dict[str, Callable[[str], Any]] = {
        "getDomainName": url_parts.domain_of,
        "getDomainSuffix": url_parts.suffix_of,
        "getTopLevelDomainName": url_parts.tld_of,
        "getHostSegments": url_parts.segments_of,
        "toASCII": url_parts.url_to_ascii,
        "toUNICODE": url_parts.url_to_unicode,
    }
    return simple[function](given)


def test_url_parts_public_cases(cases: Cases) -> None:
    table, failed, skipped = cases("urlutil"), [], 0
    for case in table:
        function = case["args"]["fn"].partition(" ")[0]
        if case["versions"] == ["2.x"] and (function, case["input"]) in OLD_SUFFIX_LIST:
            skipped += 1
            continue
        if (function, case["input"]) == ("getDomainName", "http://example.com.nn"):
            case = {**case, "expect": "com.nn"}
        try:
            found = _run(function, case["input"], case["args"])
        except ValueError:
            found = {"error": "MalformedURLException"}
        if found != case["expect"]:
            failed.append((function, case["input"], found, case["expect"]))
    print(f"urlutil {len(table) - skipped - len(failed)}/{len(table)}, {skipped} of the list of 2012 skipped")
    assert failed == []
    assert skipped == len(OLD_SUFFIX_LIST)


# Nutch 1 asks the list for its ICANN part only; that a host outside the list has no suffix is Nutch 1's rule, that its
# last label counts as one for the domain is the list's
NOT_ICANN = {"uk.com", "example.uk.com", "b.example.uk.com", "a.b.example.uk.com"}
UNLISTED = {"example.example", "b.example.example", "a.b.example.example"}


def test_public_suffix_cases(cases: Cases) -> None:
    table, passed = cases("psl"), 0
    for case in table:
        host, registrable = case["domain"] or "", case["registrable"]
        domain, suffix = url_parts.domain_of_host(host), url_parts.suffix_of_host(host)
        if host in UNLISTED:
            assert (domain, suffix) == ("example.example", None)
        elif host in NOT_ICANN:
            assert (domain, suffix) == ("uk.com", "com")
        elif registrable is None:  # a suffix, or nothing that has one
            assert domain == host.lower()
            passed += 1
        else:
            assert domain == registrable
            passed += 1
    print(f"psl {passed}/{len(table)}, {len(NOT_ICANN)} private and {len(UNLISTED)} unlisted suffixes as in Nutch 1")
    assert passed == len(table) - len(NOT_ICANN) - len(UNLISTED)


@pytest.mark.parametrize("host", ["10.1.2.3", "[::1]", "localhost", ""])
def test_host_without_suffix_is_its_own_domain(host: str) -> None:
    assert url_parts.domain_of_host(host) == host
    assert url_parts.suffix_of_host(host) is None


def test_punycode_host_has_punycode_domain() -> None:
    assert url_parts.domain_of_host("www.xn--fiq228c.xn--fiqs8s") == "xn--fiq228c.xn--fiqs8s"


def test_redirect_with_malformed_end_returns_target() -> None:
    assert url_parts.choose_repr("nothing", "http://a.com/", True) == "http://a.com/"
    assert url_parts.choose_repr("http://a.com/", "nothing", False) == "nothing"


PRIVATE_DOMAINS = {
    "alice.github.io": ("github.io", "alice.github.io"),
    "www.bob.github.io": ("github.io", "bob.github.io"),
    "a.example.uk.com": ("uk.com", "example.uk.com"),
    "shop.example.co.uk": ("example.co.uk", "example.co.uk"),
    "www.example.org": ("example.org", "example.org"),
    "192.0.2.1": ("192.0.2.1", "192.0.2.1"),
}


@pytest.mark.parametrize("host", PRIVATE_DOMAINS)
def test_private_suffixes_count_by_property(host: str) -> None:
    icann, private = PRIVATE_DOMAINS[host]
    assert DomainRules.from_conf(Configuration()).domain_of_host(host) == icann == domain_of_host(host)
    assert DomainRules.from_conf(_private_suffixes()).domain_of_host(host) == private


def test_private_suffixes_divide_queues_partitions_links_and_representatives() -> None:
    alice, bob = "http://alice.github.io/", "http://bob.github.io/"
    together, apart = Configuration.load(), _private_suffixes()
    for conf in (together, apart):
        conf.set("fetcher.queue.mode", "byDomain")
        conf.set("db.ignore.external.links", "true")
        conf.set("db.ignore.external.links.mode", "byDomain")
    for conf, is_one in ((together, True), (apart, False)):
        queue = QueueIdResolver(conf).get_queue_id
        assert (queue(alice) == queue(bob)) is is_one
        partition = URLPartitioner(conf, "byDomain").key
        assert (partition(alice) == partition(bob)) is is_one
        kept = OutlinkFilter(conf).filter_outlinks(alice, [Outlink(bob, "")])
        assert bool([*kept]) is is_one
        # the home page stands for a temporary redirect within a domain, the target for one to another
        assert choose_repr(alice, f"{bob}x", True, DomainRules.from_conf(conf)) == (alice if is_one else f"{bob}x")


def _private_suffixes() -> Configuration:
    return Configuration.load(overrides={"publicsuffix.private": "true"})
