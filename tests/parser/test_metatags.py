from collections.abc import Callable
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.html.html_parser import HtmlParser
from nutch2py.records.webpage import WebPage

from .pages import fetched

HTML = """<head><meta name="Description" content="d &eacute;"><meta name=dc.creator content=x>
<meta name=DC.Creator content=y><meta http-equiv="Content-Language" content=de>
<meta property="og:title" content=OG></head>"""


def parsed(html: str, names: str, page: WebPage | None = None) -> WebPage:
    conf = Configuration.load(overrides={"plugin.includes": "parse-html|parse-metatags", "metatags.names": names})
    page = page or fetched(html.encode(), Content_Type="text/html; charset=utf-8")
    HtmlParser(conf).parse("http://h/", page)
    return page


def meta(page: WebPage) -> dict[str, str]:
    return {name: value.decode() for name, value in page.metadata.items() if name.startswith("meta_")}


def test_metatag_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    own = [case for case in cases("parse_filters") if case["args"]["plugin"] == "parse-metatags"]
    for case in own:
        found = meta(parsed(case["input"], case["args"]["metatags.names"]))
        for name, values in case["expect"].items():  # 1.x writes metatag.NAME once a value, 2.x meta_NAME with tabs
            key = name.removesuffix(" (set)").replace("metatag.", "meta_")
            assert sorted(found[key].split("\t")) == sorted(values), case
    print(f"parse_filters (parse-metatags): {len(own)}/{len(own)}")
    assert len(own) == 2


def test_all_tags_are_stored() -> None:
    assert meta(parsed(HTML, "*")) == {
        "meta_description": "d é",
        "meta_dc.creator": "x\ty",
        "meta_content-language": "de",
    }


def test_listed_tags_match_case_insensitively() -> None:
    assert meta(parsed(HTML, "DC.creator, keywords")) == {"meta_dc.creator": "x\ty"}


def test_reparsing_does_not_copy_other_metadata() -> None:
    page = fetched(HTML.encode())
    page.metadata["_csh_"] = b"\0\0\0\0"
    parsed(HTML, "*", parsed(HTML, "*", page))
    assert not [name for name in page.metadata if "_csh_" in name and name != "_csh_"]


def test_removed_listed_tag_is_deleted() -> None:
    page = parsed(HTML, "description")
    page.content = b"<p>no tags"
    assert meta(parsed("", "description", page)) == {}
