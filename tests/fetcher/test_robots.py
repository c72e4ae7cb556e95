from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse
from nutch2py.fetcher.robots.robots_cache import RobotsCache, is_allowed, robots_agent_names
from nutch2py.fetcher.robots.robots_matcher import robots_path
from nutch2py.fetcher.robots.robots_rules import ROBOTS_MAX_BYTES, RobotsLimits, RobotsRules, parse_robots
from tests.growth import assert_linear, repeated, repetitions

Cases = Callable[[str], list[dict[str, Any]]]

# Nutch 1 merges the groups of all its agent names; Nutch 2 obeys the first one in the file
MERGED_IN_NUTCH_1 = {("http://example.com/c", False), ("http://example.com/foo/bar/baz.html", False)}


def test_robots_google_cases(cases: Cases) -> None:
    given = cases("google_robots")
    wrong = [
        case
        for case in given
        if parse_robots(case["robots"].encode(), (case["agent"],)).is_allowed(case["url"]) != case["allowed"]
    ]
    print(f"{len(given) - len(wrong)}/{len(given)}")
    assert not wrong


def test_robots_nutch_cases(cases: Cases) -> None:
    given, wrong, excepted = cases("robots_rules"), [], 0
    for case in given:
        args, expect = case["args"], case["expect"]
        agents = tuple(name.strip() for name in args["agent_names"].split(","))
        rules = parse_robots(args["robots_txt"].encode(), agents)
        if "allowed" in expect:
            of_nutch_1 = len(agents) > 1 and case["versions"] == ["1.x"]
            if of_nutch_1 and (case["input"], expect["allowed"]) in MERGED_IN_NUTCH_1:
                excepted += 1
            elif rules.is_allowed(case["input"]) != expect["allowed"]:
                wrong.append(case)
        elif rules.crawl_delay_ms != expect["crawl_delay_ms"]:
            wrong.append(case)
    print(f"{len(given) - len(wrong) - excepted}/{len(given)}, {excepted} excepted: Nutch 1 merges groups")
    assert not wrong


def test_byte_order_mark_and_sitemaps_are_read() -> None:
    rules = parse_robots(b"\xef\xbb\xbfUser-agent: *\nDisallow: /x\nSitemap: http://a.test/s.xml\n", ("probe",))
    assert not rules.is_allowed("http://a.test/x")
    assert rules.sitemaps == ["http://a.test/s.xml"]


def test_agent_with_digits_matches_full_name_or_product_token() -> None:
    for name, allowed in (("nutch2py", False), ("nutch", False), ("nutch3", True), ("nut", True)):
        rules = parse_robots(f"User-agent: {name}\nDisallow: /".encode(), ("nutch2py",))
        assert rules.is_allowed("http://a.test/") is allowed, name


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_byte_order_mark_sets_encoding(encoding: str) -> None:
    rules = parse_robots("\ufeffUser-agent: *\r\nDisallow: /\u00fc\n".encode(encoding), ("probe",))
    assert not rules.is_allowed("http://a.test/%C3%BC")
    assert rules.is_allowed("http://a.test/u")


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><html><body><pre>User-agent: *\nDisallow: /x?a&amp;b\n</pre></body></html>",
        "<html><head><title>r</title></head><body>User-agent: *<br>Disallow: /x?a&amp;b<BR />Allow: /</body></html>",
        "<p>User-agent: <b>*</b></p><p>Disallow: <i>/x?a&b</i></p><br>",
    ],
)
def test_html_tags_around_lines_are_removed(page: str) -> None:
    rules = parse_robots(page.encode(), ("probe",))
    assert not rules.is_allowed("http://a.test/x?a&b")
    assert rules.is_allowed("http://a.test/x")


def test_only_rules_end_agent_group() -> None:
    between = (
        "User-agent: a\nCrawl-delay: 7\nRequest-rate: 1/5\nSitemap: http://a.test/s.xml\nHost: a.test\nUser-agent: b\n"
    )
    content = f"{between}Disallow: /x\nCrawl-delay: 2\nUser-agent: c\nDisallow: /y".encode()
    for agent, delay in (("a", 2000), ("b", 2000)):
        rules = parse_robots(content, (agent,))
        assert (rules.is_allowed("http://a.test/x"), rules.is_allowed("http://a.test/y")) == (False, True), agent
        assert rules.crawl_delay_ms == delay, agent
    assert not parse_robots(content, ("c",)).is_allowed("http://a.test/y")
    assert not parse_robots(b"User-agent: a\nDisallow:\nUser-agent: b\nDisallow: /", ("b",)).is_allowed(
        "http://a.test/"
    )
    assert parse_robots(b"User-agent: a\nDisallow:\nUser-agent: b\nDisallow: /", ("a",)).is_allowed("http://a.test/")


