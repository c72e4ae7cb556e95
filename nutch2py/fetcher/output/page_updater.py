"""From an answer to the row: protocol status, crawl status, headers, content, redirect target.

The codes are those of Nutch 2.4 (``HttpBase.getProtocolOutput``, ``FetcherReducer``), so are the cells written; the
texts of failures are ours.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchResponse
from nutch2py.fetcher.protocols.header_names import canonical_headers
from nutch2py.parser.mime.mime_types import detect_content_type
from nutch2py.records.cells import ProtocolStatus, encode_int
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, WebPage
from nutch2py.records.webpage import ProtocolStatusCode as Code
from nutch2py.url.filters.url_filters import REDIRECT, URLFilters
from nutch2py.url.java_url import parse_relative, parse_url
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.url_parts import choose_repr, host_of

SUCCESS = ProtocolStatus(Code.SUCCESS)
RENDERED = "rendered"
"""The first argument of the status of a page that a browser rendered; the limits that it met follow."""
ROBOTS_DENIED = ProtocolStatus(Code.ROBOTS_DENIED)

_CRAWL_STATUS = {
    Code.SUCCESS: CrawlStatus.FETCHED,
    Code.MOVED: CrawlStatus.REDIR_PERM,
    Code.TEMP_MOVED: CrawlStatus.REDIR_TEMP,
    Code.NOTMODIFIED: CrawlStatus.NOTMODIFIED,
    Code.GONE: CrawlStatus.GONE,
    Code.NOTFOUND: CrawlStatus.GONE,
    Code.ACCESS_DENIED: CrawlStatus.GONE,
    Code.ROBOTS_DENIED: CrawlStatus.GONE,
}  # all others: retry
_MAX_MESSAGE_LENGTH = 1000  # characters of what went wrong; it may quote what a server sent
_TEMPORARY_REDIRECTS = frozenset({302, 303, 307})
_WITH_CONTENT = frozenset({Code.SUCCESS, Code.MOVED, Code.TEMP_MOVED})


class RedirectTarget(NamedTuple):
    """Where a page has moved to: the normalized target, None when it is filtered out or is the page itself."""

    url: str | None
    is_temporary: bool


def resolve_location(url: str, response: FetchResponse) -> str:
    """Return the absolute target of a redirect, as it was sent; the page's own URL when no target was sent."""
    location = canonical_headers(response.iter_headers()).get("Location", "")
    if not location.isascii():
        with suppress(UnicodeError):  # UTF-8 is what servers that do not escape mean
            location = location.encode("latin-1").decode("utf-8")
    return str(parse_relative(parse_url(url), location))


def get_protocol_status(url: str, response: FetchResponse) -> ProtocolStatus:
    """Return the protocol status that an answer stands for."""
    if response.failure is not None:
        unknown = response.failure.kind == FailureKind.SCHEME
        text = response.failure.message[:_MAX_MESSAGE_LENGTH]
        return ProtocolStatus(Code.PROTO_NOT_FOUND if unknown else Code.EXCEPTION, (text,))
    status = response.status
    if response.rendered is not None:
        if response.rendered.redirect_url:
            return ProtocolStatus(Code.TEMP_MOVED, (response.rendered.redirect_url,))
        return ProtocolStatus(Code.SUCCESS, (RENDERED, *response.rendered.limits_hit))
    if status == 200:
        return SUCCESS
    if 300 <= status < 400:
        try:
            target = resolve_location(url, response)
        except ValueError as error:
            return ProtocolStatus(Code.EXCEPTION, (f"malformed redirect: {error}"[:_MAX_MESSAGE_LENGTH],))
        if status == 304:
            return ProtocolStatus(Code.NOTMODIFIED, (target,))
        return ProtocolStatus(Code.TEMP_MOVED if status in _TEMPORARY_REDIRECTS else Code.MOVED, (target,))
    if status == 400:
        return ProtocolStatus(Code.GONE, (url,))
    if status == 401:
        return ProtocolStatus(Code.ACCESS_DENIED, (f"Authentication required: {url}",))
    if status == 404:
        return ProtocolStatus(Code.NOTFOUND, (url,))
    if status == 410:
        return ProtocolStatus(Code.GONE, (f"Http: {status} url={url}",))
    return ProtocolStatus(Code.EXCEPTION, (f"Http code={status}, url={url}",))


