"""A cached copy costs a bounded amount, whatever the page and the query are, and shows only what the index holds."""

from __future__ import annotations

import threading
from urllib.parse import quote, urlencode

import pytest

from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.records.cells import ParseStatus
from nutch2py.records.webpage import WebPage
from nutch2py.server.cached_page import CachedPage, render_cached_page, sanitize_html
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.growth import assert_linear, repeated
from tests.indexer.pages import doc
from tests.server.conftest import running
from tests.server.test_serve import get

QUERIES = {
    "letters": " ".join("abcdefghijklmnopqrst"),
    "phrases": " ".join(f'"{"a " * 7}{letter}"' for letter in "abcdefghijklmnopqrst"),
    "no match": " ".join(f"zzzz{number}" for number in range(20)),
}
SHAPES = {
    piece: repeated(piece, head)
    for piece, head in {
        "a ": "", "<b>a</b>": "", "<p>a": "", "a<i>": "", "<img src=x>": "", "<p style=a:url(b)>": "",
        "<a href=x>a</a>": "",
        "<style>@import x</style>": "", "url(": "<style>", "@import": "<style>", "<style ": "<p title='", "<div>": "",
        "<object>": "", "<object><embed></object>": "", "&amp;": "", "'": "", "<b><p>": "", "<template>": "",
        "<svg><use href=x>": "", "<TEMPLATE\t>": "", "a=1 b ": "<p ", "中": "", "abcd": "", "a    ": "",
    }.items()
}  # fmt: skip


PLAIN = {"a ", "<p>a", "&amp;", "'", "中", "abcd", "a    "}
"""Shapes that differ as plain text, in which a tag is text like any other."""


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("media_type", ["text/html", "text/plain"])
def test_cost_of_cached_copy_is_linear(media_type, query):
    assert_linear(lambda text: render_cached_page(CachedPage(media_type, text), QUERIES[query]), SHAPES, 65_536)


@pytest.mark.parametrize("piece", SHAPES)
def test_answer_of_cached_copy_is_bounded(piece):
    source = SHAPES[piece](200_000)
    for query in QUERIES.values():
        for media_type in ("text/html", "text/plain") if piece in PLAIN else ("text/html",):
            _, text = render_cached_page(CachedPage(media_type, source), query)
            assert text.count("<mark") <= 1_000
            assert len(text.encode()) < 1_040_000


def test_nested_templates_do_not_end_the_process():
    assert "<template" not in sanitize_html("<template>" * 100_000)
    assert sanitize_html("<template>a</template>").count("<template>") == 1


def test_nested_removed_elements_are_removed():
    shown = sanitize_html("<object><embed><iframe></iframe></object><p>kept<object><object><embed>")
    assert "kept" in shown
    assert not any(name in shown for name in ("object", "embed", "iframe"))


def put(conf, url, title="Page", text="needle words", content=b"<p>needle words", indexed=True, **metadata):
    page = WebPage()
    page.content, page.content_type, page.title, page.text = content, "text/html", title, text
    page.parse_status = ParseStatus(1, 0, ())
    page.headers = metadata.pop("headers", {})
    for name, value in metadata.items():
        page.metadata[name.replace("_", ".")] = value
    with open_store(conf, WebPage).batch() as batch:
        batch.put(reverse_url(url), page)
    if indexed:
        with IndexWriters(conf) as writers:
            writers.write(doc(reverse_url(url), url=url, host="c.org", title=title, content=text))
            writers.commit()
    return quote(reverse_url(url))


def copies(server, key):
    with running(server.conf) as reopened:
        return [get(reopened, f"{path}?id={key}&q=needle") for path in ("/cached", "/cached/view")]


def test_indexed_page_has_copy(server):
    responses = copies(server, put(server.conf, "http://c.org/"))
    assert [response.status for response, _ in responses] == [200, 200]


@pytest.mark.parametrize(
    "forbidden",
    [
        {"indexed": False},
        {"headers": {"X-Robots-Tag": "noindex"}},
        {"headers": {"X-Robots-Tag": "nutch-test: none"}},
        {"metatag_robots": b"NOINDEX, follow"},
        {"title": "", "text": ""},  # how a meta robots noindex is stored
        {"caching_forbidden": b"content"},
    ],
    ids=lambda given: "-".join(map(str, given)),
)
def test_page_that_index_may_not_show_has_no_copy(server, forbidden):
    key = put(server.conf, "http://c.org/", **{"content": b"<p>needle hidden", **forbidden})
    for response, body in copies(server, key):
        assert response.status == 404
        assert "hidden" not in body


def test_deleted_document_has_no_copy(server):
    key = put(server.conf, "http://c.org/", content=b"<p>needle hidden")
    with IndexWriters(server.conf) as writers:
        writers.delete(reverse_url("http://c.org/"))
        writers.commit()
    for response, body in copies(server, key):
        assert response.status == 404
        assert "hidden" not in body


def test_long_page_is_cut_at_property(server):
    server.conf.set("search.cached.max.characters", "1000")
    key = put(server.conf, "http://c.org/", content=("<p>" + "ü" * 10_000).encode())
    _, (response, body) = copies(server, key)
    assert (response.status, body.count("ü")) == (200, 997)


def test_cached_copies_do_not_occupy_threads_of_searches(server, monkeypatch):
    started, release = threading.Semaphore(0), threading.Event()

    def slow(*_):
        started.release()
        release.wait(60)
        return "text/plain", "done"

    monkeypatch.setattr("nutch2py.server.search_views.render_cached_page", slow)
    path = f"/cached/view?{urlencode({'id': reverse_url('http://b.org/plain')})}"
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(get(server, path)[0].status)) for _ in range(40)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            assert started.acquire(timeout=60)
        assert get(server, "/?q=needle")[0].status == 200
        assert not started.acquire(blocking=False)
    finally:
        release.set()
        for thread in threads:
            thread.join()
    assert answers == [200] * 40
