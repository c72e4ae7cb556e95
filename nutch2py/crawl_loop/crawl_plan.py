"""The plan of a crawl: the options of the command, and the properties that follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

DEFAULT_AGENT_NAME = "nutch2py"
"""The agent name when none is configured."""
ROUND_SECONDS = 300.0
"""Time that politeness delays may add to the fetch of a round: its pages become searchable after that time."""
_MIN_URLS_PER_HOST, ROUND_URLS = 20, 5000
PREFIX_FILTER = "urlfilter-prefix"


class CrawlScope(StrEnum):
    """Which links a crawl follows, relative to its seeds."""

    HOST = "host"
    DOMAIN = "domain"
    PATH = "path"
    ANYWHERE = "anywhere"


@dataclass(frozen=True, kw_only=True)
class CrawlPlan:
    """Seeds and limits of a crawl. None means unlimited.

    ``seed_arguments``: URLs, or files of seeds. ``max_depth``: links from a seed. ``max_pages``: URLs fetched by this
    run. ``max_minutes``: minutes of this run.
    """

    seed_arguments: tuple[str, ...]
    max_depth: int | None = None
    max_pages: int | None = None
    max_minutes: int | None = None
    scope: CrawlScope = CrawlScope.HOST

    def configure(self, conf: Configuration) -> None:
        """Set the properties of the plan."""
        if not conf.get_trimmed("http.agent.name"):
            conf.set("http.agent.name", DEFAULT_AGENT_NAME)
        conf.set("generate.max.distance", -1 if self.max_depth is None else self.max_depth)
        conf.set("db.ignore.external.links", self.scope != CrawlScope.ANYWHERE)
        conf.set("db.ignore.external.links.mode", "byDomain" if self.scope == CrawlScope.DOMAIN else "byHost")
        delay = conf.get_float("fetcher.server.delay", 5.0)
        if conf.get_int("generate.max.count", -1) < 0:
            urls_per_host = ROUND_SECONDS / delay if delay > 0 else ROUND_URLS
            conf.set("generate.max.count", int(min(max(urls_per_host, _MIN_URLS_PER_HOST), ROUND_URLS)))

    def restrict_to_paths(self, conf: Configuration, urls: Iterable[str]) -> None:
        """With ``-stay path``, make filters reject URLs outside of the folders of these URLs."""
        if self.scope != CrawlScope.PATH:
            return
        if PREFIX_FILTER in conf.get_trimmed("plugin.includes"):
            raise ConfigurationError(
                f"-stay path needs {PREFIX_FILTER}, which plugin.includes already has: choose another -stay"
            )
        conf.set("urlfilter.prefix.rules", "\n".join(sorted({parent_url(url) for url in urls})))
        added = [part for part in conf.get_trimmed("plugin.includes.add").split("|") if part]
        if PREFIX_FILTER not in added:
            conf.set("plugin.includes.add", "|".join([*added, PREFIX_FILTER]))


def parent_url(url: str) -> str:
    """Return a URL up to the last slash of its path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}/"
