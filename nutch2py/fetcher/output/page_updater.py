"""Updates rows from responses: protocol status, crawl status, headers, content, redirect target.

The codes and cells are those of Nutch 2.4 (``HttpBase.getProtocolOutput``, ``FetcherReducer``); the texts of failures
are specific to nutch2py.
"""

from __future__ import annotations

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
from nutch2py.support.clock import now_ms
from nutch2py.url.filters.url_filters import REDIRECT, URLFilters
from nutch2py.url.java_url import parse_relative, parse_url
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.url_length import MAX_LENGTH, check_length, max_url_length
from nutch2py.url.url_parts import DomainRules, choose_repr, host_of

SUCCESS = ProtocolStatus(Code.SUCCESS)
LOCAL_FAILURE = "local"
"""Second argument of the protocol status of a page that was not fetched for a reason of this machine."""
LOCAL_RETRY_PROPERTY = "fetcher.local.failure.interval"
"""Seconds until such a page is due again."""
RENDERED = "rendered"
"""First argument of the protocol status of a rendered page; the limits that it reached follow."""
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
}  # all other codes: retry
MAX_MESSAGE_LENGTH = 1000
"""Characters of a message, which may quote data from the server."""
_LOCAL_CODES = frozenset({Code.EXCEPTION, Code.FAILED, Code.PROTO_NOT_FOUND})
_TEMPORARY_REDIRECTS = frozenset({302, 303, 307})
_WITH_CONTENT = frozenset({Code.SUCCESS, Code.MOVED, Code.TEMP_MOVED})


class RedirectTarget(NamedTuple):
    """Normalized target of a redirect; ``url`` is None if it is filtered out or is the page itself."""

    url: str | None
    is_temporary: bool


def resolve_location(url: str, response: FetchResponse) -> str:
    """Return the absolute target of a redirect; the page's own URL if ``Location`` is missing."""
    location = canonical_headers(response.iter_headers()).get("Location", "")
    if not location.isascii():
        with suppress(UnicodeError):  # servers that do not escape mostly send UTF-8
            location = location.encode("latin-1").decode("utf-8")
    return str(parse_relative(parse_url(url), location))


def get_protocol_status(url: str, response: FetchResponse, max_url_length: int = MAX_LENGTH) -> ProtocolStatus:
    """Return the protocol status of a response. ``max_url_length``: of a redirect's target."""
    if response.failure is not None:
        is_unknown_scheme = response.failure.kind in (FailureKind.SCHEME, FailureKind.PROTOCOL_DISABLED)
        message = response.failure.message[:MAX_MESSAGE_LENGTH]
        return ProtocolStatus(Code.PROTO_NOT_FOUND if is_unknown_scheme else Code.EXCEPTION, (message,))
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
            check_length(target, max_url_length)
        except ValueError as error:
            return ProtocolStatus(Code.EXCEPTION, (f"malformed redirect: {error}"[:MAX_MESSAGE_LENGTH],))
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
    """Return the crawl status of a protocol status: retry for every code that is neither good nor gone."""
    try:
        return _CRAWL_STATUS.get(Code(status.code), CrawlStatus.RETRY)
    except ValueError:
        return CrawlStatus.RETRY


def local_retry_ms(conf: Configuration) -> int:
    """Return the time in ms after which a page with a local failure is due again (:data:`LOCAL_RETRY_PROPERTY`)."""
    return 1000 * max(0, conf.get_int(LOCAL_RETRY_PROPERTY, 3600))


def is_local_failure(status: ProtocolStatus | None) -> bool:
    """Return whether a stored protocol status is that of a failure of the crawler's own machine or configuration."""
    return status is not None and status.code in _LOCAL_CODES and status.args[1:] == (LOCAL_FAILURE,)


