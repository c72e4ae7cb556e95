"""Chain of the enabled URL filters: a URL is accepted if it is not too long and every filter accepts it."""

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

SKIPPED_LINKS_GROUP = "links_skipped"
"""Counter group of skipped links, by the property or plug-in that rejects them."""
TOO_LONG, MALFORMED, NOFOLLOW, REDIRECT, META_REFRESH = (
    "http.url.limit",
    "malformed",
    "nofollow",
    "redirect",
    "meta_refresh",
)
"""Counters of that group: too long, malformed and nofollow links, and rejected targets of redirects."""
_UNSAFE = re.compile(r"[^!#-;=?-\[\]_a-z~]+")  # characters that are not allowed in a URL (RFC 3986, section 2)


class URLFilters:
    """Run the filters in the order of ``urlfilter.order``; if it is set, only the filters that it names."""

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
        """Return the URL, or None if it is longer than ``http.url.limit`` or a filter rejects it.

        Raises:
            PluginError: A filter raised an error.
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
        """Return the id of the filter that rejects a URL that :meth:`filter` rejects, or :data:`TOO_LONG`."""
        if len(url) > self._limit:
            return TOO_LONG
        for plugin in self.filters:
            found = plugin.filter(url)
            if found is None:
                return plugin_id_of(plugin)
            url = found
        return MALFORMED  # a filter is not deterministic

    def filter_link(self, url: str) -> str | None:
        """Return the result of :meth:`filter` for the URL, or for the escaped URL if the first one is rejected.

        Pages contain links with unescaped characters, which browsers escape. Nutch's validator accepts ASCII only, so
        Nutch skips such pages. If the filters accept the unescaped URL, the row key is unchanged.
        """
        found = self.filter(url)
        if found is not None or not self._try_escaped or not _UNSAFE.search(url):
            return found
        return self.filter(escape_url(url))


def escape_url(url: str) -> str:
    """Return a URL with invalid characters after the host escaped as UTF-8 (URL standard, section 4.4).

    >>> escape_url("http://straße.de/süß und sauer?q=%41")
    'http://straße.de/s%C3%BC%C3%9F%20und%20sauer?q=%41'
    >>> escape_url('http://h/{a|b}?"<c>"')
    'http://h/%7Ba%7Cb%7D?%22%3Cc%3E%22'
    """
    start = url.find("/", url.find("://") + 3) if "://" in url else -1
    return url if start < 0 else url[:start] + _UNSAFE.sub(lambda run: quote(run[0], errors="replace"), url[start:])
