"""A search server over a small table and index, one page of which is malicious; on the embedded index or Solr."""

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.records.webpage import WebPage
from nutch2py.server.http_server import HttpServer
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.indexer.pages import ALL_INDEXES, doc
from tests.server.running_server import serving

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


def fill(conf):
    """Fill the table and index of ``conf`` with the pages above and thirty documents about hay."""
    store = open_store(conf, WebPage)
    store.create()
    writers = IndexWriters(conf)
    writers.prepare()
    with store.batch() as batch, writers:
        for number, (url, (kind, text, lang, title)) in enumerate(PAGES.items()):
            page = WebPage()
            page.content, page.content_type = text.encode("gb18030"), kind
            page.metadata["CharEncodingForConversion"] = b"gb18030"
            cache = {}
            if "secret" in url:
                page.metadata["caching.forbidden"] = b"content"
                cache = {"cache": "content"}
            batch.put(reverse_url(url), page)
            host = url.split("/")[2]
            writers.write(_made(100 + number, url, host=host, title=title, content=text, lang=lang,
                                type=[kind, *kind.split("/")], pagerank="2.0", **cache))  # fmt: skip
        for number in range(30):
            text, folder = "hay " * (number + 1), ("a/0", "b/1", "a/2", "b/0", "a/1", "b/2")[number % 6]
            url, kinds = f"http://hay.org/{folder}/{number}", ["text/html", "text", "html"]
            writers.write(_made(number, url, host="hay.org", title=f"Hay {number}", content=text, lang="en",
                                type=kinds, pagerank="1.0"))  # fmt: skip
        writers.commit()


def _made(number, url, **fields):
    fixed = {"boost": "1.0", "digest": f"{number:032x}", "tstamp": "2026-01-01T00:00:00.000Z", "batchId": "b"}
    return doc(reverse_url(url), url=url, **fixed, **fields)


class Running(HttpServer):
    """A server with its back end and configuration."""

    @property
    def conf(self):
        return self.app.state.search.conf

    @property
    def backend(self):
        with self.app.state.search.searchers.acquire() as searcher:
            return searcher


def running(conf):
    """Serve the index and the table of ``conf``."""
    return serving(Running(conf, ("127.0.0.1", 0)))


@pytest.fixture
def server(conf):
    """Yield a running server of the embedded index."""
    fill(conf)
    with running(conf) as made:
        yield made


@pytest.fixture(params=ALL_INDEXES, scope="module")
def indexed_server(request, tmp_path_factory):
    """Yield a running server of the embedded index, then one of a real Solr; shared by a module's tests."""
    folder = tmp_path_factory.mktemp("search")
    conf = Configuration.load(
        overrides={
            "storage.data.store": f"embedded:{folder / 'crawldata'}",
            "storage.embedded.map.size": str(1 << 30),
            "http.agent.name": "nutch-test",
        }
    )
    if request.param == "solr":
        solr = request.getfixturevalue("solr_server")
        solr.start()
        solr.clear()
        for name, value in (("solr.server.url", solr.url), ("search.backend", "solr"),
                            ("plugin.includes", "index-.*|indexer-solr")):  # fmt: skip
            conf.set(name, value)
    if request.param == "elastic":
        opensearch = request.getfixturevalue("opensearch_server")
        opensearch.start()
        opensearch.clear()
        for name, value in (("elastic.host", opensearch.url), ("plugin.includes", "index-.*|indexer-elastic")):
            conf.set(name, value)
    fill(conf)
    with running(conf) as made:
        yield made
