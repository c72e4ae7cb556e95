"""The enabled URL normalizers as one, for a scope.

A scope is the place in the crawl where a URL is normalized; ``urlnormalizer.order.<scope>`` and
``urlnormalizer.scope.<scope>`` give it an order and a selection of its own. ``urlnormalizer.loop.count`` repeats the
whole, at most so often, until nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nutch2py.conf import Configuration
from nutch2py.plugin_guard import blame
from nutch2py.plugins import enabled, in_order
from nutch2py.url.length import check_length, limit_of

if TYPE_CHECKING:
    from nutch2py.contracts import URLNormalizer

DEFAULT = "default"
PARTITION = "partition"
GENERATE_HOST_COUNT = "generate_host_count"
FETCHER = "fetcher"
CRAWLDB = "crawldb"
LINKDB = "linkdb"
INJECT = "inject"
OUTLINK = "outlink"
INDEXER = "indexer"
SCOPES = (DEFAULT, PARTITION, GENERATE_HOST_COUNT, FETCHER, CRAWLDB, LINKDB, INJECT, OUTLINK, INDEXER)

_REMEMBERED, _REMEMBERED_LENGTH = 16_384, 1024  # URLs, and the characters of one


class URLNormalizers:
    """Runs the normalizers of a scope in order. Results are remembered: the links of a site repeat on its pages."""

    def __init__(self, conf: Configuration, scope: str = DEFAULT) -> None:
        self.scope = scope
        self.normalizers: list[URLNormalizer] = _of_scope(conf, scope)
        self._loops = max(conf.get_int("urlnormalizer.loop.count", 1), 0)
        self._limit = limit_of(conf)
        self._remembered: dict[str, str | None] = {}

    def normalize(self, url: str) -> str | None:
        """Return the canonical URL, or None when it is malformed, too long, or a normalizer drops it."""
        try:
            return self._remembered[url]
        except KeyError:
            pass
        found = self._normalize(url)
        if len(url) > _REMEMBERED_LENGTH:
            return found
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        self._remembered[url] = found
        return found

    def _normalize(self, url: str) -> str | None:
        try:
            return self.normalize_or_raise(url)
        except ValueError:
            return None

    def normalize_or_raise(self, url: str) -> str | None:
        """Return the canonical URL or None; raise ValueError, which says why, when the URL is malformed or too long.

        What else a normalizer raises is a :class:`nutch2py.plugin_guard.PluginError`.
        """
        check_length(url, self._limit)
        for _ in range(self._loops):
            before = url
            try:
                for normalizer in self.normalizers:
                    found = normalizer.normalize(url, self.scope)
                    if found is None:
                        return None
                    url = found
            except ValueError:  # it is no URL
                raise
            except Exception as error:  # noqa: BLE001 - named, and the page's
                blame(normalizer, url, error)
            if url == before:
                break
            check_length(url, self._limit)  # where a character is escaped, up to twelve stand for it
        return url


def _of_scope(conf: Configuration, scope: str) -> list[URLNormalizer]:
    chosen = enabled(conf, "urlnormalizer")
    wanted = set((conf.get(f"urlnormalizer.scope.{scope}") or "").split())
    if wanted:
        chosen = {plugin_id: plugin for plugin_id, plugin in chosen.items() if wanted & plugin.names}
    own = f"urlnormalizer.order.{scope}"
    name = own if conf.get(own) is not None else "urlnormalizer.order"
    # a name that is not enabled is passed over without a word, as the default order names two
    return [plugin(conf) for plugin in in_order(chosen, (conf.get(name) or "").split())]
