"""An intranet crawl of Nutch 2 is taken over; for weeks nobody changes a setting, and much fails on our side.

Four hosts: one behind our own address filter, one behind our proxy, one direct, and one whose server is really gone.
The proxy is dead for a week, the DNS server for a day. In the end only the pages of the gone server are gone.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LocalFailuresError, NutchError
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.jobs.fetch.fetch_job import fetch
from nutch2py.jobs.generate.generate_job import generate
from nutch2py.jobs.index.clean_job import clean
from nutch2py.jobs.index.index_job import index
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.parse_job import parse
from nutch2py.jobs.updatedb.updatedb_job import updatedb
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.search.search_backends import search
from nutch2py.table import KeyRange
from nutch2py.url.url_parts import host_of
from tests.jobs import rows
from tests.site.name_server import name_server

DAY = 86_400
INSIDE, DIRECT, PROXIED, GONE = "inside.corp", "direct.corp", "proxied.corp", "gone.corp"
PAGES = ("a", "b", "c")


class Origin(BaseHTTPRequestHandler):
    """Serves a page for every path, also as a proxy; there is no robots.txt."""

    def do_GET(self) -> None:
        is_robots = self.path.endswith("/robots.txt")
        body = b"" if is_robots else b"<html><title>Plankton</title><body><p>plankton of %s</p>" % self.path.encode()
        self.send_response_only(404 if is_robots else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = allow_reuse_address = True


@contextmanager
def served(port: int = 0) -> Iterator[int]:
    server = Server(("127.0.0.1", port), Origin)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


class Operator:
    """Runs the jobs of a day, and keeps messages and exit codes; ``read_messages`` returns those of standard error."""

    def __init__(self, conf: Configuration, read_messages: Callable[[], str], *, stops: bool) -> None:
        self.conf, self._read_messages, self._stops = conf, read_messages, stops
        self.said: dict[int, str] = {}
        self.codes: dict[int, set[int]] = {}

    def run_day(self, day: int) -> None:
        """Run the jobs; ``stops``: as Nutch's bin/crawl, none after one that fails."""
        conf, batch, codes = self.conf, f"day-{day}", set[int]()
        problems = []
        if generate(conf, batch_id=batch).urls:
            for job in (fetch, parse, updatedb, index):
                try:
                    job(conf, batch)
                except NutchError as error:
                    codes.add(error.exit_code)
                    problems.append(str(error))
                    if self._stops:
                        break
        clean(conf)
        self.said[day] = self._read_messages() + "\n".join(problems)
        self.codes[day] = codes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give the days that the machine's clock is ahead, in a list of one."""
    days, now = [0], time.time
    monkeypatch.setattr(time, "time", lambda: now() + days[0] * DAY)
    return days


def found(conf: Configuration) -> set[str]:
    return {hit.url for hit in search(conf, "plankton", rows=50).hits}


class Month(NamedTuple):
    """What happens when: the number of days, those on which the proxy is dead, and those without the DNS server."""

    days: int
    proxy_dead: range
    dns_away: tuple[int, ...]


PROXY_DEAD, DNS_AWAY = range(5, 12), (20,)
SHORT, LONG = Month(12, range(2, 9), (10,)), Month(30, PROXY_DEAD, DNS_AWAY)
"""The proxy is dead for a week in both, which is longer than any number of retries."""


@pytest.mark.parametrize("stops", [False, True], ids=["jobs-continue", "jobs-stop"])
@pytest.mark.parametrize("month", [SHORT, LONG], ids=["short", "month"])
def test_taken_over_intranet_survives_weeks_of_local_failures(
    conf: Configuration, tmp_path: Path, clock: list[int], capsys: pytest.CaptureFixture[str], month: Month, stops: bool
) -> None:
    days = range(1, month.days + 1)
    with ExitStack() as stack:
        port = stack.enter_context(served())
        with socket.create_server(("127.0.0.1", 0)) as unused:
            proxy_port, dns_port = unused.getsockname()[1], 0
        gone_site = ExitStack()
        gone_port = gone_site.enter_context(served())
        urls = {
            host: {f"http://{host}:{gone_port if host == GONE else port}/{page}" for page in PAGES}
            for host in (INSIDE, DIRECT, PROXIED, GONE)
        }
        all_urls = set().union(*urls.values())
        hosts = tmp_path / "hosts"
        hosts.write_text("".join(f"127.0.0.1 {host}\n" for host in urls))
        for name, value in {
            "fetcher.server.delay": "0",
            "fetcher.threads.per.queue": "4",
            "db.fetch.interval.default": str(DAY // 2),
            "http.hosts.file": str(hosts),
            "http.filter.ipaddress.exclude": "",
            "http.dns.timeout": "0.1",
        }.items():
            conf.set(name, value)
        (tmp_path / "seeds").write_text("\n".join(sorted(all_urls)))
        inject(conf, str(tmp_path / "seeds"))
        operator = Operator(conf, lambda: capsys.readouterr().err, stops=stops)
        operator.run_day(0)
        assert found(conf) == all_urls
        lists = BatchListStore(conf)  # Nutch 2 keeps no lists, notes and job log
        lists.delete_range(KeyRange("", "~"))
        assert not [*lists.store.keys(KeyRange("", "~"))]

        gone_site.close()
        conf.set("http.hosts.file", "")
        conf.set("http.filter.ipaddress.exclude", "sitelocal,linklocal")  # the loopback is this test's outside world
        conf.set("http.proxy.host", "127.0.0.1")
        conf.set("http.proxy.port", str(proxy_port))
        conf.set("http.proxy.exception.list", f"{INSIDE},{DIRECT},{GONE}")
        proxy, dns = ExitStack(), ExitStack()
        stack.enter_context(proxy)
        stack.enter_context(dns)
        server = dns.enter_context(name_server())
        dns_port = int(server.address.rpartition(":")[2])
        conf.set("http.dns.servers", f"127.0.0.1:{dns_port}")
        proxy.enter_context(served(proxy_port))
        for day in days:
            clock[0] = day
            if day in (month.proxy_dead.start, month.proxy_dead.stop):
                proxy.close() if day in month.proxy_dead else proxy.enter_context(served(proxy_port))
            if day - 1 in month.dns_away:
                dns.enter_context(name_server(port=dns_port))
            if day in month.dns_away:
                dns.close()
            operator.run_day(day)

        assert found(conf) == all_urls - urls[GONE]
        pages = rows.pages(conf, {WebPage.status, WebPage.retries_since_fetch, WebPage.fetch_time})
        assert {url for url, page in pages.items() if page.status == CrawlStatus.GONE} == urls[GONE]
        assert {page.retries_since_fetch for url, page in pages.items() if host_of(url) != GONE} == {0}
        assert {page.status for url, page in pages.items() if host_of(url) != GONE} == {CrawlStatus.FETCHED}
        silent = [day for day in days if "http.filter.ipaddress.exclude" not in operator.said[day]]
        if stops:
            assert LocalFailuresError.exit_code in set().union(*operator.codes.values())
            return
        assert silent == [*month.dns_away]  # no address, so nothing to filter
        assert [day for day in days if "http.proxy.host" in operator.said[day]] == [*month.proxy_dead]
        assert [day for day in days if "http.dns.servers" in operator.said[day]] == [*month.dns_away]
        assert operator.codes[month.dns_away[0]] == {LocalFailuresError.exit_code}
        assert {page.fetch_time // 1000 > time.time() - DAY for page in pages.values()} == {True}
