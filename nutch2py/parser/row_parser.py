"""Parse fetched rows and apply the results to them (Nutch's ParseUtil and ParserJob)."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse, Parser, Signature
from nutch2py.parser.html.html_parser import HtmlParser, failed_parse
from nutch2py.parser.links.outlink_filter import OutlinkFilter
from nutch2py.parser.parser_factory import ParserFactory
from nutch2py.parser.robots_directives import CachingPolicy, agent_names, parse_x_robots_tag, reads_robots_header
from nutch2py.plugins.loading import create_named_plugin, plugin_id_of
from nutch2py.plugins.plugin_failures import PluginCall, PluginError, describe_exception
from nutch2py.records.cells import ParseStatus
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, Mark, MetadataKey, ParseStatusCode, WebPage
from nutch2py.url.filters.url_filters import META_REFRESH, NOFOLLOW
from nutch2py.url.keys import unreverse_url
from nutch2py.url.url_parts import DomainRules, choose_repr

MD5_SIGNATURE = "org.apache.nutch.crawl.MD5Signature"
PERM_REFRESH_TIME = 5  # seconds; a slower refresh is a permanent redirect (FetcherJob.PERM_REFRESH_TIME)
_TRUE = b"y"
_MAX_REASON_CHARS = 1000
_CONTENT_LENGTH = re.compile(r"[0-9]{1,10}")
_MAJOR_LABELS = {
    ParseStatusCode.NOTPARSED: "notparsed",
    ParseStatusCode.SUCCESS: "success",
    ParseStatusCode.FAILED: "failed",
}


class ParseOutcome(NamedTuple):
    """Result of parsing one row.

    Attributes:
        label: Counter of the group ParserStatus. When nothing was parsed: the reason, ``notfetched`` or ``truncated``.
        status: Parse status; None when nothing was parsed.
        removed_outlinks: URLs that were outlinks before this parse and no longer are.
        message: Line for the log; "" for none.
        failed_plugin: Id of the plug-in that failed on the page, whose row then gets only its status; "" for none.
        skipped_links: Number of skipped links by the property, or by the id of the URL filter, that rejects them.
    """

    label: str
    status: ParseStatus | None = None
    removed_outlinks: tuple[str, ...] = ()
    message: str = ""
    failed_plugin: str = ""
    skipped_links: tuple[tuple[str, int], ...] = ()

    def plugin_error(self, url: str) -> PluginError | None:
        """Return the plug-in failure behind this outcome, or None."""
        if not self.failed_plugin:
            return None
        reason = self.status.args[0] if self.status is not None and self.status.args else ""
        return PluginError(self.failed_plugin, url, reason.removeprefix(f"{self.failed_plugin}: "))

    @property
    def is_redirect(self) -> bool:
        """Whether the page redirects, and so has no text."""
        status = self.status
        return status is not None and (status.major, status.minor) == (
            ParseStatusCode.SUCCESS,
            ParseStatusCode.REDIRECT,
        )


def truncated_content_length(page: WebPage) -> int:
    """Return the Content-Length header's value when fewer bytes are stored, else 0.

    The header of a compressed response counts other bytes than the stored ones, so it is ignored (NUTCH-2548).
    """
    content = page.content
    length = (page.headers.get("Content-Length") or "").strip()
    if content is None or not _CONTENT_LENGTH.fullmatch(length) or page.headers.get("Content-Encoding"):
        return 0
    promised = int(length)
    return promised if len(content) < promised < 2**31 else 0


def describe_parse_error(error: Exception) -> str:
    """Return a one-line description of a parse failure for the row's status."""
    if isinstance(error, MemoryError):
        return "more memory than parser.child.memory.mb allows"
    if isinstance(error, RecursionError):
        return "nested too deep"
    return f"{type(error).__name__}: {error}"[:_MAX_REASON_CHARS]