def test_crawl_delay_belongs_to_preceding_agents() -> None:
    content = b"User-agent: slow\nCrawl-delay: 60\n\nUser-agent: *\nDisallow: /x"
    assert parse_robots(content, ("probe",)).crawl_delay_ms is None
    slow = parse_robots(content, ("slow",))
    assert slow.crawl_delay_ms == 60_000
    assert not slow.is_allowed("http://a.test/x")


def test_sitemaps_of_allowed_protocols_are_kept() -> None:
    content = b"""Sitemap: /s.xml
Sitemap: more/s.xml?a=1#x
Sitemap: //b.test/s.xml
SITEMAP: https://c.test/s.xml
Sitemap: https://c.test/s.xml
Sitemap: ftp://c.test/s.xml
Sitemap: file:///etc/passwd
Sitemap: javascript:alert(1)
Sitemap: http://[
Sitemap: http://c.test/%s
""" % (b"l" * 9000)
    rules = parse_robots(content, ("probe",), "http://a.test:81/robots.txt")
    assert rules.sitemaps == [
        "http://a.test:81/s.xml", "http://a.test:81/more/s.xml?a=1#x", "http://b.test/s.xml", "https://c.test/s.xml",
        "ftp://c.test/s.xml",
    ]  # fmt: skip
    few = parse_robots(content, ("probe",), "http://a.test:81/robots.txt", RobotsLimits(max_sitemaps=2))
    assert few.sitemaps == rules.sitemaps[:2]
    many = b"".join(b"Sitemap: /%d\n" % n for n in range(3000))
    assert len(parse_robots(many, ("probe",), "http://a.test/robots.txt").sitemaps) == 1000


def test_content_beyond_limits_is_ignored() -> None:
    lines = [b"User-agent: *"]
    lines += [b"Disallow: /%d" % n for n in range(10)]
    rules = parse_robots(b"\n".join(lines), ("probe",), limits=RobotsLimits(max_rules=5))
    assert [rules.is_allowed(f"http://a.test/{n}") for n in range(10)] == [False] * 5 + [True] * 5
    again = [*lines[:6], *lines[1:6], b"Allow: /4", *lines[6:]]  # a repeated rule does not count again
    rules = parse_robots(b"\n".join(again), ("probe",), limits=RobotsLimits(max_rules=5))
    assert [rules.is_allowed(f"http://a.test/{n}") for n in range(3, 6)] == [False, True, True]
    head = b"User-agent: *\nDisallow: /first\n#"
    content = head + b"x" * (ROBOTS_MAX_BYTES - len(head) - 14) + b"\nDisallow: /cut short\nDisallow: /second"
    rules = parse_robots(content, ("probe",))
    assert not rules.is_allowed("http://a.test/first")
    assert rules.is_allowed("http://a.test/c")  # a rule cut by the limit is ignored
    assert rules.is_allowed("http://a.test/second")


PIECES = [*"/abA*$?=&+~.%:;", "%41", "%2F", "%2f", "%2A", "%24", "%C3%BC", "\u00fc", "index.html"]
VALUES = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.booleans(), VALUES), max_size=6), VALUES)
def test_rule_matching_equals_protego(rules: list[tuple[bool, str]], path: str) -> None:
    lines = [f"{'Allow' if allow else 'Disallow'}: {value}" for allow, value in rules]
    url = f"http://a.test/{path}"
    oracle = Protego.parse("\n".join(["User-agent: *", *lines])).can_fetch(url, "probe")
    found = parse_robots("\n".join(["User-agent: *", *lines]).encode(), ("probe",))
    assert all(group.is_allowed(robots_path(url)) for group in found.rule_sets) == oracle, (lines, url)


