from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutch2py.conf import Configuration
from nutch2py.fetcher.answer import Answer, Failure, FailureKind
from nutch2py.fetcher.robots import RobotsCache, agent_names
from nutch2py.fetcher.robots_rules import parse_robots

Cases = Callable[[str], list[dict[str, Any]]]

# Nutch 1 merges the groups of all its agent names; Nutch 2 obeys the one that stands first in the file
MERGED_IN_NUTCH_1 = {("http://example.com/c", False), ("http://example.com/foo/bar/baz.html", False)}


def test_google_cases(cases: Cases) -> None:
    given = cases("google_robots")
    wrong = [
        case
        for case in given
        if parse_robots(case["robots"].encode(), (case["agent"],)).allowed(case["url"]) != case["allowed"]
    ]
    print(f"{len(given) - len(wrong)}/{len(given)}")
    assert not wrong


def test_nutch_cases(cases: Cases) -> None:
    given, wrong, excepted = cases("robots_rules"), [], 0
    for case in given:
        args, expect = case["args"], case["expect"]
        agents = tuple(name.strip() for name in args["agent_names"].split(","))
        rules = parse_robots(args["robots_txt"].encode(), agents)
        if "allowed" in expect:
            of_nutch_1 = len(agents) > 1 and case["versions"] == ["1.x"]
            if of_nutch_1 and (case["input"], expect["allowed"]) in MERGED_IN_NUTCH_1:
                excepted += 1
            elif rules.allowed(case["input"]) != expect["allowed"]:
                wrong.append(case)
        elif rules.crawl_delay != expect["crawl_delay_ms"]:
            wrong.append(case)
    print(f"{len(given) - len(wrong) - excepted}/{len(given)}, {excepted} excepted: Nutch 1 merges groups")
    assert not wrong


def test_byte_order_mark_and_sitemaps() -> None:
    rules = parse_robots(b"\xef\xbb\xbfUser-agent: *\nDisallow: /x\nSitemap: http://a.test/s.xml\n", ("probe",))
    assert not rules.allowed("http://a.test/x")
    assert rules.sitemaps == ["http://a.test/s.xml"]


def test_agent_with_digits_is_met_by_its_full_name_only_or_its_product_token() -> None:
    for name, allowed in (("nutch2py", False), ("nutch", False), ("nutch3", True), ("nut", True)):
        rules = parse_robots(f"User-agent: {name}\nDisallow: /".encode(), ("nutch2py",))
        assert rules.allowed("http://a.test/") is allowed, name


def test_agent_names_in_order(conf: Configuration) -> None:
    conf.set("http.robots.agents", "nutch-test,Other,*")
    assert agent_names(conf) == ("nutch-test", "Other")


class Web:
    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked = list(answers), []

    async def get(self, url: str, limit: int) -> Answer:
        self.asked.append(url)
        await asyncio.sleep(0)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        answer.url = url
        return answer


FORBIDDING = b"User-agent: *\nDisallow: /"


@pytest.mark.parametrize(
    ("answer", "properties", "allowed"),
    [
        (Answer("", 200, content=FORBIDDING), {}, False),
        (Answer("", 404, content=FORBIDDING), {}, True),
        (Answer("", 403), {"http.robots.403.allow": "true"}, True),
        (Answer("", 403), {"http.robots.403.allow": "false"}, False),
        (Answer("", 500), {"http.robots.503.defer.visits": "false"}, True),
        (Answer("", 503), {"http.robots.503.defer.visits": "true"}, False),
        (Answer("", failure=Failure(FailureKind.TIMEOUT, "late")), {}, False),
        (Answer("", failure=Failure(FailureKind.TIMEOUT, "late")), {"http.robots.503.defer.visits": "false"}, True),
        (Answer("", failure=Failure(FailureKind.REFUSED, "nobody")), {}, True),  # nor will the page be had
        (Answer("", 200, content=FORBIDDING), {"http.robot.rules.allowlist": "a.test"}, True),
    ],
)
def test_what_an_answer_means(conf: Configuration, answer: Answer, properties: dict[str, str], allowed: bool) -> None:
    for name, value in properties.items():
        conf.set(name, value)
    rules = asyncio.run(RobotsCache(conf, Web(answer).get).rules("http://a.test/x"))
    assert rules.allowed("http://a.test/x") is allowed


def test_a_site_is_asked_once_for_many_pages_and_each_port_by_itself(conf: Configuration) -> None:
    web = Web(Answer("", 200, content=FORBIDDING))
    urls = ["http://a.test/1", "http://A.test:80/2", "http://a.test:81/3", "https://a.test/4", "http://a.test/5"]

    async def ask() -> None:
        cache = RobotsCache(conf, web.get)
        await asyncio.gather(*(cache.rules(url) for url in urls))

    asyncio.run(ask())
    assert sorted(web.asked) == ["http://a.test/robots.txt", "http://a.test:81/robots.txt", "https://a.test/robots.txt"]


@pytest.mark.parametrize(("redirects", "allowed"), [(5, False), (6, True)])
def test_redirects_are_followed_up_to_five(conf: Configuration, redirects: int, allowed: bool) -> None:
    moved = [Answer("", 301, [b"Location: /r%d\r\n" % n]) for n in range(redirects)]
    web = Web(*moved, Answer("", 200, content=FORBIDDING))
    rules = asyncio.run(RobotsCache(conf, web.get).rules("http://a.test/x"))
    assert rules.allowed("http://a.test/x") is allowed
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
def test_whatever_stands_in_a_robots_txt_is_read(lines: list[str], end: str, tail: bytes) -> None:
    content = end.join(lines).encode("utf-8", "surrogatepass") + tail
    for names in (("probe",), ("other bot", "probe")):
        rules = parse_robots(content, names)
        for url in ("http://a.test/", "http://a.test/ab?x=%zz#f", "http://a.test/\u00e9%C3%A9*$"):
            assert rules.allowed(url) in (True, False)
        assert rules.crawl_delay is None or rules.crawl_delay >= 0
