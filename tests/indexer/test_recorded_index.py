"""The recorded crawl, indexed and searched."""

from nutch2py.indexer.document_builder import DocumentBuilder, IndexAction
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.records.webpage import WebPage
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.search_backends import search
from tests.indexer.pages import recorded_rows


def ids(conf, query):
    return {hit.id for hit in search(conf, query, rows=100).hits}


def test_recorded_nutch_crawl_is_indexed_and_found(conf, recording):
    builder = DocumentBuilder(conf)
    writers = IndexWriters(conf)
    writers.prepare()
    added = 0
    with writers:
        for key, cells in recorded_rows(recording):
            action, document = builder.decide_action(key, WebPage(cells, builder.fields))
            if action is IndexAction.DELETE:
                writers.delete(key)
            elif document is not None:
                added += 1
                writers.write(document)
        writers.commit()
    assert EmbeddedSearcher(conf).count() == added > 200

    chinese = ids(conf, "简体中文")
    assert {"test.interop.f:http/gbk-meta.html", "test.interop.f:http/gb2312-meta5.html"} <= chinese
    assert all(key.startswith("test.interop.f:") for key in chinese)
    assert ids(conf, "site:f.interop.test 测试编码") == ids(conf, "测试编码")
    assert ids(conf, '"page 40"') >= {"test.interop.a:http/p40.html"}
    assert ids(conf, "type:text/html -type:text/html") == set()
    first = search(conf, "page").hits[0]
    assert first.title.highlights
    assert first.snippet.highlights