def rules_of(value: Callable[[int], str]) -> Callable[[int], bytes]:
    """Return a file of the given shape with as many rules as fit."""

    def shape(length: int) -> bytes:
        lines = ["User-agent: *"]
        size = 0
        while size < length:
            lines.append(f"Disallow: {value(len(lines))}")
            size += len(lines[-1]) + 1
        return "\n".join(lines).encode()

    return shape


FILES = {
    "prefixes": rules_of(lambda n: f"/a/{n}"),
    "anchored": rules_of(lambda n: f"/a/{n}$"),
    "wild": rules_of(lambda n: f"/*{n}"),
    "wild, found together": rules_of(lambda n: f"/*{n}*aaaa"),
    "many stars": rules_of(lambda n: "*a" * 40 + f"{n}b"),
    "escapes": rules_of(lambda n: f"/%41\u00fc{n}"),
    "lengths": rules_of(lambda n: "/" + "b" * (n % 1000)),
}
RAW = {
    name: (lambda length, shape=shape: shape(length).encode())
    for name, shape in repetitions(
        ["a", " ", "\n", "\r", "*", "%", "%4", "<", "<br", "<pre ",
         "User-agent: probe\n", "User-agent:probe\nCrawl-delay:1\n", "Sitemap: /a\n",
         "Crawl-delay: 9\n", "#", "user-agent ", "site-map"],
        ["User-agent: *\nDisallow: ", "<html>", ""], [""],
    ).items()
}  # fmt: skip


BLANKS = {
    f"{field} + {blank!r} * n + {tail!r}": repeated(blank, f"User-agent: *\n{field}", tail)
    for field in ("User-agent", "Disallow", "Allow", "Crawl-delay", "Sitemap", "Site-map:")
    for blank in (" ", " :", ": ")
    for tail in ("", "x" * 40, "\u2028x", "x y", "#")
}
RAW |= {name: (lambda length, shape=shape: shape(length).encode()) for name, shape in BLANKS.items()}


def test_parsing_time_is_linear() -> None:
    assert_linear(lambda content: parse_robots(content, ("probe",)), FILES, longest=65_536)
    assert_linear(lambda content: parse_robots(content, ("probe",)), RAW, longest=16_384)


@pytest.mark.parametrize("path", ["a" * 2000, "bc" * 1000, "%41" * 600, "/folder/page.html?a=b&c=d"])
def test_matching_time_is_linear_in_rules(path: str) -> None:
    def ask(rules: RobotsRules) -> bool:
        return rules.is_allowed(f"http://a.test/{path}")

    shapes = {name: (lambda length, file=file: parse_robots(file(length), ("probe",))) for name, file in FILES.items()}
    assert_linear(ask, shapes, longest=65_536)


def test_matching_time_is_linear_in_url() -> None:
    for name, file in FILES.items():
        rules = parse_robots(file(8192), ("probe",))
        shapes = repetitions(["a", "/", "%41", "%", "?", "b1"], ["http://a.test/", "http:"], ["", "#"])
        assert_linear(rules.is_allowed, shapes, longest=8192)
        assert rules.size_bytes > 0, name


def test_only_candidate_rules_are_matched() -> None:
    rules = parse_robots(FILES["wild"](ROBOTS_MAX_BYTES - 1000), ("probe",))
    (group,) = rules.rule_sets
    path = robots_path("http://a.test/page-12345.html")
    tried = sum(len(group.wildcards[gram]) for gram in group.find_grams(path))
    assert len(group.find_grams(path)) < 30
    assert tried < 30
    assert not rules.is_allowed("http://a.test/page-12345.html")
    assert rules.is_allowed("http://a.test/page-.html")


def test_overly_expensive_url_is_disallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = parse_robots(FILES["wild, found together"](65_536), ("probe",))
    url = "http://a.test/" + "aaaa" * 100
    assert rules.is_allowed(url)
    monkeypatch.setattr("nutch2py.fetcher.robots.robots_matcher.MAX_COST", 100_000)
    assert not rules.is_allowed(url)
    assert rules.is_allowed("http://a.test/b")


@pytest.mark.parametrize("name", [*FILES])
def test_reported_rules_size_covers_memory(name: str) -> None:
    content = FILES[name](200_000)
    parse_robots(content, ("probe",))
    tracemalloc.start()
    try:
        rules = parse_robots(content, ("probe",))
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken <= rules.size_bytes <= 4 * taken


