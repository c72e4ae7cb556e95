from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.parser.dom import HTMLMetaTags, parse_tree
from nutch2py.parser.meta import absolute_base, read_meta_tags

BASE = "http://h/d/p.html"


def tags(head: str) -> HTMLMetaTags:
    return read_meta_tags(parse_tree(f"<head>{head}</head><body>x"), BASE)


def test_robots_meta_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    passed = 0
    for case in (found := cases("robots_meta")):
        read = read_meta_tags(parse_tree(case["input"]), case["args"]["base"])
        expect = case["expect"]
        assert (read.no_index, read.no_follow, read.no_cache) == (
            expect["noindex"], expect["nofollow"], expect["nocache"]
        ), case  # fmt: skip
        assert read.base_href == expect["base_href"], case
        passed += 1
    print(f"robots_meta: {passed}/{len(found)}")


@pytest.mark.parametrize(
    ("content", "seconds", "target"),
    [
        ("0; url=http://x/y", 0, "http://x/y"),
        ("10;URL=/y", 10, "http://h/y"),
        ("5;y.html", 5, "http://h/d/y.html"),
        ("30", 30, BASE),
        ("-1;url=z", -1, "http://h/d/z"),
        ("3; url=javascript:x()", 3, BASE),
        ("x; url=z", None, None),
        ("", None, None),
        ("1.5; url=z", None, None),
        ("99999999999; url=z", None, None),
    ],
)
def test_refresh(content: str, seconds: int | None, target: str | None) -> None:
    read = tags(f'<meta http-equiv="Refresh" content="{content}">')
    assert (read.refresh_time, read.refresh_href) == (seconds, target)


def test_directives_in_the_body_are_what_users_write() -> None:
    html = "<body><p>x</p><meta name=robots content=noindex><meta http-equiv=refresh content='0;url=http://evil/'>"
    read = read_meta_tags(parse_tree(html), BASE)
    assert read == HTMLMetaTags()


def test_general_tags_keep_all_values_by_lower_case_name() -> None:
    read = tags('<meta name="DC.creator" content="x"><meta name="dc.Creator" content="y"><meta name=e content="">')
    assert read.general == {"dc.creator": ["x", "y"], "e": [""]}


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ('<base href="http://i/b/">', "http://i/b/"),
        ('<base href="/sub/">', None),
        ('<base target=x><base href=" http://i/ ">', "http://i/"),
        ("", None),
    ],
)
def test_only_an_absolute_base_counts(head: str, base: str | None) -> None:
    assert absolute_base(parse_tree(f"<head>{head}</head>")) == base
