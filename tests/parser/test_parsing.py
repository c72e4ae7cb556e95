from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Outlink, Parse, Parser
from nutch2py.parser.row_parser import ParseOutcome, RowParser
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage

from .pages import KEY, URL, fetched, stored


def process(page: WebPage, conf: Configuration) -> ParseOutcome:
    return RowParser(conf).parse_row(KEY, page)


class Stub(Parser):
    """A parser that does what the test wants; it takes the place of a real one inside the factory."""

    fields: frozenset[Any] = frozenset()

    def __init__(self, act: Any) -> None:
        self.act = act

    def parse(self, url: str, page: WebPage) -> Parse:
        result: Parse = self.act()
        return result


def with_parser(conf: Configuration, *acts: Any) -> RowParser:
    parsing = RowParser(conf)
    parsing.parser_factory.get_parsers = lambda content_type: [Stub(act) for act in acts]  # type: ignore[method-assign]
    return parsing


def test_success_writes_text_signature_outlinks_and_mark(conf: Configuration) -> None:
    page = fetched(b"<title>T</title><a href=x>one</a><a href=x>two</a><a href=y.gif>filtered</a>")
    outcome = process(page, conf)
    assert (outcome.label, outcome.removed_outlinks) == ("success", ())
    assert (page.title, page.text, page.parse_status) == ("T", "T one two filtered", (1, 0, ()))
    assert dict(page.outlinks) == {"http://h.test/d/x": "one"}
    assert page.markers[Mark.PARSE] == "b1"
    assert page.signature is not None
    assert page.prev_signature is None


def test_only_fetched_pages_are_parsed(conf: Configuration) -> None:
    page = fetched(b"x")
    page.status = CrawlStatus.REDIR_TEMP
    page = stored(page)
    assert process(page, conf).label == "notfetched"
    assert page.mutation() is None


def test_declared_fields_are_sufficient(conf: Configuration) -> None:
    parsing = RowParser(conf)
    full = fetched(b"<meta http-equiv=refresh content='0;url=x'>")
    assert parsing.parse_row(KEY, WebPage(full.cells, parsing.fields)).label == "success"
    full = fetched(b"<a href=x>x</a>", Content_Length="15")
    assert parsing.parse_row(KEY, WebPage(full.cells, parsing.fields)).label == "success"


def test_truncated_content_is_skipped(conf: Configuration) -> None:
    page = fetched(b"x" * 10, Content_Length="11")
    outcome = process(page, conf)
    assert (outcome.label, outcome.status, page.mutation()) == ("truncated", None, None)
    assert outcome.message == f"{URL} skipped. Content of size 11 was truncated to 10"
    conf.set("parser.skip.truncated", False)
    assert process(page, conf).label == "success"


@pytest.mark.parametrize("headers", [
    {"Content_Length": "10"}, {"Content_Length": "x"}, {"Content_Length": "99999999999"},
    {"Content_Length": "99", "Content_Encoding": "gzip"}, {},
])  # fmt: skip
def test_complete_content_is_not_truncated(conf: Configuration, headers: dict[str, str]) -> None:
    assert process(fetched(b"x" * 10, **headers), conf).label == "success"


def test_new_fetch_changes_signature_and_reparse_does_not(conf: Configuration) -> None:
    page = fetched(b"one")
    process(page, conf)
    page = stored(page)
    first = page.signature
    process(page, conf)
    assert page.prev_signature is None  # the same fetch, parsed again
    page = stored(page)
    page.markers[Mark.FETCH], page.content = "b2", b"two"
    page = stored(page)
    process(page, conf)
    assert page.prev_signature == first
    assert page.signature != first


def test_removed_outlinks_are_reported(conf: Configuration) -> None:
    page = fetched(b"<a href=b>b</a>")
    page.outlinks["http://h.test/d/a"] = "old"
    page.outlinks["http://h.test/d/b"] = "old"
    page = stored(page)
    assert process(page, conf).removed_outlinks == ("http://h.test/d/a",)
    assert dict(stored(page).outlinks) == {"http://h.test/d/b": "b"}


def test_refresh_adds_target_and_writes_no_text(conf: Configuration) -> None:
    page = fetched(b"<title>T</title><meta http-equiv=refresh content='3;url=/to#f'>text")
    page.outlinks["http://h.test/old"] = "old"
    page = stored(page)
    outcome = process(page, conf)
    assert outcome.status == (1, 100, ("http://h.test/to#f", "3"))
    assert dict(page.outlinks) == {"http://h.test/old": "old", "http://h.test/to": ""}
    assert page.metadata["___rdrdsc__"] == b"y"
    assert (page.text, page.signature, page.repr_url, Mark.PARSE in page.markers) == (None, None, None, False)


def test_refresh_to_filtered_target_is_reported(conf: Configuration) -> None:
    page = fetched(b"<meta http-equiv=refresh content='0;url=mailto:x@y'>")
    outcome = process(page, conf)
    assert "mailto:x@y" in outcome.message
    assert len(page.outlinks) == 0
    assert page.parse_status is not None


def test_type_without_parser_fails(conf: Configuration) -> None:
    page = fetched(b"\0\1", "application/x-unknown")
    outcome = process(page, conf)
    assert outcome.label == "failed"
    assert outcome.status == (2, 200, (
        f"org.apache.nutch.parse.ParserNotFound: parser not found for contentType=application/x-unknown url={URL}",
    ))  # fmt: skip
    assert Mark.PARSE not in page.markers