def test_agent_names_are_in_order(conf: Configuration) -> None:
    conf.set("http.robots.agents", "nutch-test,Other,*")
    assert robots_agent_names(conf) == ("nutch-test", "Other")


class Web:
    def __init__(self, *answers: FetchResponse) -> None:
        self.answers, self.asked = list(answers), []

    async def get(self, url: str, limit: int) -> FetchResponse:
        self.asked.append(url)
        await asyncio.sleep(0)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        answer.url = url
        return answer


FORBIDDING = b"User-agent: *\nDisallow: /"


@pytest.mark.parametrize(
    ("answer", "properties", "allowed"),
    [
        (FetchResponse("", 200, content=FORBIDDING), {}, False),
        (FetchResponse("", 404, content=FORBIDDING), {}, True),
        (FetchResponse("", 403), {"http.robots.403.allow": "true"}, True),
        (FetchResponse("", 403), {"http.robots.403.allow": "false"}, False),
        (FetchResponse("", 500), {"http.robots.503.defer.visits": "false"}, True),
        (FetchResponse("", 503), {"http.robots.503.defer.visits": "true"}, False),
        (FetchResponse("", failure=FetchFailure(FailureKind.TIMEOUT, "late")), {}, False),
        (
            FetchResponse("", failure=FetchFailure(FailureKind.TIMEOUT, "late")),
            {"http.robots.503.defer.visits": "false"},
            True,
        ),
        (FetchResponse("", failure=FetchFailure(FailureKind.REFUSED, "unreachable")), {}, False),
        (
            FetchResponse("", failure=FetchFailure(FailureKind.DNS, "unreachable")),
            {"http.robots.503.defer.visits": "false"},
            True,
        ),
        (FetchResponse("", 200, content=FORBIDDING), {"http.robot.rules.allowlist": "a.test"}, True),
    ],
)
def test_response_status_decides_access(
    conf: Configuration, answer: FetchResponse, properties: dict[str, str], allowed: bool
) -> None:
    for name, value in properties.items():
        conf.set(name, value)
    rules = asyncio.run(RobotsCache(conf, Web(answer).get).get_rules("http://a.test/x"))
    assert rules.is_allowed("http://a.test/x") is allowed


def test_robots_txt_is_requested_once_per_site_and_port(conf: Configuration) -> None:
    web = Web(FetchResponse("", 200, content=FORBIDDING))
    urls = ["http://a.test/1", "http://A.test:80/2", "http://a.test:81/3", "https://a.test/4", "http://a.test/5"]

    async def ask() -> None:
        cache = RobotsCache(conf, web.get)
        await asyncio.gather(*(cache.get_rules(url) for url in urls))

    asyncio.run(ask())
    assert sorted(web.asked) == ["http://a.test/robots.txt", "http://a.test:81/robots.txt", "https://a.test/robots.txt"]


def test_rules_cache_evicts_least_recently_used_by_bytes(conf: Configuration) -> None:
    content = FILES["wild"](50_000)
    most = 3 * parse_robots(content, ("probe",)).size_bytes
    conf.set("http.robots.cache.bytes", str(most))
    web = Web(FetchResponse("", 200, content=content))

    async def ask() -> None:
        cache = RobotsCache(conf, web.get)
        for number in range(20):
            await cache.get_rules(f"http://h{number}.test/")
            await cache.get_rules("http://h0.test/")
            assert cache.size_bytes <= most
        assert cache.size_bytes == sum(rules.size_bytes + 500 for rules, _ in cache.entries.values())
        assert len(cache.entries) == 2

    asyncio.run(ask())
    assert len(web.asked) == 20  # the entry of h0, used constantly, was never dropped


def test_small_rules_of_many_sites_fit_cache(conf: Configuration) -> None:
    cache = RobotsCache(conf, Web(FetchResponse("", 404), FetchResponse("", 200, content=FORBIDDING)).get)

    async def ask() -> None:
        for number in range(500):
            await cache.get_rules(f"http://h{number}.test/")

    asyncio.run(ask())
    assert len(cache.entries) == 500
    assert cache.size_bytes < 500 * 2000


