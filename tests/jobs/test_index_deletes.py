"""Gone pages leave the index, for every reason of removal and every form of the index job."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nutch2py.errors import IndexingError
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.records.cells import ParseStatus
from nutch2py.records.webpage import Mark, WebPage
from nutch2py.search.search_backends import search
from nutch2py.table import TableQuery, open_store

PAGE = b"<html><head>%s<title>Title</title></head><body>%s</body></html>"
LONG = b"<p>plankton and other words of the sea, which matter to none</p>"

WAYS = {
    "stays": (200, PAGE % (b"", LONG)),
    "gone": (410, b"gone"),
    "not-found": (404, b"none"),
    "forbidden": (401, b"no"),
    "moved": (301, b""),
    "moved-for-now": (302, b""),
    "refreshed": (200, PAGE % (b'<meta http-equiv="refresh" content="0; url=/stays">', LONG)),
    "refreshed-later": (200, PAGE % (b'<meta http-equiv="refresh" content="5; url=/stays">', LONG)),
    "noindex": (200, PAGE % (b'<meta name="robots" content="noindex">', LONG)),
    "tagged": (200, PAGE % (b"", LONG)),
    "filtered": (200, b"plankton in text alone, without a tag"),
    "robots": (200, PAGE % (b"", LONG)),
}
"""Response of each page after the first round. All were equal before."""
FORMS = ("batch", "batch without its list", "-all", "-reindex", "a later batch")


class Site(BaseHTTPRequestHandler):
    """Serves the pages; ``server.later``: the first round is over."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name, later = self.path[1:], self.server.later
        if name == "robots.txt":
            return self.answer(200, b"User-agent: *\nDisallow: /robots\n" if later else b"", "text/plain")
        if name not in WAYS:
            return self.answer(404, b"")
        status, body = WAYS[name] if later else (200, PAGE % (b"", LONG))
        kind = "text/plain" if later and name == "filtered" else "text/html"
        return self.answer(status, body, kind, later and name == "tagged")

    def answer(self, status, body, kind="text/html", tagged=False):
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status in (301, 302):
            self.send_header("Location", "/stays")
        if tagged:
            self.send_header("X-Robots-Tag", "noindex")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.later = False
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def work(conf, batch):
    generate(conf, batch_id=batch, add_days=400)
    fetch(conf, batch)
    parse(conf, batch)
    updatedb(conf, batch)


def found(conf):
    try:
        return {hit.url.rpartition("/")[2] for hit in search(conf, "plankton", rows=50).hits}
    except IndexingError:  # nothing is left in it
        return set()


@pytest.mark.parametrize("form", FORMS)
def test_gone_pages_are_deleted_from_index(conf, tmp_path, site, form):
    for name, value in {
        "http.filter.ipaddress.exclude": "",
        "fetcher.server.delay": "0",
        "fetcher.threads.per.queue": "4",
        "fetcher.max.robots.cache": "0",
        "db.update.additions.allowed": "false",
        "plugin.includes": conf.get("plugin.includes") + "|mimetype-filter",
    }.items():
        conf.set(name, value)
    seeds = tmp_path / "seeds"
    seeds.write_text("".join(f"http://127.0.0.1:{site.server_address[1]}/{name}\n" for name in WAYS))
    inject(conf, str(seeds))
    work(conf, "one")
    index(conf, "one")
    assert found(conf) == set(WAYS)
    site.later = True
    rules = tmp_path / "types"
    rules.write_text("+\ntext/plain\n")
    conf.set("mimetype.filter.file", str(rules))
    work(conf, "two")
    batch = {"-all": "-all", "-reindex": "-reindex"}.get(form, "two")
    if form == "batch without its list":
        BatchListStore(conf).delete_batch("two")
    if form == "a later batch":
        work(conf, "three")
        batch = "three"
    index(conf, batch)
    assert found(conf) == {"stays"}
    index(conf, "-all")
    assert found(conf) == {"stays"}


def test_row_added_by_reindex_is_deleted_when_gone(conf):
    """Such a row may have no update mark, and so had no index mark either: nothing would have deleted it."""
    store = open_store(conf, WebPage)
    store.create()
    page = WebPage()
    page.status, page.fetch_interval, page.content_type, page.batch_id = 2, 1, "text/html", "one"
    page.title, page.text = "Title", "plankton"
    page.parse_status = ParseStatus(1)
    with store.batch() as batch:
        batch.put("org.a:http/x", page)
    index(conf, "-reindex")
    assert found(conf) == {"x"}
    ((key, row),) = store.scan(TableQuery(None))
    assert row.markers[Mark.INDEX] == "one"
    row.status = 3
    with store.batch() as batch:
        batch.put(key, row)
    index(conf, "-all")
    assert found(conf) == set()
