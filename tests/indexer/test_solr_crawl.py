"""A crawl's jobs with a real Solr: documents sent, documents skipped, and no change while Solr is unavailable."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from nutch2py.backends.servers.solr_client import SolrClient
from nutch2py.cli import main
from nutch2py.jobs.dedup_job import dedup
from nutch2py.jobs.index.index_job import index
from nutch2py.search.search_backends import search
from tests.indexer.delivery_suite import crawl_settings, table_of
from tests.indexer.test_solr import settings
from tests.jobs.crawl import rounds
from tests.search.near_misses import MENTIONED, PAGES, QUERIES

NOINDEX = {"private", "draft"}
COPIES = {"copy1", "copy2"}
OTHERS = {"gone": 410, "failed": 500, "moved": 301}
TEXTS = {
    **PAGES,
    **dict.fromkeys(NOINDEX, ("Private", "Words that are nobody's business.")),
    **dict.fromkeys(COPIES | {"original"}, ("Equal", "Three pages that are equal, word for word.")),
}


class _Site(BaseHTTPRequestHandler):
    """The pages of the near misses, linked from the first; some with noindex, duplicates, moved, gone or broken."""

    def do_GET(self):
        name = self.path.strip("/")
        if not name:
            links = "".join(f'<a href="/{each}">{each}</a> ' for each in sorted([*TEXTS, *OTHERS]))
            self._answer(200, f"<title>All pages</title>{links}")
        elif name in TEXTS:
            title, text = TEXTS[name]
            robots = '<meta name="robots" content="noindex">' if name in NOINDEX else ""
            self._answer(200, f"<html><head><title>{title}</title>{robots}</head><body><p>{text}</p></body></html>")
        else:
            self._answer(OTHERS.get(name, 404), "")

    def _answer(self, status, body):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        if status == 301:
            self.send_header("Location", "/original")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Disable the log."""


@contextmanager
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def crawled(solr_server, tmp_path_factory):
    """Yield the configuration of a crawl indexed in Solr and in the embedded index, and the site's address."""
    solr_server.start()
    solr_server.clear()
    folder = tmp_path_factory.mktemp("crawl")
    conf = settings(solr_server.url, **crawl_settings(folder))
    conf.set("plugin.includes", f"{conf.get('plugin.includes')}|language-identifier|indexer-embedded|indexer-solr")
    with site() as root:
        (folder / "seeds").write_text(f"{root}/\n")
        rounds(conf, str(folder / "seeds"), 4)
    dedup(conf)
    index(conf, "-all")
    return conf, root


def options(conf, *names):
    return [word for name in names for word in ("-D", f"{name}={conf.get(name)}")]


def test_solr_documents_equal_parsed_minus_excluded(crawled, solr_server, capsys):
    conf, _ = crawled
    assert main(["readdb", "-stats", *options(conf, "storage.data.store")]) == 0
    lines = dict(line.rsplit(":\t", 1) for line in capsys.readouterr().out.splitlines() if ":\t" in line)
    parsed = sum(int(count) for name, count in lines.items() if name.startswith("parse success"))
    assert parsed == len(TEXTS) + 1
    assert int(lines["TOTAL urls"]) == parsed + len(OTHERS)
    assert solr_server.count() == parsed - len(NOINDEX) - len(COPIES)
    urls = {each["url"] for each in solr_server.select("*:*", fl="url", rows=1000)["response"]["docs"]}
    assert {url.rpartition("/")[2] for url in urls} == {"", "original", *PAGES}


def test_facets_and_highlights_match_crawl(crawled, solr_server):
    found = solr_server.select("奥运会", handler="nutch")
    assert found["response"]["numFound"] == 2
    facets = found["facet_counts"]["facet_fields"]
    assert facets["host"] == ["127.0.0.1", 2]
    assert facets["lang"] == ["zh", 2]
    assert dict(zip(facets["type"][::2], facets["type"][1::2], strict=True)) == {"text/html": 2, "text": 2, "html": 2}
    for document in found["response"]["docs"]:
        shown = found["highlighting"][document["id"]]
        assert "<em>奥运会</em>" in "".join(shown["title"] + shown["content"])


@pytest.mark.parametrize(
    "query", [*QUERIES, "论坛 OR 奥地利", "host:127.0.0.1 lang:zh", "title:火箭 -卫星", '"今晚有季后赛"']
)
def test_solr_and_embedded_search_agree(crawled, query):
    conf, _ = crawled
    found = {}
    for backend in ("embedded", "solr"):
        asked = conf.copy()
        asked.set("search.backend", backend)
        found[backend] = [hit.url.rpartition("/")[2] for hit in search(asked, query, rows=100).hits]
    assert sorted(found["embedded"]) == sorted(found["solr"]) != []
    if query in QUERIES:
        assert found["embedded"][0] == found["solr"][0] == QUERIES[query]


