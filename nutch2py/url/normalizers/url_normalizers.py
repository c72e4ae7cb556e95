"""Chain of the enabled URL normalizers of a scope.

A scope is the step of the crawl in which a URL is normalized. ``urlnormalizer.order.<scope>`` and
``urlnormalizer.scope.<scope>`` set its order and selection. The chain is repeated until the URL is unchanged, at most
``urlnormalizer.loop.count`` times.
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
    """Run the normalizers of a scope in order. Results are cached, since the pages of a site have common links.

    Attributes:
        scope: One of :data:`SCOPES`.
        normalizers: Enabled normalizers in order.
        cache: Results by URL.
    """

    def __init__(self, conf: Configuration, scope: str = SCOPE_DEFAULT) -> None:
        self.scope = scope
        self.normalizers: list[URLNormalizer] = _scope_normalizers(conf, scope)
        self._loop_count = max(conf.get_int("urlnormalizer.loop.count", 1), 0)
        self._limit = max_url_length(conf)
        self.cache: dict[str, str | None] = {}

    def normalize(self, url: str) -> str | None:
        """Return the canonical URL, or None if it is malformed, too long, or dropped by a normalizer."""
        try:
            return self.cache[url]
        except KeyError:
            pass
        found = self.normalize_uncached(url)
        if len(url) > _MAX_CACHED_LENGTH:
            return found
        if len(self.cache) >= _CACHE_SIZE:
            self.cache.clear()
        self.cache[url] = found
        return found

    def normalize_uncached(self, url: str) -> str | None:
        """Return the result of :meth:`normalize` without using the cache."""
        try:
            return self.normalize_or_raise(url)
        except ValueError:
            return None

    def normalize_or_raise(self, url: str) -> str | None:
        """Return the canonical URL, or None if a normalizer drops it.

        Raises:
            ValueError: The URL is malformed or too long.
            PluginError: A normalizer raised any other error.
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
            except ValueError:  # a malformed URL
                raise
            except Exception as error:  # noqa: BLE001 - named, and the page's
                raise_plugin_error(normalizer, url, error)
            if url == before:
                break
            check_length(url, self._limit)  # an escaped character may have up to twelve
        return url


def _scope_normalizers(conf: Configuration, scope: str) -> list[URLNormalizer]:
    chosen = enabled_plugins(conf, "urlnormalizer")
    wanted = set((conf.get(f"urlnormalizer.scope.{scope}") or "").split())
    if wanted:
        chosen = {plugin_id: plugin for plugin_id, plugin in chosen.items() if wanted & plugin.names}
    own = f"urlnormalizer.order.{scope}"
    name = own if conf.get(own) is not None else "urlnormalizer.order"
    # names that are not enabled are ignored silently: the default order has two
    return [plugin(conf) for plugin in sort_plugins(chosen, (conf.get(name) or "").split())]
