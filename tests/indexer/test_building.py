import pytest

from nutch2py.cells import ParseStatus
from nutch2py.indexer.building import DocumentBuilder, IndexAction, is_noindex, should_index
from nutch2py.indexer.indexchecker import DISCARDED, check_text
from nutch2py.table.query import columns_of
from nutch2py.webpage import CrawlStatus, Mark, WebPage
from tests.indexer.pages import page, recorded_rows

KEY = "com.example.www:http:8080/a"


@pytest.fixture
def builder(conf):
    conf.set("plugin.includes", "index-basic|scoring-opic")
    return DocumentBuilder(conf)


def test_a_document_has_nutchs_fields(builder):
    made = builder.build(KEY, page(signature=bytes(range(16)), batch_id="1-2", score=0.25, title="T", text="x"))
    assert {name: made.get(name) for name in ("id", "digest", "batchId", "boost", "url", "host")} == {
        "id": KEY,
        "digest": "000102030405060708090a0b0c0d0e0f",
        "batchId": "1-2",
        "boost": "0.5",
        "url": "http://www.example.com:8080/a",
        "host": "www.example.com",
    }
    assert made.score == 0.5


def test_fields_are_all_a_document_is_made_of(builder):
    cells = {b"p": {b"t": b"T"}, b"s": {}}
    record = WebPage(cells, builder.fields)
    record.parse_status = ParseStatus(1)
    assert builder.build(KEY, record).get("title") == "T"
    assert b"ol" not in columns_of(builder.fields)
    assert b"cnt" not in (columns_of(builder.fields)[b"f"] or ())


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, False),
        (ParseStatus(0), False),
        (ParseStatus(2, 200), False),
        (ParseStatus(1, 100), False),
        (ParseStatus(1), True),
    ],
)
def test_only_pages_that_were_parsed_and_do_not_redirect_are_indexed(builder, status, expected):
    given = page(parse_status=status)
    assert should_index(given) is expected
    assert (builder.build(KEY, given) is not None) is expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, False),
        ({"metadata": {"robots": b"index,follow"}}, False),
        ({"metadata": {"robots": b"NoIndex, follow"}}, True),
        ({"metadata": {"meta_robots": b"none\t"}}, True),
        ({"headers": {"X-Robots-Tag": "noindex"}}, True),
        ({"content_type": "text/html", "title": "", "text": ""}, True),
        ({"content_type": "text/html", "title": "T"}, False),
        ({"content_type": "image/png"}, False),
        ({"headers": {"x-robots-tag": "noarchive, noindex"}}, True),
        ({"headers": {"X-Robots-Tag": "otherbot: noindex"}}, False),
        ({"headers": {"X-Robots-Tag": "nutch-test: noindex"}}, True),
        ({"headers": {"X-Robots-Tag": "max-snippet: 3, noindex"}}, True),
    ],
)
def test_noindex_in_meta_robots_or_header(values, expected):
    assert is_noindex(page(**values), "nutch-test") is expected


@pytest.mark.parametrize(
    ("values", "action"),
    [
        ({}, IndexAction.ADD),
        ({"status": CrawlStatus.GONE}, IndexAction.DELETE),
        ({"status": CrawlStatus.REDIR_PERM}, IndexAction.DELETE),
        ({"parse_status": ParseStatus(1, 100)}, IndexAction.DELETE),
        ({"metadata": {"robots": b"noindex"}}, IndexAction.DELETE),
        ({"parse_status": ParseStatus(2, 200)}, IndexAction.SKIP),
        ({"parse_status": None}, IndexAction.SKIP),
        ({"repr_url": "nonsense"}, IndexAction.SKIP),
    ],
)
def test_what_becomes_of_a_pages_document(builder, values, action):
    decided, document = builder.decide(KEY, page(**values))
    assert decided is action
    assert (document is not None) is (action is IndexAction.ADD)


def test_deletes_can_be_switched_off(conf):
    for name in ("indexer.delete", "indexer.delete.robots.noindex"):
        conf.set(name, False)
    builder = DocumentBuilder(conf)
    assert builder.decide(KEY, page(status=CrawlStatus.GONE))[0] is IndexAction.SKIP
    assert builder.decide(KEY, page(metadata={"robots": b"noindex"}))[0] is IndexAction.ADD


def test_a_page_that_a_filter_drops_is_deleted_only_if_wanted(conf):
    conf.set("indexer.delete.skipped.by.indexingfilter", True)
    assert DocumentBuilder(conf).decide(KEY, page(repr_url="nonsense"))[0] is IndexAction.DELETE


def test_a_key_that_is_none_is_warned_of(builder, capsys):
    assert builder.build("no key", page()) is None
    assert "Error indexing no key" in capsys.readouterr().err


def test_indexchecker_prints_a_line_for_each_value(conf):
    conf.set("plugin.includes", "index-(basic|anchor)")
    given = page(signature=b"\x01", text="x y", inlinks={"http://b/": "one", "http://c/": "two"}, fetch_time=0)
    assert check_text(conf, "http://a.com/", given) == (
        "id :\thttp://a.com/\ndigest :\t01\nanchor :\tone\nanchor :\ttwo\nhost :\ta.com\nurl :\thttp://a.com/\n"
        "content :\tx y\ntstamp :\t1970-01-01T00:00:00.000Z\n"
    )


def test_indexchecker_tells_of_a_dropped_document(conf, monkeypatch):
    monkeypatch.setattr("nutch2py.indexer.filters.index_anchor.AnchorIndexingFilter.filter", lambda *_: None)
    assert check_text(conf, "http://a.com/", page()) == f"{DISCARDED}\n"


def test_the_recorded_crawl_gives_a_document_for_each_page_that_nutch_indexed(conf, recording):
    conf.set("indexer.delete.robots.noindex", False)
    builder = DocumentBuilder(conf)
    indexed = 0
    for key, cells in recorded_rows(recording):
        record = WebPage(cells, builder.fields)
        document = builder.build(key, record) if Mark.UPDATEDB in record.markers else None
        # Nutch marks a row as indexed when, and only when, it made a document of it
        assert (document is not None) is (Mark.INDEX in record.markers), key
        if document is not None:
            indexed += 1
            assert document.id == key
            assert len(document.get("digest")) == 32
    print(f"recorded crawl: {indexed} documents")
    assert indexed > 50


def test_of_the_recorded_crawl_noindex_pages_and_empty_ones_are_left_out(conf, recording):
    left_out = {
        key.rpartition("/")[2]
        for key, cells in recorded_rows(recording)
        if should_index(WebPage(cells)) and is_noindex(WebPage(cells))
    }
    assert left_out == {"both.html", "noindex.html", "none.html", "empty.html", "toempty.html"}
