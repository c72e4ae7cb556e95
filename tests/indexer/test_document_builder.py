import pytest

from nutch2py.indexer.document_builder import DocumentBuilder, IndexAction, is_noindex, should_index
from nutch2py.indexer.indexchecker import DISCARDED, format_checked_document
from nutch2py.records.cells import ParseStatus
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.table.table_query import columns_of
from tests.indexer.pages import page, recorded_rows

KEY = "com.example.www:http:8080/a"


@pytest.fixture
def builder(conf):
    conf.set("plugin.includes", "index-basic|scoring-opic")
    return DocumentBuilder(conf)


def test_document_has_nutch_fields(builder):
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


def test_document_consists_of_declared_fields(builder):
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
def test_only_parsed_non_redirecting_pages_are_indexed(builder, status, expected):
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
        ({"headers": {"X-Robots-Tag": "second-name: noindex"}}, True),
        ({"headers": {"X-Robots-Tag": "otherbot: nofollow, second-name: none"}}, True),
        ({"headers": {"X-Robots-Tag": "nofollow, otherbot: noindex"}}, False),
        ({"headers": {"X-Robots-Tag": "nutch-test: nofollow, otherbot: none"}}, False),
        ({"headers": {"X-Robots-Tag": "max-video-preview: 3, noindex"}}, True),
        ({"headers": {"X-ROBOTS-TAG": "Second-Name: NoIndex"}}, True),
        ({"metadata": {"robots": b"noindex; follow"}}, True),
        ({"metadata": {"robots": b"max-image-preview:none"}}, False),
    ],
)
def test_noindex_in_meta_or_header_is_respected(values, expected):
    assert is_noindex(page(**values), frozenset(("nutch-test", "second-name"))) is expected


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
def test_document_action_depends_on_page_state(builder, values, action):
    decided, document = builder.decide_action(KEY, page(**values))
    assert decided is action
    assert (document is not None) is (action is IndexAction.ADD)


def test_deletes_can_be_disabled(conf):
    for name in ("indexer.delete", "indexer.delete.robots.noindex"):
        conf.set(name, False)
    builder = DocumentBuilder(conf)
    assert builder.decide_action(KEY, page(status=CrawlStatus.GONE))[0] is IndexAction.SKIP
    assert builder.decide_action(KEY, page(metadata={"robots": b"noindex"}))[0] is IndexAction.ADD


def test_page_dropped_by_filter_is_deleted_when_configured(conf):
    conf.set("indexer.delete.skipped.by.indexingfilter", True)
    assert DocumentBuilder(conf).decide_action(KEY, page(repr_url="nonsense"))[0] is IndexAction.DELETE


def test_invalid_key_logs_warning(builder, capsys):
    assert builder.build("no key", page()) is None
    assert "Error indexing no key" in capsys.readouterr().err


def test_indexchecker_prints_line_per_value(conf):
    conf.set("plugin.includes", "index-(basic|anchor)")
    given = page(signature=b"\x01", text="x y", inlinks={"http://b/": "one", "http://c/": "two"}, fetch_time=0)
    assert format_checked_document(conf, "http://a.com/", given) == (
        "id :\thttp://a.com/\ndigest :\t01\nanchor :\tone\nanchor :\ttwo\nhost :\ta.com\nurl :\thttp://a.com/\n"
        "content :\tx y\ntstamp :\t1970-01-01T00:00:00.000Z\n"
    )


def test_indexchecker_reports_dropped_document(conf, monkeypatch):
    monkeypatch.setattr("nutch2py.indexer.filters.index_anchor.AnchorIndexingFilter.filter", lambda *_: None)
    assert format_checked_document(conf, "http://a.com/", page()) == f"{DISCARDED}\n"


def test_recorded_crawl_gives_documents_of_nutch(conf, recording):
    conf.set("indexer.delete.robots.noindex", False)
    builder = DocumentBuilder(conf)
    indexed = 0
    for key, cells in recorded_rows(recording):
        record = WebPage(cells, builder.fields)
        document = builder.build(key, record) if Mark.UPDATEDB in record.markers else None
        # Nutch marks a row as indexed if and only if it built a document of it.
        assert (document is not None) is (Mark.INDEX in record.markers), key
        if document is not None:
            indexed += 1
            assert document.id == key
            assert len(document.get("digest")) == 32
    print(f"recorded crawl: {indexed} documents")
    assert indexed > 50


def test_recorded_noindex_and_empty_pages_are_skipped(conf, recording):
    left_out = {
        key.rpartition("/")[2]
        for key, cells in recorded_rows(recording)
        if should_index(WebPage(cells)) and is_noindex(WebPage(cells))
    }
    assert left_out == {"both.html", "noindex.html", "none.html", "empty.html", "toempty.html"}