def test_expensive_matching_runs_outside_event_loop(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def noted(*args: Any) -> RobotsRules:
        threads.append(threading.current_thread().name)
        return parse_robots(*args)

    monkeypatch.setattr("nutch2py.fetcher.robots.robots_cache.parse_robots", noted)

    async def ask(content: bytes) -> RobotsRules:
        return await RobotsCache(conf, Web(FetchResponse("", 200, content=content)).get).get_rules("http://a.test/")

    asyncio.run(ask(FORBIDDING))
    rules = asyncio.run(ask(FILES["wild"](ROBOTS_MAX_BYTES)))
    assert threads[0] == threading.main_thread().name != threads[1]
    url = "http://a.test/page-12345.html"
    monkeypatch.setattr(RobotsRules, "is_allowed", lambda *_: threads.append(threading.current_thread().name))
    asyncio.run(is_allowed(rules, url))
    asyncio.run(is_allowed(parse_robots(FORBIDDING, ("probe",)), url))
    assert threads[3] == threading.main_thread().name != threads[2]


def test_failed_robots_txt_fails_pages_and_is_requested_again(conf: Configuration) -> None:
    """A server that becomes available meanwhile is not sent page requests without its robots.txt.

    A failing redirect target says nothing about the server that sent the redirect.
    """
    unreachable = FetchResponse("", failure=FetchFailure(FailureKind.REFUSED, "unreachable"))
    moved = FetchResponse("", 301, [b"Location: https://b.test/robots.txt\r\n"])
    web = Web(unreachable, moved, unreachable, FetchResponse("", 200, content=FORBIDDING))

    async def ask() -> None:
        cache = RobotsCache(conf, web.get)
        assert (await cache.get_rules("http://a.test/x")).fetch_failure == unreachable.failure
        why = (await cache.get_rules("http://a.test/x")).fetch_failure
        assert why == FetchFailure(FailureKind.ROBOTS, "robots.txt: unreachable")
        rules = await cache.get_rules("http://c.test/x")
        assert (rules.fetch_failure, rules.is_allowed("http://c.test/x")) == (None, False)

    asyncio.run(ask())


def test_sitemap_urls_resolve_against_robots_txt_url(conf: Configuration) -> None:
    web = Web(
        FetchResponse("", 301, [b"Location: https://b.test/deep/robots.txt\r\n"]),
        FetchResponse("", 200, content=b"Sitemap: s.xml"),
    )
    rules = asyncio.run(RobotsCache(conf, web.get).get_rules("http://a.test/x"))
    assert rules.sitemaps == ["https://b.test/deep/s.xml"]


@pytest.mark.parametrize(("redirects", "allowed"), [(5, False), (6, True)])
def test_robots_txt_redirects_are_followed_up_to_five(conf: Configuration, redirects: int, allowed: bool) -> None:
    moved = [FetchResponse("", 301, [b"Location: /r%d\r\n" % n]) for n in range(redirects)]
    web = Web(*moved, FetchResponse("", 200, content=FORBIDDING))
    rules = asyncio.run(RobotsCache(conf, web.get).get_rules("http://a.test/x"))
    assert rules.is_allowed("http://a.test/x") is allowed
    assert len(web.asked) == 6


LINES = st.one_of(
    st.sampled_from(
        ["User-agent: *", "user-agent:probe", "User agent: probe bot/2.0", "Disallow: /", "Disallow:", "Allow: /a*b$",
         "allow /x", "Crawl-delay: 1e999", "Crawl-delay: -1", "Crawl-delay: nan", "Request-rate: 1/0",
         "Request-rate: 1/5s 0000-2400", "Visit-time: 2500-9999", "Sitemap: ::://", "Disallow: " + "*" * 50,
         "Disallow: /%zz%", "Disallow: /\ud83d", "#", ":", "<html>"]
    ),
    st.text(max_size=40),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(LINES, max_size=15), st.sampled_from(["\n", "\r\n", "\r"]), st.binary(max_size=20))
def test_arbitrary_robots_txt_is_parsed(lines: list[str], end: str, tail: bytes) -> None:
    content = end.join(lines).encode("utf-8", "surrogatepass") + tail
    for names in (("probe",), ("other bot", "probe")):
        rules = parse_robots(content, names)
        for url in ("http://a.test/", "http://a.test/ab?x=%zz#f", "http://a.test/\u00e9%C3%A9*$"):
            assert rules.is_allowed(url) in (True, False)
        assert rules.crawl_delay_ms is None or rules.crawl_delay_ms >= 0
