"""A search server over a table and an index of a few pages, one of which is malicious."""

import threading

import pytest

from nutch2py.indexer.embedded import EmbeddedIndexWriter
from nutch2py.server.serve import SearchServer
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from nutch2py.webpage import WebPage
from tests.indexer.pages import doc

EVIL = (
    "<html><head><title>Evil needle</title><meta http-equiv=refresh content='0;url=http://127.0.0.1:1/'></head><body>"
    "<p id=text>needle in a trap</p><script>document.title='ran';document.cookie='stolen=1'</script>"
    "<img src=x onerror=\"document.body.innerHTML='ran'\"><form action='/'><button>go</button></form></body></html>"
)
PAGES = {
    "http://a.org/evil": ("text/html", EVIL, "en", "Evil needle <script>alert(1)</script>"),
    "http://a.org/zh": ("text/html", "<meta charset=gbk><p>北京奥运会开幕", "zh", "北京奥运会 needle"),
    "http://b.org/plain": ("text/plain", "needle <b>plain</b>", "en", "Plain needle"),
    "http://b.org/secret": ("text/html", "<p>needle secret", "en", "Secret needle"),
}


@pytest.fixture
def server(conf):
    """Give a running server; its index has also thirty documents about hay."""
    store = open_store(conf, WebPage)
    store.create()
    writer = EmbeddedIndexWriter(conf)
    writer.prepare(conf, {}, False)
    writer.open(conf, {})
    with store.batch() as batch:
        for url, (kind, text, lang, title) in PAGES.items():
            page = WebPage()
            page.content, page.content_type = text.encode("gb18030"), kind
            page.metadata["CharEncodingForConversion"] = b"gb18030"
            cache = {}
            if "secret" in url:
                page.metadata["caching.forbidden"] = b"content"
                cache = {"cache": "content"}
            batch.put(reverse_url(url), page)
            host = url.split("/")[2]
            writer.write(doc(reverse_url(url), url=url, host=host, title=title, content=text, lang=lang,
                             type=[kind, *kind.split("/")], pagerank="2.0", **cache))  # fmt: skip
    for number in range(30):
        url = f"http://hay.org/{number}"
        fields = {"title": f"Hay {number}", "content": "hay " * (number + 1), "lang": "en", "type": "text/html"}
        writer.write(doc(reverse_url(url), url=url, host="hay.org", **fields))
    writer.commit()
    running = SearchServer(conf, ("127.0.0.1", 0))
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()
