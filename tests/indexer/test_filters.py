import pytest

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.indexer.document_dates import format_solr_date
from nutch2py.indexer.filters.index_anchor import AnchorIndexingFilter
from nutch2py.indexer.filters.index_basic import BasicIndexingFilter, indexed_host, page_fetch_time
from nutch2py.indexer.filters.index_more import MoreIndexingFilter, split_mime_type
from nutch2py.indexer.indexing_filters import IndexingFilters
from nutch2py.interfaces import PageNotIndexableError
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import Mark
from tests.indexer.pages import page

NOW = 1_700_000_000_000
OURS = {"index-basic": BasicIndexingFilter, "index-more": MoreIndexingFilter, "index-anchor": AnchorIndexingFilter}


def settings(properties):
    return Configuration({name: str(value) for name, value in properties.items()}, [data_dir("conf")])


def filtered(plugin, url="http://www.example.com/", conf=None, document=None, **values):
    document = document or NutchDocument()
    result = plugin(settings(conf or {})).filter(document, url, page(**values))
    assert result is document
    return document


def run_case(case):
    given, args = case["input"], case["args"]
    if args.get("fn") == "getParts":
        return {"parts": split_mime_type(given)} == {"parts": case["expect"]}
    document = NutchDocument()
    if given.get("doc.title"):
        document.add("title", given["doc.title"])
    headers = {
        name: given[name] for name in ("Content-Type", "Content-Disposition", "Last-Modified") if given.get(name)
    }
    fetch_time = given.get("fetchTime_ms", given.get("fetchTime", 0))
    conf = {name: str(value).lower() for name, value in args.get("conf", {}).items()}
    inlinks = given.get("inlinks", {})
    filtered(
        OURS[args["filter"]],
        given.get("url", "http://www.example.com/"),
        conf,
        document,
        headers=headers,
        title=given.get("title"),
        text=given.get("text"),
        repr_url=given.get("reprUrl"),
        fetch_time=NOW if fetch_time == "now" else fetch_time,
        modified_time=given.get("modifiedTime_ms", 0),
        inlinks=inlinks if isinstance(inlinks, dict) else dict(inlinks),
        metadata={name: bytes(10) for name in given.get("metadata", {})},
    )
    for name, expected in case["expect"].items():
        if name == "fields_present":
            assert set(expected) <= set(document.fields)
        elif name == "title_length":
            assert len(document.get("title")) == expected
        elif name == "anchor_count":
            assert len(document.values("anchor")) == expected
        elif name == "type":
            assert document.values("type") == expected
        elif name.endswith("_ms"):
            assert document.get(name.removesuffix("_ms")) == format_solr_date(expected)
        else:
            assert document.get(name.removesuffix("[0]")) == expected
    return True


def test_basic_anchor_and_more_cases(cases):
    ours = [case for case in cases("indexing_filters") if case["args"]["filter"] in OURS]
    passed = sum(run_case(case) for case in ours)
    print(f"indexing_filters (basic, anchor, more): {passed}/{len(ours)}")
    assert passed == len(ours) == 13


def test_basic_uses_standard_field_names():
    made = filtered(
        BasicIndexingFilter,
        "http://User@Example.COM:8080/a?b",
        title="T",
        text="body",
        fetch_time=NOW,
        metadata={"caching.forbidden": b"content"},
    )
    assert made.fields == {
        "host": ["Example.COM"],
        "url": ["http://User@Example.COM:8080/a?b"],
        "content": ["body"],
        "title": ["T"],
        "cache": ["content"],
        "tstamp": ["2023-11-14T22:13:20.000Z"],
    }


def test_page_url_is_its_representative_url():
    made = filtered(BasicIndexingFilter, "http://a.com/long", repr_url="http://b.org/")
    assert (made.get("url"), made.get("host")) == ("http://b.org/", "b.org")


@pytest.mark.parametrize(("limit", "expected"), [("-1", "x" * 300), ("0", None), ("5", "xxxxx")])
def test_title_is_cut_to_limit(limit, expected):
    made = filtered(BasicIndexingFilter, conf={"indexer.max.title.length": limit}, title="x" * 300)
    assert made.get("title") == expected


def test_noarchive_cache_field_and_replacement_characters_are_dropped():
    made = filtered(BasicIndexingFilter, title="a\ufffdb", text="\ufffd", metadata={"caching.forbidden": b"none"})
    assert (made.get("title"), made.get("content"), made.get("cache")) == ("ab", "", None)


def test_control_characters_and_surrogates_are_removed():
    made = filtered(BasicIndexingFilter, title="a\x00b", text="x\x08\ufdd0y\tz")
    assert (made.get("title"), made.get("content")) == ("ab", "xy\tz")


def test_page_with_invalid_url_is_not_indexed():
    with pytest.raises(PageNotIndexableError, match="not a URL"):
        indexed_host("no url at all")


INTERVAL = 2_592_000


