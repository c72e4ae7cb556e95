"""The parser of HTML pages (plugin parse-html)."""

from __future__ import annotations

from typing import Any

from nutch2py.conf import Configuration
from nutch2py.contracts import HtmlDocument, Parse, Parser
from nutch2py.errors import ConfigurationError
from nutch2py.parser.charset import EncodingDetector, store_encoding
from nutch2py.parser.charset_names import decode
from nutch2py.parser.dom import head_elements, node_text, parse_tree, title_of
from nutch2py.parser.html_limits import HtmlLimits
from nutch2py.parser.main_text import MAIN_TEXT, MAIN_TEXT_FORMS, main_text, markdown, require_main_text
from nutch2py.parser.meta import canonical_link, document_base, read_meta_tags
from nutch2py.parser.outlinks import OutlinkCollector
from nutch2py.parser.parse_filters import ParseFilters
from nutch2py.parser.robots_tag import agent_names, robots_directives
from nutch2py.record import Field
from nutch2py.url.parts import parse_url
from nutch2py.webpage import MetadataKey, ParseStatusCode, WebPage

CANONICAL = "canonical"
"""Metadata entry that holds the URL under which a page wants to be known."""
LIMITS = "parser.html.limit"
"""Metadata entry that names the limits a page met (:mod:`nutch2py.parser.html_limits`)."""
CANONICAL_MODES = ("metadata", "redirect", "none")
_PERMANENT = "5"  # seconds: a redirect that takes this long counts as permanent


class HtmlParser(Parser):
    """Takes title, text, outlinks and directives from HTML.

    A robots directive noindex leaves title and text empty, nofollow leaves out the links; a meta refresh gives the
    status SUCCESS/REDIRECT with the target and the seconds as arguments. The header X-Robots-Tag counts like the meta
    element. ``parser.html.canonical``: keep the canonical link as metadata, or take it for a redirect.
    """

    java_class = "org.apache.nutch.parse.html.HtmlParser"
    content_types = "text/html|application/xhtml+xml"
    fields: frozenset[Field[Any]]

    def __init__(self, conf: Configuration) -> None:
        self._detector = EncodingDetector(conf)
        self._outlinks = OutlinkCollector(conf)
        self._filters = ParseFilters(conf)
        self._caching_policy = conf.get("parser.caching.forbidden.policy", "content").encode()
        self._canonical = conf.get_trimmed("parser.html.canonical", "metadata").lower()
        if self._canonical not in CANONICAL_MODES:
            raise ConfigurationError(
                f"parser.html.canonical is {self._canonical!r}: choose one of {', '.join(CANONICAL_MODES)}"
            )
        self._agents = agent_names(conf)
        self._limits = HtmlLimits.from_conf(conf)
        self._main_text = conf.get_bool("parser.html.main.text")
        self._boilerpipe = conf.get_bool("tika.boilerpipe")
        if self._main_text or self._boilerpipe:
            require_main_text("parser.html.main.text" if self._main_text else "tika.boilerpipe")
        form = conf.get_trimmed("parser.html.main.text.form", MAIN_TEXT_FORMS[0]).lower()
        if form not in MAIN_TEXT_FORMS:
            raise ConfigurationError(
                f"parser.html.main.text.form is {form!r}: choose one of {', '.join(MAIN_TEXT_FORMS)}"
            )
        self._as_markdown = form == "markdown"
        self.fields = self._filters.fields | {
            WebPage.base_url, WebPage.content, WebPage.content_type, WebPage.headers, WebPage.metadata
        }  # fmt: skip

    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content``; sets the charset, and ``caching.forbidden`` where asked for, in ``page.metadata``."""
        base = page.base_url or url
        try:
            parse_url(base)
        except ValueError as error:
            return failed(f"java.net.MalformedURLException: {error}")
        body = page.content or b""
        encoding = self._detector.choose(body, page.content_type, page.headers.get("Content-Type"), base)
        store_encoding(page, encoding)
        html, limits = self._limits.apply(decode(body, encoding.name))
        if limits:
            page.metadata[LIMITS] = ",".join(limits).encode()
        else:
            page.metadata.pop(LIMITS, None)
        tree = parse_tree(html, xml=page.content_type == "application/xhtml+xml" or html.startswith("<?xml"))
        head = head_elements(tree, html)
        meta = read_meta_tags(head, base, encoding.name, self._agents)
        robots = robots_directives(page.headers, self._agents)
        meta.no_index |= "noindex" in robots
        meta.no_follow |= "nofollow" in robots
        meta.no_cache |= "noarchive" in robots
        scripts = [node.text() for node in tree.css("script")] if self._filters.need_scripts else []
        outlinks, nofollow = self._outlinks.collect(tree, document_base(head, base), encoding.name)
        if meta.no_follow:
            outlinks, nofollow = [], nofollow + len(outlinks)
        title = text = main = ""
        if not meta.no_index and tree.root is not None:
            text, title = node_text(tree.root), title_of(tree)
            if self._main_text or self._boilerpipe:
                main = markdown(html, base, len(text)) if self._as_markdown else main_text(html, len(text))
            if main and self._boilerpipe:
                text = main
        canonical = canonical_link(tree, head, base)
        minor, args = int(ParseStatusCode.OK), tuple[str, ...]()
        if meta.refresh_time is not None and meta.refresh_href != base:
            minor, args = int(ParseStatusCode.REDIRECT), (meta.refresh_href or base, str(meta.refresh_time))
        elif canonical and self._canonical == "redirect" and canonical != base:
            minor, args = int(ParseStatusCode.REDIRECT), (canonical, _PERMANENT)
        parse = Parse(text, title, outlinks, ParseStatusCode.SUCCESS, minor, args, nofollow=nofollow)
        if main and self._main_text:
            page.metadata[MAIN_TEXT] = main.encode("utf-8", "replace")
        else:
            page.metadata.pop(MAIN_TEXT, None)
        if canonical and self._canonical != "none":
            page.metadata[CANONICAL] = canonical.encode()
        else:
            page.metadata.pop(CANONICAL, None)
        parse = self._filters.filter(url, page, parse, HtmlDocument(tree, base, meta, html, scripts))
        if meta.no_cache:
            page.metadata[MetadataKey.CACHING_FORBIDDEN] = self._caching_policy
        else:  # a page may change its mind; Nutch never forgets
            page.metadata.pop(MetadataKey.CACHING_FORBIDDEN, None)
        return parse


def failed(message: str) -> Parse:
    """Return the parse of a page that could not be parsed."""
    return Parse("", "", (), ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION, (message,))
