"""The table as Nutch 2.4 left it is taken over; thirty days pass, in which much fails on our side.

The table is the recorded one, without our tables beside it. The same thirty days are run without failures, too.
Hosts a, b and c are behind our proxy, d and h behind our address filter, others are direct; the server of j is gone.
All pages come due on day 8, while the proxy is dead; the DNS servers are away on day 20.
"""

from __future__ import annotations

import contextlib
import io
import socket
import socketserver
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import LocalFailuresError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.jobs.index.index_job import index
from nutch2py.records.webpage import CrawlStatus, DerivedRow, WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from nutch2py.url.url_parts import host_of
from tests.conftest import MAP_SIZE
from tests.jobs import recorded, rows
from tests.jobs.test_taken_over_intranet import DAY, DNS_AWAY, PROXY_DEAD, Operator
from tests.site.name_server import name_server
from tests.site.recorded import recorded_site

SITE, NOWHERE, PRIVATE = "127.0.7.3", "127.0.7.4", "10.0.0.1"
PROXIED, INSIDE, GONE = (frozenset(f"{letter}.interop.test" for letter in letters) for letters in ("abc", "dh", "j"))
HOSTS = frozenset(f"{letter}.interop.test" for letter in "abcdefghijk")
ALL_DUE = 8
"""Day on which every page of the recording is due: 30 days after the recorded fetches."""
ALL_DAYS, FEW_DAYS = range(1, 31), (ALL_DUE, 12, 20, 21, 30)
"""Days on which the jobs run. The few are those on which all is due, the proxy is back, DNS fails and is back."""


_BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Relay(socketserver.StreamRequestHandler):
    """A proxy that takes every request to the recorded site, whatever host it names."""

    def handle(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            lines.append(line)
        if not lines:
            return
        method, target, version = lines[0].split()
        parts = urlsplit(target.decode())
        path = parts._replace(scheme="", netloc="").geturl() or "/"
        if method == b"CONNECT":
            self.wfile.write(_BAD_GATEWAY)
            return
        try:
            origin = socket.create_connection((SITE, parts.port or 80))
        except OSError:
            self.wfile.write(_BAD_GATEWAY)
            return
        with origin:
            kept = [line for line in lines[1:] if not line.lower().startswith((b"proxy-", b"connection:"))]
            origin.sendall(b" ".join((method, path.encode(), version)) + b"\r\n" + b"".join(kept) + b"\r\n")
            while received := origin.recv(1 << 16):
                self.wfile.write(received)


class Proxy(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients and origins that close the connection."""


@contextmanager
def proxy(port: int) -> Iterator[None]:
    server = Proxy(("127.0.0.1", port), Relay)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class State(NamedTuple):
    """A crawl: status and retries by URL, and the URLs in the index."""

    pages: dict[str, tuple[CrawlStatus, int]]
    indexed: set[str]

    def of(self, hosts: frozenset[str]) -> dict[str, tuple[CrawlStatus, bool]]:
        """Return status and presence in the index of the pages of some hosts."""
        return {url: (status, url in self.indexed) for url, (status, _) in self.pages.items() if host_of(url) in hosts}

    def retries_of(self, hosts: frozenset[str]) -> dict[str, int]:
        """Return the retries of the pages of some hosts."""
        return {url: retries for url, (_, retries) in self.pages.items() if host_of(url) in hosts}


def state_of(conf: Configuration) -> State:
    """Return the present state of a crawl."""
    found = rows.pages(conf, {WebPage.status, WebPage.retries_since_fetch})
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    keys = {reverse_url(url): url for url in found}
    return State(
        {url: (CrawlStatus(page.status), page.retries_since_fetch) for url, page in found.items()},
        {keys[key] for key in writer.find_documents([*keys])},
    )


class Rehearsal:
    """Thirty days of a crawl that starts with the recorded table.

    Args:
        recording: The recording.
        folder: A folder for table and index.
        days: The simulated day, in a list of one.
        work_days: Days on which the jobs run.
        fails: Whether there are failures on our side.
        stops: Whether a day's jobs stop after one that fails.
    """

    def __init__(
        self,
        recording: Path,
        folder: Path,
        days: list[int],
        work_days: Sequence[int],
        *,
        fails: bool,
        stops: bool = False,
    ) -> None:
        self.folder, self.work_days, self._days, self._fails = folder, work_days, days, fails
        self._log = io.StringIO()
        folder.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as unused:
            self._proxy_port = unused.getsockname()[1]
        overrides = {
            "storage.data.store": f"embedded:{folder / 'crawldata'}",
            "storage.embedded.map.size": MAP_SIZE,
            "http.dns.timeout": "0.2",
            "http.timeout": "300",
            "http.robots.503.defer.visits.delay": "10",  # of a.interop.test:1, whose server the proxy cannot reach
            "parser.timeout": "-1",
            "http.proxy.host": "127.0.0.1",
            "http.proxy.port": str(self._proxy_port),
            "http.proxy.exception.list": ",".join(sorted(HOSTS - PROXIED)),
            "http.filter.ipaddress.exclude": "sitelocal,linklocal",  # the loopback is this test's outside world
        }
        self.conf = Configuration.load(recording / "conf", overrides)
        self.conf.set("plugin.includes", f"{self.conf.get_trimmed('plugin.includes')}|indexer-embedded")
        self._addresses = dict.fromkeys(HOSTS, SITE) | dict.fromkeys(GONE, NOWHERE)
        if fails:
            self._addresses |= dict.fromkeys(INSIDE, PRIVATE)
        self._days[0] = 0
        recorded.load(self.conf, recording / "dumps" / "round4-updatedb.jsonl.gz")
        assert not open_store(self.conf, DerivedRow).exists()  # Nutch 2 has none
        index(self.conf, "-all")  # as Nutch 2 had filled its Solr
        self.before = state_of(self.conf)
        self.operator = Operator(self.conf, self._read_messages, stops=stops)

    def run(self) -> State:
        """Run thirty days; return the state at the end."""
        with ExitStack() as stack:
            relay, dns = stack.enter_context(ExitStack()), stack.enter_context(ExitStack())
            relay.enter_context(proxy(self._proxy_port))
            dns_port = self._serve_names(dns, 0)
            self.conf.set("http.dns.servers", f"127.0.0.1:{dns_port}")
            is_proxy_dead = is_dns_away = False
            for day in self.work_days:
                self._days[0] = day
                if self._fails and (day in PROXY_DEAD) != is_proxy_dead:
                    is_proxy_dead = not is_proxy_dead
                    relay.close() if is_proxy_dead else relay.enter_context(proxy(self._proxy_port))
                if self._fails and (day in DNS_AWAY) != is_dns_away:
                    is_dns_away = not is_dns_away
                    dns.close() if is_dns_away else self._serve_names(dns, dns_port)
                with contextlib.redirect_stderr(self._log):
                    self.operator.run_day(day)
        return state_of(self.conf)

    def _read_messages(self) -> str:
        """Return what was written to standard error since the last call."""
        text = self._log.getvalue()
        self._log.seek(0)
        self._log.truncate()
        return text

    def days_that_name(self, text: str) -> set[int]:
        """Return the days whose messages contain a text."""
        return {day for day in self.work_days if text in self.operator.said[day]}

    def _serve_names(self, stack: ExitStack, port: int) -> int:
        server = stack.enter_context(name_server(port=port))
        server.addresses = self._addresses
        return int(server.address.rpartition(":")[2])


def simulate_days(recording: Path, patch: pytest.MonkeyPatch) -> list[int]:
    """Return the simulated day, in a list of one. The time goes on from the recording, whenever this test runs."""
    simulated, now = [0], time.time
    started = now()
    first = recorded.recorded_start(recording, "r4 updatedb") / 1000 + (30 - ALL_DUE) * DAY + 3_600
    patch.setattr(time, "time", lambda: first + simulated[0] * DAY + now() - started)
    return simulated


@pytest.mark.parametrize(
    ("work_days", "stops"),
    [(FEW_DAYS, False), (ALL_DAYS, False), (ALL_DAYS, True)],
    ids=["few-days", "jobs-continue", "jobs-stop"],
)
def test_table_of_nutch_survives_thirty_days_of_local_failures(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work_days: Sequence[int], stops: bool
) -> None:
    days = simulate_days(recording, monkeypatch)
    (tmp_path / "quiet").mkdir()
    with recorded_site(recording, tmp_path / "quiet", SITE):
        undisturbed = Rehearsal(recording, tmp_path / "undisturbed", days, work_days, fails=False)
        quiet = undisturbed.run()
    with recorded_site(recording, tmp_path, SITE):
        crawl = Rehearsal(recording, tmp_path / "crawl", days, work_days, fails=True, stops=stops)
        before, after = crawl.before, crawl.run()

    # only the server that is gone has lost its pages
    assert len(before.of(GONE)) == 16
    assert {*after.of(GONE).values()} == {(CrawlStatus.GONE, False)}
    assert after.of(INSIDE) == before.of(INSIDE)
    assert after.retries_of(INSIDE) == before.retries_of(INSIDE)
    assert {url: found for url, found in after.of(PROXIED).items() if found != quiet.of(PROXIED).get(url)} == {}
    rest = HOSTS - PROXIED - INSIDE - GONE
    assert {url: found for url, found in after.of(rest).items() if found != quiet.of(rest).get(url)} == {}
    lost = before.indexed - after.indexed
    assert lost == before.indexed - quiet.indexed
    assert len(after.indexed - before.of(GONE).keys()) > 200

    # each day's jobs have said what was wrong; some pages of the site fail on any day
    due = {day for day in work_days if day >= ALL_DUE}
    assert LocalFailuresError.exit_code in crawl.operator.codes[ALL_DUE]
    if stops:
        return
    for name, expected in {
        "http.filter.ipaddress.exclude": due - {*DNS_AWAY},
        "http.proxy.host": due & {*PROXY_DEAD},
        "http.dns.servers": {*DNS_AWAY},
    }.items():
        assert expected <= crawl.days_that_name(name), name
        assert crawl.days_that_name(name) - undisturbed.days_that_name(name) - {*PROXY_DEAD} <= expected, name