@pytest.mark.parametrize(
    ("marks", "fetch_time", "due"),
    [
        ({}, NOW, 0),  # fetched and parsed, before updatedb
        ({Mark.FETCH: "2", Mark.UPDATEDB: "1"}, NOW, NOW - 999),  # fetched again, updatedb has not run again
        ({Mark.UPDATEDB: "1"}, NOW + INTERVAL * 1000, NOW - 999),  # fetchTime is that of the next fetch
        ({Mark.UPDATEDB: "1"}, NOW + 86_400_000, NOW),  # a failed refetch is tried again in a day
    ],
)
def test_tstamp_is_fetch_time(marks, fetch_time, due):
    given = page(markers=marks, fetch_time=fetch_time, prev_fetch_time=due, fetch_interval=INTERVAL)
    assert page_fetch_time(given) == NOW


def test_anchors_are_ordered_by_linking_url_without_empty():
    inlinks = {"http://c/": "Foo", "http://a/": "foo", "http://b/": ""}
    assert filtered(AnchorIndexingFilter, inlinks=inlinks).values("anchor") == ["foo", "Foo"]
    deduplicated = filtered(AnchorIndexingFilter, conf={"anchorIndexingFilter.deduplicate": "true"}, inlinks=inlinks)
    assert deduplicated.values("anchor") == ["foo"]


def test_more_reads_response_headers():
    made = filtered(
        MoreIndexingFilter,
        headers={"last-modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Content-Length": " 12 "},
        content_type="application/pdf",
    )
    assert made.fields == {
        "lastModified": ["1994-11-06T08:49:37.000Z"],
        "date": ["1994-11-06T08:49:37.000Z"],
        "contentLength": ["12"],
        "type": ["application/pdf", "application", "pdf"],
    }


def test_invalid_last_modified_logs_warning_and_is_dropped(capsys):
    made = filtered(MoreIndexingFilter, headers={"Last-Modified": "yesterday"}, fetch_time=NOW)
    assert (made.get("lastModified"), made.get("date")) == (None, format_solr_date(NOW))
    assert "'yesterday' is not a date" in capsys.readouterr().err


def test_types_are_mapped_when_configured(tmp_path):
    (tmp_path / "contenttype-mapping.txt").write_text("# ours\nweb page\ttext/html\tapplication/xhtml+xml\n")
    conf = settings({"moreIndexingFilter.mapMimeTypes": "true"})
    conf.conf_dirs.insert(0, tmp_path)
    given = page(content_type="text/html")
    assert MoreIndexingFilter(conf).filter(NutchDocument(), "http://a/", given).values("type") == ["web page"]
    conf.set("moreIndexingFilter.mapMimeTypes.field", "kind")
    made = MoreIndexingFilter(conf).filter(NutchDocument(), "http://a/", given)
    assert (made.values("kind"), made.values("type")) == (["web page"], ["text/html", "text", "html"])


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ('inline; filename="foo bar.ppt"', "foo bar.ppt"),
        ("attachment; filename=x.doc; size=3", "x.doc"),
        ("inline", None),
    ],
)
def test_page_without_title_uses_file_name(header, title):
    assert filtered(MoreIndexingFilter, headers={"Content-Disposition": header}).get("title") == title


@pytest.mark.parametrize(("content_type", "expected"), [("", None), ("text", None), ("A/B;x", "a/b"), ("a/b/c", None)])
def test_invalid_content_type_gives_no_type(content_type, expected):
    assert MoreIndexingFilter(settings({})).canonical_type(content_type, "http://x/y.html") == expected


def test_type_is_canonical_or_guessed_from_url():
    more = MoreIndexingFilter(settings({}))
    assert more.canonical_type("application/x-pdf", "") == "application/pdf"
    assert more.canonical_type(None, "http://x/y.pdf?q") == "application/pdf"
    assert more.canonical_type(None, "http://x/y") == "application/octet-stream"


def test_filters_run_in_configured_order(conf):
    conf.set("plugin.includes", "index-(basic|anchor|more)")
    conf.set("indexingfilter.order", "index-more org.apache.nutch.indexer.basic.BasicIndexingFilter")
    filters = IndexingFilters(conf)
    assert [type(each) for each in filters.filters] == [MoreIndexingFilter, BasicIndexingFilter, AnchorIndexingFilter]
    assert filters.fields == MoreIndexingFilter.fields | BasicIndexingFilter.fields | AnchorIndexingFilter.fields


class Dropping:
    fields = frozenset()

    def filter(self, document, url, page):
        return None


class Unreachable:
    fields = frozenset()

    def filter(self, document, url, page):
        raise AssertionError("ran after the document was dropped")


def test_dropped_document_skips_later_filters(conf):
    filters = IndexingFilters(conf)
    filters.filters = [Dropping(), Unreachable()]
    assert filters.filter(NutchDocument(), "http://a/", page()) is None
