"""What somebody asked of a crawl, in the words of the command, and the properties that it comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from nutch2py.conf import Configuration
from nutch2py.errors import ConfigurationError

AGENT = "nutch2py"
"""What the crawler calls itself where nobody gave it a name."""
ROUND_SECONDS = 300.0
"""How long the fetch of a round may take by politeness alone: what it found is searched after that time."""
_LEAST_OF_A_HOST, ROUND_URLS = 20, 5000
_PREFIXES = "urlfilter-prefix"


class Stay(StrEnum):
    """How far from its seeds a crawl goes."""

    HOST = "host"
    DOMAIN = "domain"
    PATH = "path"
    ANYWHERE = "anywhere"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to crawl. ``depth``: links from a seed, at most; ``pages``: URLs fetched by this run, at most; ``minutes``.

    None is any number. ``words``: URLs, or files of seeds.
    """

    words: tuple[str, ...]
    depth: int | None = None
    pages: int | None = None
    minutes: int | None = None
    stay: Stay = Stay.HOST

    def configure(self, conf: Configuration) -> None:
        """Set the properties that the plan comes to; ConfigurationError for one that somebody else needs."""
        if not conf.get_trimmed("http.agent.name"):
            conf.set("http.agent.name", AGENT)
        conf.set("generate.max.distance", -1 if self.depth is None else self.depth)
        conf.set("db.ignore.external.links", self.stay != Stay.ANYWHERE)
        conf.set("db.ignore.external.links.mode", "byDomain" if self.stay == Stay.DOMAIN else "byHost")
        delay = conf.get_float("fetcher.server.delay", 5.0)
        if conf.get_int("generate.max.count", -1) < 0:
            most = ROUND_SECONDS / delay if delay > 0 else ROUND_URLS
            conf.set("generate.max.count", int(min(max(most, _LEAST_OF_A_HOST), ROUND_URLS)))

    def keep_below(self, conf: Configuration, urls: Iterable[str]) -> None:
        """With ``-stay path`` let filters refuse what lies beside the folders of these URLs."""
        if self.stay != Stay.PATH:
            return
        if _PREFIXES in conf.get_trimmed("plugin.includes"):
            raise ConfigurationError(f"-stay path needs {_PREFIXES}, which plugin.includes has: choose another -stay")
        conf.set("urlfilter.prefix.rules", "\n".join(sorted({folder_of(url) for url in urls})))
        added = [part for part in conf.get_trimmed("plugin.includes.add").split("|") if part]
        if _PREFIXES not in added:
            conf.set("plugin.includes.add", "|".join([*added, _PREFIXES]))


def folder_of(url: str) -> str:
    """Return a URL up to the last slash of its path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}/"
