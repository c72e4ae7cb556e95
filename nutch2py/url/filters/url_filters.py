"""Chain of the enabled URL filters: a URL is accepted if it is not too long and every filter accepts it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from nutch2py.conf.configuration import Configuration
from nutch2py.plugins.loading import create_ordered_plugins, enabled_plugins, plugin_id_of
from nutch2py.plugins.plugin_failures import raise_plugin_error
from nutch2py.url.browser_url import as_browser_url
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
# URLs that browsers request in another form: with such characters, or with dot segments
_READ_DIFFERENTLY = re.compile(r"[^!#-;=?-\[\]_a-z~]|/\.\.?(?:[/?#]|\Z)|://[^/?#]*[%\[]|\.(?:[:/?#]|\Z)")
_FINAL_DOT = re.compile(r"(\A[a-z]+://[^/?#]*[^/?#.])\.(?=[:/?#]|\Z)")
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
        """Return the result of :meth:`filter` for the URL; if it is rejected, for the URL as browsers request it.

        Pages contain links with unescaped characters, hosts in Unicode and dot segments above the root. Nutch's
        validator rejects them, so Nutch skips such pages. If the filters accept the URL as it is, or with its path
        escaped, that is its row key; else it is the URL with the host in ASCII (``urlfilter.try.escaped``).
        """
        found = self.filter(url)
        if found is not None or not self._try_escaped or not _READ_DIFFERENTLY.search(url):
            return found
        escaped = escape_url(url)
        if escaped != url and (found := self.filter(escaped)) is not None:
            return found
        requested = as_browser_url(url)
        if requested is None:
            return None
        return self.filter(_FINAL_DOT.sub(r"\1", escape_url(requested).partition("#")[0], count=1))


def escape_url(url: str) -> str:
    """Return a URL with invalid characters after the host escaped as UTF-8 (URL standard, section 4.4).

    >>> escape_url("http://straße.de/süß und sauer?q=%41")
    'http://straße.de/s%C3%BC%C3%9F%20und%20sauer?q=%41'
    >>> escape_url('http://h/{a|b}?"<c>"')
    'http://h/%7Ba%7Cb%7D?%22%3Cc%3E%22'
    """
    start = url.find("/", url.find("://") + 3) if "://" in url else -1
    return url if start < 0 else url[:start] + _UNSAFE.sub(lambda run: quote(run[0], errors="replace"), url[start:])