def test_exception_names_parser_and_page(conf: Configuration) -> None:
    with pytest.raises(PluginError, match=r"plug-in Stub failed on http://h\.test/.*: ZeroDivisionError: integer"):
        with_parser(conf, lambda: 1 // 0).parse_row(KEY, fetched(b"x"))
    parse = with_parser(conf, lambda: 1 // 0).parse("http://h.test/", fetched(b"x"))
    assert (parse.major, parse.minor) == (2, 200)
    assert parse.args == ("Stub: ZeroDivisionError: integer division or modulo by zero",)


def test_next_parser_is_tried_until_success(conf: Configuration) -> None:
    parsing = with_parser(conf, lambda: 1 // 0, lambda: Parse("t", "", ()), lambda: 1 // 0)
    page = fetched(b"x")
    assert parsing.parse_row(KEY, page).label == "success"
    assert page.text == "t"


def test_parse_metadata_is_stored(conf: Configuration) -> None:
    page = fetched(b"x")
    with_parser(conf, lambda: Parse("", "", (), metadata={"k": b"v"})).parse_row(KEY, page)
    assert page.metadata["k"] == b"v"


def links(*urls: str) -> tuple[Outlink, ...]:
    return tuple(Outlink(url, f"to {url}") for url in urls)


def test_first_outlinks_are_kept_up_to_limit(conf: Configuration) -> None:
    conf.set("db.max.outlinks.per.page", 3)
    kept = RowParser(conf).outlink_filter.filter_outlinks(
        URL, links("http://h.co/x.gif", "http://h.co/1", "http://h.co/2", "http://h.co/3")
    )
    assert list(kept) == ["http://h.co/1", "http://h.co/2"]  # a rejected link counts, as in Nutch
    conf.set("db.max.outlinks.per.page", -1)
    assert (
        len(RowParser(conf).outlink_filter.filter_outlinks(URL, links(*(f"http://h.co/{n}" for n in range(500)))))
        == 500
    )


def test_external_links_can_be_ignored(conf: Configuration) -> None:
    conf.set("db.ignore.external.links", True)
    kept = RowParser(conf).outlink_filter.filter_outlinks(
        URL, links("http://H.test/a", "http://other.test/", "nonsense")
    )
    assert list(kept) == ["http://h.test/a"]


def test_internal_links_can_be_ignored(conf: Configuration) -> None:
    conf.set("db.ignore.internal.links", True)
    assert list(RowParser(conf).outlink_filter.filter_outlinks(URL, links("http://h.test/a", "http://o.test/"))) == [
        "http://o.test/"
    ]


def test_internal_links_are_kept_with_nutch_2_configuration(conf: Configuration, tmp_path: Path) -> None:
    listed = (
        "<configuration><property><name>db.ignore.internal.links</name><value>true</value></property></configuration>"
    )
    (tmp_path / "nutch-default.xml").write_text(listed, encoding="utf-8")
    conf = Configuration.load(tmp_path)
    assert conf.get_bool("db.ignore.internal.links")
    assert list(RowParser(conf).outlink_filter.filter_outlinks(URL, links("http://h.test/a"))) == ["http://h.test/a"]


def test_external_links_are_compared_by_domain_with_exemptions(conf: Configuration, tmp_path: Path) -> None:
    conf.set("db.ignore.external.links", True)
    found = links("http://www.h.test/a", "http://o.test/pic.png", "http://o.test/a")
    assert list(RowParser(conf).outlink_filter.filter_outlinks(URL, found)) == []
    conf.set("db.ignore.external.links.mode", "byDomain")
    assert list(RowParser(conf).outlink_filter.filter_outlinks(URL, found)) == ["http://www.h.test/a"]
    (tmp_path / "exempt.txt").write_text("# pictures\n+/a$\n", encoding="utf-8")
    conf.conf_dirs.insert(0, tmp_path)
    conf.set("db.ignore.external.exemptions.file", "exempt.txt")
    assert list(RowParser(conf).outlink_filter.filter_outlinks(URL, found)) == [
        "http://www.h.test/a",
        "http://o.test/a",
    ]


def test_normalizers_and_filters_can_be_disabled(conf: Configuration) -> None:
    conf.set("parse.filter.urls", False)
    assert list(RowParser(conf).outlink_filter.filter_outlinks(URL, links("http://h.test/./x.gif"))) == [
        "http://h.test/x.gif"
    ]
    conf.set("parse.normalize.urls", False)
    assert list(RowParser(conf).outlink_filter.filter_outlinks(URL, links("http://h.test/./x.gif"))) == [
        "http://h.test/./x.gif"
    ]


def test_long_anchors_are_truncated_when_configured(conf: Configuration) -> None:
    long = (Outlink("http://h.test/a", "x" * 200),)
    assert len(RowParser(conf).outlink_filter.filter_outlinks(URL, long)["http://h.test/a"]) == 200
    conf.set("db.max.anchor.length", 100)
    assert len(RowParser(conf).outlink_filter.filter_outlinks(URL, long)["http://h.test/a"]) == 100


def test_long_targets_are_dropped(conf: Configuration) -> None:
    conf.set("parser.html.outlinks.max.target.length", 20)
    kept = RowParser(conf).outlink_filter.filter_outlinks(
        URL, links("http://h.co/" + "x" * 8, "http://h.co/" + "x" * 9)
    )
    assert [len(url) for url in kept] == [20]
    conf.set("db.max.outlink.length", 19)
    assert RowParser(conf).outlink_filter.filter_outlinks(URL, links("http://h.co/" + "x" * 8)) == {}
