"""A generated web that changes between rounds, on one or several loopback hosts; it counts its requests.

Everything is drawn from a seed: pages that stay, change, lose and gain links, move, redirect, are gone, come back, fail
once, turn into meta refreshes, ask not to be indexed. ``round`` says which state is served.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.small_http import Answering, QuietServer

ROUNDS = 3
_LIVES = {
    "stays": 8, "loses links": 10, "changes": 4, "redirects later": 4, "redirects": 2, "comes back": 4, "goes": 3,
    "moves": 3, "refreshes later": 2, "noindex later": 2, "fails once": 2, "appears": 2,
}  # fmt: skip
"""Change of a page, and its share in the sum of these numbers."""
_FIRST_PORT, _PORTS = 20_000, 9_000


class Answer(NamedTuple):
    """Response of a path: ``location`` for redirects, ``links`` in the page."""

    status: int
    text: str = ""
    location: str = ""
    links: tuple[str, ...] = ()
    head: str = ""

    def body(self, path: str) -> bytes:
        links = "".join(f'<a href="{url}">to {url.rpartition("/")[2]} from {path}</a>\n' for url in self.links)
        head = f"<title>Page {path}</title>{self.head}"
        return f"<html><head>{head}</head><body><p>{self.text}</p>{links}</body></html>".encode()


class Plan:
    """The site of a seed: what each URL answers in each round, and the seeds to inject in each."""

    def __init__(self, seed: str) -> None:
        chance = random.Random(f"site {seed}")
        self.hosts = [f"127.0.0.{number + 1}" for number in range(chance.choice([1, 1, 2, 3]))]
        self.port = _FIRST_PORT + chance.randrange(_PORTS)
        self.count = chance.randint(15, 40)
        self.top = chance.choice([0, 0, self.count * 2 // 3])
        """topN of generate, 0 for all."""
        self.rows, self.bytes = chance.randint(2, 6), chance.choice([1_000, 2_000, 6_000])
        """Rows and bytes of the write buffers."""
        self._lives = [*chance.choices([*_LIVES], [*_LIVES.values()], k=self.count)]
        self._lives[0] = "stays"
        self._salt = chance.random()

    def url(self, number: int, moved: bool = False) -> str:
        return f"http://{self.hosts[number % len(self.hosts)]}:{self.port}/{'moved' if moved else 'p'}{number}"

    def seeds(self, round_number: int) -> list[str]:
        """A quarter of the pages, and a few more with each round."""
        return [self.url(number) for number in range(0, self.count, 4)] + [
            self.url(number) for number in range(1, self.count, 8)[: 2 * (round_number - 1)]
        ]

    def answer(self, path: str, round_number: int) -> Answer:
        """Return what a path answers in a round (1 …)."""
        name = path.strip("/")
        moved = name.startswith("moved")
        digits = name.removeprefix("moved" if moved else "p")
        if not digits.isdigit() or int(digits) >= self.count:
            return Answer(404)
        number = int(digits)
        life = self._lives[number]
        if moved:
            return self._page(number, round_number) if life == "moves" and round_number > 1 else Answer(404)
        target = self.url((number * 7 + 3) % self.count)
        late = round_number > 1
        if life == "redirects" or (life == "redirects later" and late):
            return Answer(301 if number % 2 else 302, location=target)
        if life == "moves" and late:
            return Answer(301, location=self.url(number, moved=True))
        if (life == "comes back" and round_number == 2) or (life == "goes" and late):
            return Answer(410 if number % 2 else 404)
        if (life == "appears" and not late) or (life == "fails once" and round_number == 2):
            return Answer(500 if life == "fails once" else 404)
        if life == "refreshes later" and late:
            return self._page(number, round_number)._replace(
                head=f'<meta http-equiv="refresh" content="0;url={target}">'
            )
        if life == "noindex later" and late:
            return self._page(number, round_number)._replace(head='<meta name="robots" content="noindex">')
        return self._page(number, round_number)

    def _page(self, number: int, round_number: int) -> Answer:
        life = self._lives[number]
        links = self._links(number, 1)
        if life in ("loses links", "noindex later", "moves") and round_number > 1:
            links = links[::round_number] + self._links(number, round_number)[:1]
        version = round_number if life in ("changes", "comes back") else 1
        words = random.Random(f"{self._salt} text {number} {version}")
        text = " ".join(f"w{words.randrange(500)}" for _ in range(words.choice([10, 60, 300])))
        return Answer(200, f"Text {number} {version}. {text}", links=tuple(dict.fromkeys(links)))

    def _links(self, number: int, version: int) -> list[str]:
        chance = random.Random(f"{self._salt} links {number} {version}")
        others = [chance.randrange(self.count) for _ in range(chance.randint(2, 7))]
        return [self.url(other) for other in ((number + 1) % self.count, *others) if other != number]


class _Handler(Answering):
    server: _Host

    def serve(self) -> None:
        site = self.server.site
        address = f"http://{self.headers.get('Host')}{self.path}"
        if self.path == "/robots.txt":
            self.answer(404, kind="text/plain")
            return
        with site.lock:
            site.asked[address] += 1
        answer = site.plan.answer(self.path, site.round)
        body = answer.body(self.path) if answer.status == 200 else b""
        self.answer(answer.status, body, location=answer.location)


class _Host(QuietServer):
    def __init__(self, address: tuple[str, int], site: Site) -> None:
        self.site = site
        super().__init__(address, _Handler)


class Site:
    """A site that is served. ``asked``: number of requests of each URL; clear it before counting a batch."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.round = plan, 1
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()


@contextmanager
def served(seed: str) -> Iterator[Site]:
    """Serve the site of a seed, at the port that the seed gives when it is replayed, too, or the next free one."""
    plan = Plan(seed)
    site = Site(plan)
    servers: list[_Host] = []
    while len(servers) < len(plan.hosts):
        try:
            servers.append(_Host((plan.hosts[len(servers)], plan.port), site))
        except OSError:
            for server in servers:
                server.server_close()
            servers.clear()
            plan.port += 1
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield site
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
