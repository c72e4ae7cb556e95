"""The enabled URL normalizers as one, for a scope.

A scope is the place in the crawl where a URL is normalized; ``urlnormalizer.order.<scope>`` and
``urlnormalizer.scope.<scope>`` give it an order and a selection of its own. ``urlnormalizer.loop.count`` repeats the
whole, at most so often, until nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nutch2py.conf.configuration import Configuration
from nutch2py.plugins.loading import enabled_plugins, sort_plugins
from nutch2py.plugins.plugin_failures import raise_plugin_error
from nutch2py.url.url_length import check_length, max_url_length

if TYPE_CHECKING:
    from nutch2py.interfaces import URLNormalizer

SCOPE_DEFAULT = "default"
SCOPE_PARTITION = "partition"
SCOPE_GENERATE_HOST_COUNT = "generate_host_count"
SCOPE_FETCHER = "fetcher"
SCOPE_CRAWLDB = "crawldb"
SCOPE_LINKDB = "linkdb"
SCOPE_INJECT = "inject"
SCOPE_OUTLINK = "outlink"
SCOPE_INDEXER = "indexer"
SCOPES = (
    SCOPE_DEFAULT,
    SCOPE_PARTITION,
    SCOPE_GENERATE_HOST_COUNT,
    SCOPE_FETCHER,
    SCOPE_CRAWLDB,
    SCOPE_LINKDB,
    SCOPE_INJECT,
    SCOPE_OUTLINK,
    SCOPE_INDEXER,
)

_CACHE_SIZE, _MAX_CACHED_LENGTH = 16_384, 1024  # URLs, and the characters of one


class URLNormalizers:
    """Runs the normalizers of a scope in order. Results are remembered: the links of a site repeat on its pages."""

    def __init__(self, conf: Configuration, scope: str = SCOPE_DEFAULT) -> None:
        self.scope = scope
        self.normalizers: list[URLNormalizer] = _scope_normalizers(conf, scope)
        self._loop_count = max(conf.get_int("urlnormalizer.loop.count", 1), 0)
        self._limit = max_url_length(conf)
        self._cache: dict[str, str | None] = {}

    def normalize(self, url: str) -> str | None:
        """Return the canonical URL, or None when it is malformed, too long, or a normalizer drops it."""
        try:
            return self._cache[url]
        except KeyError:
            pass
        found = self._normalize(url)
        if len(url) > _MAX_CACHED_LENGTH:
            return found
        if len(self._cache) >= _CACHE_SIZE:
            self._cache.clear()
        self._cache[url] = found
        return found

    def _normalize(self, url: str) -> str | None:
        try:
            return self.normalize_or_raise(url)
        except ValueError:
            return None

    def normalize_or_raise(self, url: str) -> str | None:
        """Return the canonical URL or None; raise ValueError, which says why, when the URL is malformed or too long.

        What else a normalizer raises is a :class:`nutch2py.plugins.plugin_failures.PluginError`.
        """
        check_length(url, self._limit)
        for _ in range(self._loop_count):
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
                raise_plugin_error(normalizer, url, error)
            if url == before:
                break
            check_length(url, self._limit)  # where a character is escaped, up to twelve stand for it
        return url


def _scope_normalizers(conf: Configuration, scope: str) -> list[URLNormalizer]:
    chosen = enabled_plugins(conf, "urlnormalizer")
    wanted = set((conf.get(f"urlnormalizer.scope.{scope}") or "").split())
    if wanted:
        chosen = {plugin_id: plugin for plugin_id, plugin in chosen.items() if wanted & plugin.names}
    own = f"urlnormalizer.order.{scope}"
    name = own if conf.get(own) is not None else "urlnormalizer.order"
    # a name that is not enabled is passed over without a word, as the default order names two
    return [plugin(conf) for plugin in sort_plugins(chosen, (conf.get(name) or "").split())]
