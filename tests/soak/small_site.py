"""The web of the soak in one process: one site of a few pages, all of which are fetched again in each round."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.site.server import Reply
from tests.soak.web import Web

_CHANGING = 3
"""One of so many pages has another text at each request."""
_LINKS = 10
SMALL_PROGRAM = "tests.soak.small_rounds"
SMALL_SETTINGS: dict[str, str | int | float] = {"fetcher.threads.fetch": 10, "generate.max.count": -1}
"""Properties of a crawl of the site, in addition to those of every soak."""


class SmallSite(Web):
    """A site of ``pages`` pages on the host ``h0.example``."""

    def __init__(self, seed: int, pages: int = 60) -> None:
        super().__init__(seed, 1, ())
        self.pages = pages
        self._visits: Counter[str] = Counter()

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> SmallSite:
        """Return the site that :meth:`to_json` describes."""
        return cls(asked["seed"], asked["pages"])

    def to_json(self) -> dict[str, Any]:
        """Return what another process needs to make the same site."""
        return {"seed": self.seed, "pages": self.pages}

    def hosts_file(self) -> Iterator[str]:
        """Yield the line of the only host."""
        yield f"127.0.0.1 {self.name(0)}\n"

    def seeds(self, port: int, most: int) -> Iterator[str]:
        """Yield the URLs of all pages."""
        for number in range(min(most, self.pages)):
            yield f"{self.base(0, port)}/p/{number}.html"

    def answer(self, host: str, path: str, port: int) -> Reply:
        """Return the page of a path: with links to ten others, and for one in three a text that changes."""
        if path == "/robots.txt":
            return Reply(body=b"User-agent: *\nDisallow:\n", content_type="text/plain", keep=True)
        number = int(path.removeprefix("/p/").removesuffix(".html"))
        self._visits[path] += 1
        version = self._visits[path] if number % _CHANGING == 0 else 0
        drawn = random.Random(f"{self.seed} {number} {version}")
        text = self.text(drawn, 2_000 + 500 * (number % 40))
        links = "".join(
            f'<a href="/p/{drawn.randrange(self.pages)}.html">{self.text(drawn, 1)[3:23]}</a>' for _ in range(_LINKS)
        )
        body = f"<html><head><title>Page {number}.{version}</title></head><body><h1>{number}</h1>{text}{links}</body>"
        return Reply(body=body.encode(), keep=True)