class PageUpdater:
    """Writes responses into rows; ``filtered_links`` counts redirects with a rejected target."""

    def __init__(self, conf: Configuration, filtered_links: Counter[str] | None = None) -> None:
        self._conf, self._filtered_links = conf, Counter[str]() if filtered_links is None else filtered_links
        self._domains = DomainRules.from_conf(conf)
        self._max_url_length = max_url_length(conf)
        self._normalizers = URLNormalizers(conf, "fetcher")
        self._filters = URLFilters(conf)
        self._ignore_external = conf.get_bool("db.ignore.external.links", False)
        self._store_ip = conf.get_bool("store.ip.address", False)
        self._screenshots = conf.get_trimmed("browser.screenshot", "none") != "none"
        self._store_response_time = conf.get_bool("http.store.responsetime", True)
        self._local_retry_ms = local_retry_ms(conf)

    def get_redirect(self, url: str, status: ProtocolStatus) -> RedirectTarget | None:
        """Return the redirect target of a page, or None if its status is no redirect."""
        if status.code not in (Code.MOVED, Code.TEMP_MOVED):
            return None
        is_temporary = status.code == Code.TEMP_MOVED
        try:
            target = self._normalizers.normalize(status.args[0])
            target = self._filters.filter_link(target) if target else None
            if not target or target == url:
                return RedirectTarget(None, is_temporary)
            if self._ignore_external and host_of(target) != host_of(url):
                return RedirectTarget(None, is_temporary)
        except ValueError:
            return RedirectTarget(None, is_temporary)
        return RedirectTarget(target, is_temporary)

    def mark_fetched(self, page: WebPage, status: ProtocolStatus) -> None:
        """Set status, times and the fetch mark, which every processed page gets."""
        page.status = int(get_crawl_status(status))
        page.prev_fetch_time = page.fetch_time
        page.fetch_time = now_ms()
        page.protocol_status = status
        batch = page.markers.get(Mark.GENERATE)
        if batch is not None:
            page.markers[Mark.FETCH] = batch

    def postponed_row(self, page: WebPage, status: ProtocolStatus) -> WebPage:
        """Return the changes of a page that was not fetched for a reason of this machine: the reason and the next try.

        Crawl status, retries and content stay. Without the fetch mark, no job takes the page for fetched, and
        ``fetch -resume`` requests it again.
        """
        is_new = not page.status  # of a Scrapy spider
        row = page if is_new else WebPage()
        row.protocol_status = ProtocolStatus(status.code, (*status.args[:1], LOCAL_FAILURE))
        row.fetch_time = max(page.fetch_time, now_ms() + self._local_retry_ms)
        if is_new:
            row.status = int(CrawlStatus.UNFETCHED)
        elif (batch := page.markers.get(Mark.GENERATE)) is not None:
            row.markers[Mark.GENERATE] = batch
        return row

    def apply_response(
        self,
        url: str,
        page: WebPage,
        response: FetchResponse,
        status: ProtocolStatus | None = None,
        keep_target: bool = True,
    ) -> ProtocolStatus:
        """Write a response into the row of its URL; return its protocol status.

        ``keep_target``: whether a redirect target becomes an outlink, and thus a row for a later batch.
        """
        if status is None:
            status = get_protocol_status(url, response, self._max_url_length)
        if response.ip and self._store_ip:  # also for failures: it identifies the failing server
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
        """Write the browser's results besides the content; remove those of an earlier fetch."""
        rendered = response.rendered
        if rendered is not None or self._screenshots:
            page.metadata.pop(MetadataKey.SCREENSHOT, None)
        if rendered is None:
            return
        page.base_url = rendered.url
        if page.headers.get("Content-Length") is not None:  # it was the size of the original body
            page.headers["Content-Length"] = str(rendered.document_size)
        if rendered.screenshot:
            page.metadata[MetadataKey.SCREENSHOT] = rendered.screenshot

    def _apply_redirect(self, url: str, page: WebPage, status: ProtocolStatus) -> None:
        target = self.get_redirect(url, status)
        if target is None or target.url is None:
            self._filtered_links[REDIRECT] += target is not None
            return
        page.outlinks = {target.url: ""}
        page.metadata[MetadataKey.REDIRECT_DISCOVERED] = b"y"
        page.repr_url = choose_repr(page.repr_url or url, target.url, target.is_temporary, self._domains)
