"""The parser of HTML pages (plug-in parse-html)."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import HtmlDocument, Parse, Parser
from nutch2py.parser.charset.encoding_detector import EncodingDetector, store_encoding
from nutch2py.parser.charset.encoding_names import decode
from nutch2py.parser.html.dom import find_title, head_elements, node_text, parse_tree
from nutch2py.parser.html.head_directives import find_canonical_link, find_document_base, read_meta_tags
from nutch2py.parser.html.html_limits import HtmlLimits
from nutch2py.parser.html.main_text import (
    MAIN_TEXT_FORMS,
    MAIN_TEXT_KEY,
    extract_main_text,
    extract_markdown,
    require_trafilatura,
)
from nutch2py.parser.html.outlinks import OutlinkCollector
from nutch2py.parser.parse_filters import ParseFilters
from nutch2py.parser.robots_directives import CachingPolicy, agent_names, parse_x_robots_tag, reads_robots_header
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import ParseStatusCode, WebPage
from nutch2py.url.url_parts import parse_url

CANONICAL_KEY = "canonical"
"""Metadata entry: the canonical URL that a page declares."""
HTML_LIMITS_KEY = "parser.html.limit"
"""Metadata entry: names of the limits that a page exceeds (:mod:`nutch2py.parser.html.html_limits`)."""
CANONICAL_MODES = ("metadata", "redirect", "none")
_PERMANENT_REDIRECT_SECONDS = "5"  # seconds: a redirect with this delay counts as permanent


class HtmlParser(Parser):
    """Extracts title, text, outlinks and directives from HTML.

    The robots directive noindex leaves title and text empty; nofollow drops the links. A meta refresh gives the status
    SUCCESS/REDIRECT with target and seconds as arguments. The header X-Robots-Tag counts like the meta element.
    ``parser.html.canonical``: store the canonical link as metadata, or treat it as a redirect.
    """

    java_class = "org.apache.nutch.parse.html.HtmlParser"
    content_types = "text/html|application/xhtml+xml"
    fields: frozenset[RecordField]

    def __init__(self, conf: Configuration) -> None:
        self._detector = EncodingDetector(conf)
        self._outlink_collector = OutlinkCollector(conf)
        self._parse_filters = ParseFilters(conf)
        self._caching_policy = CachingPolicy(conf)
        self._reads_robots_header = reads_robots_header(conf)
        self._canonical_mode = conf.get_trimmed("parser.html.canonical", "metadata").lower()
        if self._canonical_mode not in CANONICAL_MODES:
            raise ConfigurationError(
                f"parser.html.canonical is {self._canonical_mode!r}: choose one of {', '.join(CANONICAL_MODES)}"
            )
        self._agent_names = agent_names(conf)
        self._limits = HtmlLimits.from_conf(conf)
        self._stores_main_text = conf.get_bool("parser.html.main.text")
        self._replaces_text = conf.get_bool("tika.boilerpipe")
        if self._stores_main_text or self._replaces_text:
            require_trafilatura("parser.html.main.text" if self._stores_main_text else "tika.boilerpipe")
        form = conf.get_trimmed("parser.html.main.text.form", MAIN_TEXT_FORMS[0]).lower()
        if form not in MAIN_TEXT_FORMS:
            raise ConfigurationError(
                f"parser.html.main.text.form is {form!r}: choose one of {', '.join(MAIN_TEXT_FORMS)}"
            )
        self._as_markdown = form == "markdown"
        self.fields = self._parse_filters.fields | {
            WebPage.base_url, WebPage.content, WebPage.content_type, WebPage.headers, WebPage.metadata
        }  # fmt: skip

    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content``; sets the charset and, on noarchive, ``caching.forbidden`` in ``page.metadata``."""
        base = page.base_url or url
        try:
            parse_url(base)
        except ValueError as error:
            return failed_parse(f"java.net.MalformedURLException: {error}")
        body = page.content or b""
        encoding = self._detector.choose(body, page.content_type, page.headers.get("Content-Type"), base)
        store_encoding(page, encoding)
        html, limits = self._limits.apply(decode(body, encoding.name))
        if limits:
            page.metadata[HTML_LIMITS_KEY] = ",".join(limits).encode()
        else:
            page.metadata.pop(HTML_LIMITS_KEY, None)
        tree = parse_tree(html, xml=page.content_type == "application/xhtml+xml" or html.startswith("<?xml"))
        head = head_elements(tree, html)
        meta = read_meta_tags(head, base, encoding.name, self._agent_names)
        robots = parse_x_robots_tag(page.headers, self._agent_names) if self._reads_robots_header else frozenset[str]()
        meta.no_index |= "noindex" in robots
        meta.no_follow |= "nofollow" in robots
        meta.no_cache |= "noarchive" in robots
        scripts = [node.text() for node in tree.css("script")] if self._parse_filters.needs_scripts else []
        outlinks, nofollow = self._outlink_collector.collect(tree, find_document_base(head, base), encoding.name)
        if meta.no_follow:
            outlinks, nofollow = [], nofollow + len(outlinks)
        title = text = main = ""
        if not meta.no_index and tree.root is not None:
            text, title = node_text(tree.root), find_title(tree)
            if self._stores_main_text or self._replaces_text:
                main = (
                    extract_markdown(html, base, len(text)) if self._as_markdown else extract_main_text(html, len(text))
                )
            if main and self._replaces_text:
                text = main
        canonical = find_canonical_link(tree, head, base)
        minor, args = int(ParseStatusCode.OK), tuple[str, ...]()
        if meta.refresh_time is not None and meta.refresh_href != base:
            minor, args = int(ParseStatusCode.REDIRECT), (meta.refresh_href or base, str(meta.refresh_time))
        elif canonical and self._canonical_mode == "redirect" and canonical != base:
            minor, args = int(ParseStatusCode.REDIRECT), (canonical, _PERMANENT_REDIRECT_SECONDS)
        parse = Parse(text, title, outlinks, ParseStatusCode.SUCCESS, minor, args, nofollow=nofollow)
        if main and self._stores_main_text:
            page.metadata[MAIN_TEXT_KEY] = main.encode("utf-8", "replace")
        else:
            page.metadata.pop(MAIN_TEXT_KEY, None)
        if canonical and self._canonical_mode != "none":
            page.metadata[CANONICAL_KEY] = canonical.encode()
        else:
            page.metadata.pop(CANONICAL_KEY, None)
        parse = self._parse_filters.filter(url, page, parse, HtmlDocument(tree, base, meta, html, scripts))
        if meta.no_cache:
            self._caching_policy.forbid(page)
        else:
            self._caching_policy.allow(page)
        return parse


def failed_parse(message: str) -> Parse:
    """Return the result of a failed parse."""
    return Parse("", "", (), ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION, (message,))