def test_evaluate_command_measures_solr(crawled, tmp_path, capsys):
    conf, root = crawled
    (tmp_path / "queries").write_text("\n".join(QUERIES), encoding="utf-8")
    judged = [(query, name, 1, 1) for query, name in QUERIES.items()]
    judged += [(query, name, 0.1, 0.3) for query, names in MENTIONED.items() for name in names]
    (tmp_path / "judgements").write_text(
        "".join(f"{query}\t{root}/{name}\t{r}\t{a}\n" for query, name, r, a in judged), encoding="utf-8"
    )
    arguments = ["evaluate", str(tmp_path / "queries"), "-judgements", str(tmp_path / "judgements"), "-json"]
    for backend in ("embedded", "solr"):
        settings = options(conf, "storage.data.store", "solr.server.url")
        assert main([*arguments, *settings, "-D", f"search.backend={backend}"]) == 0
        mean = json.loads(capsys.readouterr().out)["mean"]
        assert (mean["reciprocal_rank"], mean["ndcg"]) == (1.0, 1.0)  # others that share a word come later


@pytest.mark.parametrize("backend", ["embedded", "solr"])
def test_search_command_pages_facets_and_explains_solr(crawled, capsys, backend):
    conf, _ = crawled
    settings = options(conf, "storage.data.store", "solr.server.url")
    command = ["search", "论坛 OR 奥运会", *(["-solr"] if backend == "solr" else []), *settings]
    pages = []
    for start in range(4):
        assert main([*command, "-rows", "1", "-start", str(start), "-json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["total"], found["start"], len(found["hits"])) == (4, start, 1)
        pages.append(found["hits"][0]["url"].rpartition("/")[2])
    assert set(pages) == {"beijing", "olympics_history", "boao", "forum"}
    assert main([*command, "-facets", "-explain", "-rows", "2"]) == 0
    said = capsys.readouterr().out
    assert "\nhost: 127.0.0.1 (4)\n" in said
    assert "\ntype: text/html (4)\n" in said
    assert "\nlang: zh (4)\n" in said
    assert said.count("idf") >= 2
    assert main([*command, "-facets", "-explain", "-rows", "1", "-json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["facets"]["lang"] == {"zh": 4}
    assert "idf" in found["hits"][0]["explanation"]
    command[1] = "equel"
    assert main(command) == 0
    assert "Showing results for: equal\n" in capsys.readouterr().out
    assert main([*command, "-json"]) == 0
    assert json.loads(capsys.readouterr().out)["corrected_query"] == "equal"


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_documents_rejected_by_solr_are_reported(solr, tmp_path, capfd, runner):
    conf = settings(solr.url, **crawl_settings(tmp_path))
    conf.set("mapreduce.runner", runner)
    conf.set("index.static", "publishedDate:soon")
    conf.set("plugin.includes", f"{conf.get('plugin.includes')}|index-static|indexer-solr")
    keys = [f"org.example:http/{number}" for number in range(3)]
    table_of(conf, *keys)
    index(conf, "-all")
    said = capfd.readouterr()
    rejections = [line for line in said.err.splitlines() if "Solr rejects the document" in line]
    assert sorted(line.split()[5] for line in rejections) == [f"{key}:" for key in keys]
    assert "0 documents added, 0 deleted, 0 skipped, 3 rejected by the index" in said.out


@pytest.mark.parametrize("way", ["stop", "crash"])
def test_job_survives_solr_restart(solr, tmp_path, monkeypatch, capfd, way):
    conf = settings(solr.url, **crawl_settings(tmp_path))
    conf.set("solr.commit.size", "40")
    keys = [f"org.example:http/{quote(f'奥{number}')}" for number in range(1000)]
    table_of(conf, *keys)
    send, sent, restarting = SolrClient.add, [], []

    def add(client, documents, within):
        sent.append(len(documents))
        if len(sent) == 10:
            getattr(solr, way)()
            restarting.append(threading.Thread(target=solr.start))
            restarting[0].start()
        send(client, documents, within)

    monkeypatch.setattr(SolrClient, "add", add)
    result = index(conf, "-all")
    restarting[0].join()
    said = capfd.readouterr()
    assert "does not respond" in said.err
    assert "IndexingJob: 1000 documents added, 0 deleted" in said.out
    assert result.count("IndexerStatus", "added") == 1000
    assert sorted(solr.ids()) == sorted(keys)
    assert solr.count() == 1000
