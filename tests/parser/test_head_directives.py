from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.interfaces import HTMLMetaTags
from nutch2py.parser.html.dom import head_elements, parse_tree
from nutch2py.parser.html.head_directives import find_document_base, read_meta_tags
from nutch2py.url.url_parts import resolve_url

BASE = "http://h/d/p.html"


def tags(head: str) -> HTMLMetaTags:
    return read(f"<head>{head}</head><body>x")


def read(html: str, base: str = BASE) -> HTMLMetaTags:
    return read_meta_tags(head_elements(parse_tree(html), html), base)


def test_robots_meta_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    passed = 0
    for case in (found := cases("robots_meta")):
        found_tags = read(case["input"], case["args"]["base"])
        expect = case["expect"]
        assert (found_tags.no_index, found_tags.no_follow, found_tags.no_cache) == (
            expect["noindex"], expect["nofollow"], expect["nocache"]
        ), case  # fmt: skip
        assert found_tags.base_href == expect["base_href"], case
        passed += 1
    print(f"robots_meta: {passed}/{len(found)}")


@pytest.mark.parametrize(
    ("content", "seconds", "target"),
    [
        ("0; url=http://x/y", 0, "http://x/y"),
        ("10;URL=/y", 10, "http://h/y"),
        ("5;y.html", 5, "http://h/d/y.html"),
        ("30", 30, BASE),
        ("3; url=javascript:x()", 3, BASE),
        ("x; url=z", None, None),
        ("", None, None),
        ("1.5; url=z", 1, "http://h/d/z"),
        (".5;url=z", 0, "http://h/d/z"),
        ("0;URL='http://x/'", 0, "http://x/"),
        ("0;url=&quot;http://x/&quot; onclick=", 0, "http://x/"),
        (" 2 ;url=z", 2, "http://h/d/z"),
        ("2,url=z", 2, "http://h/d/z"),
        ("2 z", 2, "http://h/d/z"),
        ("2 url = z", 2, "http://h/d/z"),
        ("0; URL=\nhttp://x/", 0, "http://x/"),
        ("2x; url=z", None, None),
        ("\u0665; url=z", None, None),
        (".; url=z", 0, "http://h/d/z"),
        ("99999999999; url=z", None, None),
    ],
)
def test_refresh_is_parsed(content: str, seconds: int | None, target: str | None) -> None:
    found = tags(f'<meta http-equiv="Refresh" content="{content}">')
    assert (found.refresh_time, found.refresh_href) == (seconds, target)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("index, follow, max-image-preview:none", (False, False, False)),
        ("max-image-preview : none, max-snippet:-1 nofollow", (False, True, False)),
        ("noimageindex, nonexistent, notranslate", (False, False, False)),
        ("NOINDEX;NoFollow", (True, True, False)), ("noarchive none", (True, True, True)),
        ("all", (False, False, False)),
    ],
)  # fmt: skip
def test_directives_are_whole_words(content: str, found: tuple[bool, ...]) -> None:
    for name in ("robots", "Robots", "MyBot"):
        html = f"<head><meta name={name} content='{content}'></head>"
        read_tags = read_meta_tags(head_elements(parse_tree(html), html), BASE, agent_names={"mybot"})
        assert (read_tags.no_index, read_tags.no_follow, read_tags.no_cache) == found
    html = "<head><meta name=otherbot content=none></head>"
    assert not read_meta_tags(head_elements(parse_tree(html), html), BASE, agent_names={"mybot"}).no_index


def test_directives_in_body_are_ignored() -> None:
    html = "<body><p>x</p><meta name=robots content=noindex><meta http-equiv=refresh content='0;url=http://evil/'>"
    assert read(html) == HTMLMetaTags()


def test_head_ends_at_authored_end() -> None:
    html = "<head><noscript><img src=pixel></noscript><meta name=robots content=noindex></head><body>{}"
    assert read(html.format("x")).no_index
    assert not read(html.format("<meta name=robots content=nofollow>")).no_follow


@pytest.mark.parametrize(
    ("html", "base"),
    [
        ("<body><base href=/b/>", "http://h/b/"),
        ("<a href=early>t</a><base href=/b/><base href=/c/>", "http://h/b/"),
        ("<base href=/a/><body><base href=/b/>", "http://h/a/"),
        ("<body><svg><base href=/b/></svg>", BASE),
        ("<body><noscript><base href=/b/></noscript>", BASE),
        ("<body><template><base href=/b/></template>", BASE),
        ("<base href='\\b\n\\'>", "http://h/b/"),
    ],
)
def test_base_is_applied_at_any_position(html: str, base: str) -> None:
    assert find_document_base(head_elements(parse_tree(html), html), BASE) == base


def test_refresh_resolves_against_preceding_base() -> None:
    refresh = "<meta http-equiv=refresh content='0;url=z'>"
    assert tags(f"{refresh}<base href=/b/>").refresh_href == "http://h/d/z"
    assert tags(f"<base href=/b/><base href=/c/>{refresh}").refresh_href == "http://h/b/z"


def test_general_tags_keep_values_by_lower_case_name() -> None:
    found = tags('<meta name="DC.creator" content="x"><meta name="dc.Creator" content="y"><meta name=e content="">')
    assert found.general == {"dc.creator": ["x", "y"], "e": [""]}


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ('<base href="http://i/b/">', "http://i/b/"),
        ('<base href="/sub/">', "http://h/sub/"),
        ('<base href="">', BASE),
        ('<base target=x><base href=" http://i/ ">', "http://i/"),
        ('<base href="../x/"><base href="http://i/">', "http://h/x/"),
        ('<base href="http://["><base href="http://i/">', BASE),
        ('<base href="javascript:x">', BASE),
        ("", BASE),
    ],
)
def test_first_base_applies_relative_or_absolute(head: str, base: str) -> None:
    html = f"<head>{head}<meta http-equiv=refresh content='0;url=z'></head>"
    assert find_document_base(parse_tree(html).css("meta,base"), BASE) == base
    assert tags(html).refresh_href == resolve_url(base, "z")


def test_refresh_in_noscript_is_ignored() -> None:
    found = tags("<noscript><meta http-equiv=refresh content='0;url=z'><meta name=robots content=noindex></noscript>")
    assert (found.refresh_time, found.no_index) == (None, True)


@pytest.mark.parametrize("hidden", ["<noscript><base href=/a/></noscript>", "<noscript class=x><base href=/a/>"])
def test_base_in_noscript_is_ignored(hidden: str) -> None:
    html = f"<head>{hidden}<meta name=robots content=noindex></noscript><base href=/b/></head><body>x"
    assert find_document_base(head_elements(parse_tree(html), html), BASE) == "http://h/b/"
    assert read(html).no_index
