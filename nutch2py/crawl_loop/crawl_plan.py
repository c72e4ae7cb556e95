"""What somebody asked of a crawl, in the words of the command, and the properties that it comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

DEFAULT_AGENT_NAME = "nutch2py"
"""What the crawler calls itself where nobody gave it a name."""
ROUND_SECONDS = 300.0
"""How long the fetch of a round may take by politeness alone: what it found is searched after that time."""
_MIN_URLS_PER_HOST, ROUND_URLS = 20, 5000
_PREFIX_FILTER = "urlfilter-prefix"


class CrawlScope(StrEnum):
    """How far from its seeds a crawl goes."""

    HOST = "host"
    DOMAIN = "domain"
    PATH = "path"
    ANYWHERE = "anywhere"


@dataclass(frozen=True, kw_only=True)
class CrawlPlan:
    """What to crawl. ``max_depth``: links from a seed, at most; ``max_pages``: URLs fetched by this run, at most; ``max_minutes``.

    None is any number. ``seed_arguments``: URLs, or files of seeds.
    """

    seed_arguments: tuple[str, ...]
    max_depth: int | None = None
    max_pages: int | None = None
    max_minutes: int | None = None
    scope: CrawlScope = CrawlScope.HOST

    def configure(self, conf: Configuration) -> None:
        """Set the properties that the plan comes to; ConfigurationError for one that somebody else needs."""
        if not conf.get_trimmed("http.agent.name"):
            conf.set("http.agent.name", DEFAULT_AGENT_NAME)
        conf.set("generate.max.distance", -1 if self.max_depth is None else self.max_depth)
        conf.set("db.ignore.external.links", self.scope != CrawlScope.ANYWHERE)
        conf.set("db.ignore.external.links.mode", "byDomain" if self.scope == CrawlScope.DOMAIN else "byHost")
        delay = conf.get_float("fetcher.server.delay", 5.0)
        if conf.get_int("generate.max.count", -1) < 0:
            most = ROUND_SECONDS / delay if delay > 0 else ROUND_URLS
            conf.set("generate.max.count", int(min(max(most, _MIN_URLS_PER_HOST), ROUND_URLS)))

    def restrict_to_paths(self, conf: Configuration, urls: Iterable[str]) -> None:
        """With ``-stay path`` let filters refuse what lies beside the folders of these URLs."""
        if self.scope != CrawlScope.PATH:
            return
        if _PREFIX_FILTER in conf.get_trimmed("plugin.includes"):
            raise ConfigurationError(
                f"-stay path needs {_PREFIX_FILTER}, which plugin.includes has: choose another -stay"
            )
        conf.set("urlfilter.prefix.rules", "\n".join(sorted({parent_url(url) for url in urls})))
        added = [part for part in conf.get_trimmed("plugin.includes.add").split("|") if part]
        if _PREFIX_FILTER not in added:
            conf.set("plugin.includes.add", "|".join([*added, _PREFIX_FILTER]))


def parent_url(url: str) -> str:
    """Return a URL up to the last slash of its path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}/"
