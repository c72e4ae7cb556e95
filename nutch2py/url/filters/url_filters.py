"""The enabled URL filters as one: a URL belongs to the crawl when it is not too long and every filter accepts it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from nutch2py.conf.configuration import Configuration
from nutch2py.plugins.loading import create_ordered_plugins, enabled_plugins, plugin_id_of
from nutch2py.plugins.plugin_failures import raise_plugin_error
from nutch2py.url.url_length import max_url_length

if TYPE_CHECKING:
    from nutch2py.interfaces import URLFilter

SKIPPED_LINKS_GROUP = "links_left_out"
"""The group of counters: links that no rule lets in, by the property or the plug-in that decides."""
TOO_LONG, MALFORMED, NOFOLLOW, REDIRECT, META_REFRESH = (
    "http.url.limit",
    "malformed",
    "nofollow",
    "redirect",
    "meta_refresh",
)
"""Names in that group: of URLs that are too long, are none, are nofollow, and of redirects that lead nowhere."""
_UNSAFE = re.compile(r"[^!#-;=?-\[\]_a-z~]+")  # what no URL may have in it (RFC 3986, section 2)


class URLFilters:
    """Runs the filters in the order of ``urlfilter.order``; when that is set, only the filters that it names."""

    def __init__(self, conf: Configuration) -> None:
        order = (conf.get("urlfilter.order") or "").replace(",", " ").split()
        self.filters: list[URLFilter] = create_ordered_plugins(conf, "urlfilter", "urlfilter.order")
        if order:
            named = {
                plugin.implementation
                for plugin in enabled_plugins(conf, "urlfilter").values()
                if plugin.names & set(order)
            }
            self.filters = [found for found in self.filters if type(found) in named]
        self._limit = max_url_length(conf)
        self._try_escaped = conf.get_bool("urlfilter.try.escaped", True)
        self._filter_methods = [found.filter for found in self.filters]

    def filter(self, url: str) -> str | None:
        """Return the URL, or None when it is longer than ``http.url.limit`` or a filter rejects it.

        What a filter raises is a :class:`nutch2py.plugins.plugin_failures.PluginError`.
        """
        if len(url) > self._limit:
            return None
        found: str | None = url
        try:
            for call in self._filter_methods:
                if found is None:
                    return None
                found = call(found)
        except Exception as error:  # noqa: BLE001 - named, and the page's
            raise_plugin_error(self.filters[self._filter_methods.index(call)], url, error)
        return found

    def rejecting_filter(self, url: str) -> str:
        """Return the id of the filter that rejects a URL which :meth:`filter` does, or :data:`TOO_LONG`."""
        if len(url) > self._limit:
            return TOO_LONG
        for plugin in self.filters:
            found = plugin.filter(url)
            if found is None:
                return plugin_id_of(plugin)
            url = found
        return MALFORMED  # it takes another URL, or changes its mind

    def filter_link(self, url: str) -> str | None:
        """Return what :meth:`filter` does; of a URL that is rejected as it is written, what it does of the escaped one.

        Pages write links in any letters, and browsers escape them. Nutch, whose validator takes none but ASCII, has no
        such page. Where the filters take them as they are written, row keys stay as they were.
        """
        found = self.filter(url)
        if found is not None or not self._try_escaped or not _UNSAFE.search(url):
            return found
        return self.filter(escape_url(url))


def escape_url(url: str) -> str:
    """Return a URL with what no URL may have in it escaped as UTF-8 behind its host (URL standard, section 4.4).

    >>> escaped("http://straße.de/süß und sauer?q=%41")
    'http://straße.de/s%C3%BC%C3%9F%20und%20sauer?q=%41'
    >>> escaped('http://h/{a|b}?"<c>"')
    'http://h/%7Ba%7Cb%7D?%22%3Cc%3E%22'
    """
    start = url.find("/", url.find("://") + 3) if "://" in url else -1
    return url if start < 0 else url[:start] + _UNSAFE.sub(lambda run: quote(run[0], errors="replace"), url[start:])