class RowParser:
    """Choose parsers, run them and apply their results, in this process and without a time limit.

    Tasks use :class:`nutch2py.parser.worker.parse_worker_client.ParseWorkerClient`, which runs it in a worker process.
    The caller of :meth:`parse_row` turns a plug-in's exception into the status FAILED/EXCEPTION.

    Attributes:
        is_out_of_memory: Whether memory ran out; half-built objects may still hold it.
        last_plugin_error: Failure of a plug-in on the last page, or None.
    """

    def __init__(self, conf: Configuration) -> None:
        self.parser_factory = ParserFactory(conf)
        self.signature: Signature = create_named_plugin(
            conf, "signature", conf.get_trimmed("db.signature.class", MD5_SIGNATURE)
        )
        self.outlink_filter = OutlinkFilter(conf)
        self._domains = DomainRules.from_conf(conf)
        self._skip_truncated = conf.get_bool("parser.skip.truncated", True)
        self._agent_names = agent_names(conf)
        self._caching_policy, self._reads_robots_header = CachingPolicy(conf), reads_robots_header(conf)
        self.is_out_of_memory = False
        self.last_plugin_error: PluginError | None = None
        self.fields: frozenset[RecordField] = (
            self.parser_factory.fields
            | self.signature.fields
            | {
                WebPage.status,
                WebPage.base_url,
                WebPage.content,
                WebPage.content_type,
                WebPage.headers,
                WebPage.markers,
                WebPage.metadata,
                WebPage.outlinks,
                WebPage.signature,
            }
        )

    def parse_row(self, key: str, page: WebPage) -> ParseOutcome:
        """Parse the row ``key`` and set the fields of ``page`` that Nutch's ParserJob writes.

        Raises:
            PluginError: A plug-in failed. ``page`` then holds a partial result, which must not be written.
        """
        if page.status != CrawlStatus.FETCHED:
            return ParseOutcome("notfetched")
        url = unreverse_url(key)
        promised = truncated_content_length(page) if self._skip_truncated else 0
        if promised:
            stored = len(page.content or b"")
            line = f"{url} skipped. Content of size {promised} was truncated to {stored}"
            return ParseOutcome("truncated", message=line)
        parse = self.parse(url, page)
        if self.last_plugin_error is not None and parse.major != ParseStatusCode.SUCCESS:
            raise self.last_plugin_error
        status = ParseStatus(int(parse.major), int(parse.minor), tuple(parse.args))
        page.parse_status = status
        removed: tuple[str, ...] = ()
        skipped = Counter[str]()
        message = ""
        if status.major != ParseStatusCode.SUCCESS:
            page.markers.pop(Mark.PARSE)  # a parse of the same fetch may have set it: -resume must try the page again
            message = f"Unable to successfully parse content {url} of type {page.content_type}: {' '.join(status.args)}"
        elif status.minor == ParseStatusCode.REDIRECT:
            message = self._apply_redirect(url, page, status)
            skipped[META_REFRESH] += bool(message)
        else:
            removed = self._apply_parse(url, page, parse, skipped)
        if self.last_plugin_error is not None:
            message = f"{self.last_plugin_error}; another parser reads it"
        label = _MAJOR_LABELS.get(ParseStatusCode(status.major), "failed")
        return ParseOutcome(label, status, removed, message, skipped_links=tuple((+skipped).items()))

    def parse(self, url: str, page: WebPage) -> Parse:
        """Return the first successful parse of the content type's parsers, else the last failure. Never raises."""
        content_type = page.content_type or ""
        parsers = self.parser_factory.get_parsers(content_type)
        if not parsers:
            return failed_parse(
                "org.apache.nutch.parse.ParserNotFound: "
                f"parser not found for contentType={content_type or None} url={url}"
            )
        parse, self.last_plugin_error = failed_parse(""), None
        restriction = page.metadata.get(MetadataKey.CACHING_FORBIDDEN)
        self._caching_policy.allow(page)  # of an earlier version of the page; parser and header decide again
        for parser in parsers:
            try:
                parse = self._run_parser(parser, url, page)
            except PluginError as error:  # of a filter: no other parser's result would be complete without it
                self.last_plugin_error = error
                return failed_parse(f"{error.plugin_id}: {error.reason}")
            if parse.major == ParseStatusCode.SUCCESS:
                break
        if not isinstance(parser, HtmlParser) and self._reads_robots_header:
            parse = self._apply_robots_header(page, parse)
        if parse.major != ParseStatusCode.SUCCESS and restriction is not None:
            page.metadata[MetadataKey.CACHING_FORBIDDEN] = restriction
        return parse

    def _apply_robots_header(self, page: WebPage, parse: Parse) -> Parse:
        """Return the parse as X-Robots-Tag allows it; HtmlParser does that itself, before its filters."""
        directives = parse_x_robots_tag(page.headers, self._agent_names)
        if "noindex" in directives:
            parse = parse._replace(text="", title="")
        if "nofollow" in directives:
            parse = parse._replace(outlinks=(), nofollow=parse.nofollow + len(parse.outlinks))
        if "noarchive" in directives:
            self._caching_policy.forbid(page)
        return parse

    def _run_parser(self, parser: Parser, url: str, page: WebPage) -> Parse:
        try:
            return parser.parse(url, page)
        except PluginError:
            raise
        except Exception as error:  # noqa: BLE001 - the job continues, whatever a page causes in a parser
            self.is_out_of_memory |= isinstance(error, MemoryError)
            if not isinstance(error, MemoryError | RecursionError):  # these are caused by the page
                self.last_plugin_error = PluginError(plugin_id_of(parser), url, describe_exception(error))
            return failed_parse(f"{type(parser).__name__}: {describe_parse_error(error)}")

    def _apply_parse(self, url: str, page: WebPage, parse: Parse, skipped: Counter[str]) -> tuple[str, ...]:
        """Set the fields of a successful parse and count the skipped links; return the removed outlinks."""
        page.text, page.title = parse.text, parse.title
        for name, value in parse.metadata.items():
            page.metadata[name] = value
        self.update_signature(url, page)
        before = list(page.outlinks)
        skipped[NOFOLLOW] += parse.nofollow
        outlinks = self.outlink_filter.filter_outlinks(url, parse.outlinks, skipped)
        page.outlinks.replace(outlinks)
        mark = page.markers.get(Mark.FETCH)
        if mark is not None:
            page.markers[Mark.PARSE] = mark
        return tuple(target for target in before if target not in outlinks)

    def update_signature(self, url: str, page: WebPage) -> None:
        """Set the signature and keep the previous one.

        A parse mark equal to the fetch mark says that this fetch was parsed before: the job was killed, or the parse is
        forced. The stored signature is then this fetch's own, so ``prev_signature`` stays.
        """
        former = page.signature
        fetched = page.markers.get(Mark.FETCH)
        if former is not None and (fetched is None or page.markers.get(Mark.PARSE) != fetched):
            page.prev_signature = former
        with PluginCall(self.signature, url):
            page.signature = self.signature.calculate(url, page)

    def _apply_redirect(self, url: str, page: WebPage, status: ParseStatus) -> str:
        """Add the target of a meta refresh to the outlinks and leave other fields; return a line for the log."""
        target, seconds = status.args
        new_url = self.outlink_filter.accept_redirect(target)
        if new_url is None:
            return f"{url} redirects to {target}, which normalizers or filters reject"
        page.outlinks[new_url] = ""
        page.metadata[MetadataKey.REDIRECT_DISCOVERED] = _TRUE
        if new_url == url:
            page.repr_url = choose_repr(url, new_url, int(seconds) < PERM_REFRESH_TIME, self._domains)
        return ""