def get_crawl_status(status: ProtocolStatus) -> CrawlStatus:
    """Return what becomes of the page: retry for every code that says neither good nor gone."""
    try:
        return _CRAWL_STATUS.get(Code(status.code), CrawlStatus.RETRY)
    except ValueError:
        return CrawlStatus.RETRY


class PageUpdater:
    """Writes answers into rows. ``links``: counts the redirects whose target no rule lets in."""

    def __init__(self, conf: Configuration, filtered_links: Counter[str] | None = None) -> None:
        self._conf, self._filtered_links = conf, Counter[str]() if filtered_links is None else filtered_links
        self._normalizers = URLNormalizers(conf, "fetcher")
        self._filters = URLFilters(conf)
        self._ignore_external = conf.get_bool("db.ignore.external.links", False)
        self._store_ip = conf.get_bool("store.ip.address", False)
        self._screenshots = conf.get_trimmed("browser.screenshot", "none") != "none"
        self._store_response_time = conf.get_bool("http.store.responsetime", True)

    def get_redirect(self, url: str, status: ProtocolStatus) -> RedirectTarget | None:
        """Return where a page has moved to, None when its status is no redirect."""
        if status.code not in (Code.MOVED, Code.TEMP_MOVED):
            return None
        temporary = status.code == Code.TEMP_MOVED
        try:
            target = self._normalizers.normalize(status.args[0])
            target = self._filters.filter_link(target) if target else None
            if not target or target == url:
                return RedirectTarget(None, temporary)
            if self._ignore_external and host_of(target) != host_of(url):
                return RedirectTarget(None, temporary)
        except ValueError:
            return RedirectTarget(None, temporary)
        return RedirectTarget(target, temporary)

    def mark_fetched(self, page: WebPage, status: ProtocolStatus) -> None:
        """Set status, times and the fetch mark, which every page gets that was dealt with."""
        page.status = int(get_crawl_status(status))
        page.prev_fetch_time = page.fetch_time
        page.fetch_time = int(time.time() * 1000)
        page.protocol_status = status
        batch = page.markers.get(Mark.GENERATE)
        if batch is not None:
            page.markers[Mark.FETCH] = batch

    def apply_response(
        self,
        url: str,
        page: WebPage,
        response: FetchResponse,
        status: ProtocolStatus | None = None,
        keep_target: bool = True,
    ) -> ProtocolStatus:
        """Write an answer into the row of its URL; return its protocol status.

        ``keep_target``: whether the target of a redirect becomes an outlink, and so a row for a later batch.
        """
        if status is None:
            status = get_protocol_status(url, response)
        if response.ip and self._store_ip:  # also of an answer that was none: it tells which server does so
            page.metadata[MetadataKey.IP] = response.ip.encode("ascii", "replace")
        if response.failure is None:
            headers = canonical_headers(response.iter_headers())
            page.headers = headers
            if self._store_response_time:
                page.metadata[MetadataKey.RESPONSE_TIME] = encode_int(min(response.elapsed_ms, 0x7FFFFFFF))
            if status.code in _WITH_CONTENT:
                page.content = response.content
                page.content_type = detect_content_type(headers.get("Content-Type"), url, response.content, self._conf)
                page.base_url = url
                self._apply_rendering(page, response)
            if keep_target:
                self._apply_redirect(url, page, status)
        self.mark_fetched(page, status)
        return status

    def _apply_rendering(self, page: WebPage, response: FetchResponse) -> None:
        """Write what a browser made of an answer, besides its content; take away what an earlier one did."""
        rendered = response.rendered
        if rendered is not None or self._screenshots:
            page.metadata.pop(MetadataKey.SCREENSHOT, None)
        if rendered is None:
            return
        page.base_url = rendered.url
        if page.headers.get("Content-Length") is not None:  # it counted what was sent
            page.headers["Content-Length"] = str(rendered.document_size)
        if rendered.screenshot:
            page.metadata[MetadataKey.SCREENSHOT] = rendered.screenshot

    def _apply_redirect(self, url: str, page: WebPage, status: ProtocolStatus) -> None:
        moved = self.get_redirect(url, status)
        if moved is None or moved.url is None:
            self._filtered_links[REDIRECT] += moved is not None
            return
        page.outlinks = {moved.url: ""}
        page.metadata[MetadataKey.REDIRECT_DISCOVERED] = b"y"
        page.repr_url = choose_repr(page.repr_url or url, moved.url, moved.is_temporary)
