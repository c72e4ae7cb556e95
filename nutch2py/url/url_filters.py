"""The enabled URL filters as one: a URL belongs to the crawl when it is not too long and every filter accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nutch2py.conf import Configuration
from nutch2py.plugin_guard import blame
from nutch2py.plugins import enabled, ordered
from nutch2py.url.length import limit_of

if TYPE_CHECKING:
    from nutch2py.contracts import URLFilter


class URLFilters:
    """Runs the filters in the order of ``urlfilter.order``; when that is set, only the filters that it names."""

    def __init__(self, conf: Configuration) -> None:
        order = (conf.get("urlfilter.order") or "").replace(",", " ").split()
        self.filters: list[URLFilter] = ordered(conf, "urlfilter", "urlfilter.order")
        if order:
            named = {plugin.made_of for plugin in enabled(conf, "urlfilter").values() if plugin.names & set(order)}
            self.filters = [found for found in self.filters if type(found) in named]
        self._limit = limit_of(conf)
        self._calls = [found.filter for found in self.filters]

    def filter(self, url: str) -> str | None:
        """Return the URL, or None when it is longer than ``http.url.limit`` or a filter rejects it.

        What a filter raises is a :class:`nutch2py.plugin_guard.PluginError`.
        """
        if len(url) > self._limit:
            return None
        found: str | None = url
        try:
            for call in self._calls:
                if found is None:
                    return None
                found = call(found)
        except Exception as error:  # noqa: BLE001 - named, and the page's
            blame(self.filters[self._calls.index(call)], url, error)
        return found
