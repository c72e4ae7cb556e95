"""The ParserJob over rows made here: formats of all kinds in one batch, and sitemaps."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.parse_job import parse
from nutch2py.parser.worker.parse_worker_client import ParsedRow, ParseWorkerClient
from nutch2py.records.webpage import CrawlStatus, Mark, WebPage
from nutch2py.url.keys import reverse_url
from tests.counted_kills import strike
from tests.jobs.rows import marked, pages, put
from tests.processes import alive, commands, cpu_seconds, wait_until

BATCH = "1600000000-1"


def fetched(content: bytes, content_type: str, **marks: str) -> dict[str, object]:
    """Give the row of a fetched page of the batch."""
    return {
        "status": CrawlStatus.FETCHED, "content": content, "content_type": content_type,
        "marks": {Mark.GENERATE: BATCH, Mark.FETCH: BATCH, **marks},
    }  # fmt: skip


def test_batch_of_all_formats_survives_broken_page(conf: Configuration) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", "<d><p><t>words</t></p></d>")
    put(conf, {
        "http://h.test/a.html": fetched(b"<title>page</title>", "text/html"),
        "http://h.test/b.docx": fetched(out.getvalue(), "application/x-tika-ooxml"),
        "http://h.test/c.pdf": fetched(b"%PDF-1.4 and nothing", "application/pdf", **{Mark.PARSE: BATCH}),
        "http://h.test/d.rtf": fetched(b"{\\rtf1 rich}", "application/rtf"),
        "http://h.test/e": fetched(b"\0", "application/x-unknown"),
    })  # fmt: skip
    result = parse(conf, "-all")
    assert result.counters["ParserStatus"] == {"success": 3, "failed": 2}
    texts = {url: page.text for url, page in pages(conf, {WebPage.text}).items()}
    assert texts == {"http://h.test/a.html": "page", "http://h.test/b.docx": "words", "http://h.test/d.rtf": "rich"}
    statuses = {url: page.parse_status for url, page in pages(conf, {WebPage.parse_status}).items()}
    assert [status.minor for status in statuses.values() if status and status.major == 2] == [203, 200]
    assert marked(conf, Mark.PARSE) == texts.keys() - {"http://h.test/c.pdf"}  # not that of a parse before


def test_sitemap_pages_are_generated(conf: Configuration) -> None:
    body = "".join(f"<url><loc>http://h.test/{name}</loc></url>" for name in ("new", "seed", "known"))
    put(conf, {
        "http://h.test/map.xml": fetched(f"<urlset>{body}</urlset>".encode(), "application/xml", **{Mark.INJECT: "s"}),
        "http://h.test/seed": {"marks": {Mark.INJECT: "s"}},
        "http://h.test/known": {"title": "kept", "status": CrawlStatus.UNFETCHED},
    })  # fmt: skip
    assert parse(conf, "-all", sitemap=True).counters["ParserStatus"] == {"success": 1, "sitemap_urls": 3}
    assert marked(conf, Mark.INJECT, "y") == {"http://h.test/new", "http://h.test/known"}
    assert marked(conf, Mark.INJECT, "s") == {"http://h.test/map.xml", "http://h.test/seed"}  # marks that were there
    assert pages(conf, {WebPage.title})["http://h.test/known"].title == "kept"
    generate(conf, batch_id="2-2")
    assert marked(conf, Mark.GENERATE, "2-2") >= {"http://h.test/new", "http://h.test/known"}


WORST = b"<p " + b" ".join(b"b%d" % number for number in range(200_000)) + b">"  # minutes in C, without the limits


def test_slow_page_gets_timeout_status_and_job_continues(conf: Configuration) -> None:
    conf.set("parser.timeout", 1)
    conf.set("parser.html.max.attributes", 0)
    urls = [f"http://h.test/{number}.html" for number in range(40)]
    put(conf, {url: fetched(b"<title>page</title>", "text/html") for url in urls})
    worst = fetched(WORST, "text/html", **{Mark.PARSE: BATCH})  # of a parse of the same fetch that went well
    put(conf, {urls[7]: fetched(WORST, "text/html"), urls[8]: worst})
    assert parse(conf, "-all").counters["ParserStatus"] == {"success": 38, "failed": 2}
    found = pages(conf, {WebPage.title, WebPage.parse_status, WebPage.markers})
    for url in urls:
        ended = url in urls[7:9]
        assert found[url].title == (None if ended else "page")
        assert found[url].markers.get(Mark.PARSE) == (None if ended else BATCH)
        status = found[url].parse_status
        assert status is not None
        assert status == ((2, 200, ("more than 1 s (parser.timeout)",)) if ended else (1, 0, ()))


def test_unfetched_page_is_not_sent_to_worker(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    process_all = ParseWorkerClient.parse_rows

    def noted(parsing: ParseWorkerClient, rows: Iterable[tuple[str, WebPage]]) -> Iterator[ParsedRow]:
        return process_all(parsing, ((given.append(key) or (key, page)) for key, page in rows))

    monkeypatch.setattr(ParseWorkerClient, "parse_rows", noted)  # killed, it would be blamed on the page
    gone = fetched(b"", "text/html") | {"status": CrawlStatus.GONE}
    put(conf, {"http://h.test/a": fetched(b"x", "text/html"), "http://h.test/b": gone})
    assert parse(conf, BATCH).counters["ParserStatus"] == {"success": 1, "notfetched": 1}
    assert given == [reverse_url("http://h.test/a")]
    assert [*pages(conf, {WebPage.parse_status})] == ["http://h.test/a"]


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_termination_during_worst_page_ends_job_at_once(conf: Configuration, tmp_path: Path, runner: str) -> None:
    conf.set("parser.html.max.attributes", 0)
    put(conf, {"http://h.test/worst.html": fetched(WORST, "text/html")})
    settings = {
        "storage.data.store": conf.get("storage.data.store", ""), "mapreduce.runner": runner, "parser.timeout": "600",
        "parser.html.max.attributes": "0", "http.agent.name": "x",
    }  # fmt: skip
    options = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    command = [sys.executable, "-m", "nutch2py.cli", "parse", "-all", *options]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        children: list[int] = []
        wait_until(lambda: children.extend(busy_children(job.pid)) or children)
        assert strike(job, signal.SIGTERM)
        assert job.returncode == 143
        wait_until(lambda: not any(alive(child) for child in children))  # the page would take ten minutes
    assert pages(conf, {WebPage.parse_status}) == {}


def busy_children(job: int) -> list[int]:
    """Return the processes below a job that parse, and have done so for a while."""
    found = []
    for pid, words in commands():
        is_worker = any(b"worker.parse_worker" in word for word in words) and job in ancestors(pid)
        if is_worker and cpu_seconds(pid) > 2:
            found.append(pid)
    return found


def ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        found.append(pid)
    return found
