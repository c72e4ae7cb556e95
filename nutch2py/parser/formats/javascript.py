"""parse-js: extracts probable links from the strings of JavaScript, as parser of scripts and as parse filter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nutch2py.interfaces import HtmlDocument, Outlink, Parse, ParseFilter, Parser
from nutch2py.parser.charset.encoding_detector import decode_unlabeled
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.url.url_parts import parse_url, resolve_url

_MAX_TITLE = 80
# a string without white space; its quotes may be escaped; bounded to keep the time linear
_STRING = re.compile(r"""(\\{0,8}["'])([^\s"']{1,2000}?)\1""")
_PATH = re.compile(r"/?\S+[/.]\S+")
_EVENT_HANDLER = re.compile(r"\son[a-z]{3,20}\s*=", re.IGNORECASE)


class JSParseFilter(Parser, ParseFilter):
    """Treats strings that contain a slash or dot as links.

    As a parser (of ``application/javascript``) it returns the script as text. As a filter it adds the links of script
    elements, event handlers and ``javascript:`` URLs to those of the page.
    """

    java_class = "org.apache.nutch.parse.js.JSParseFilter"
    content_types = "application/javascript"
    needs_scripts = True
    fields: frozenset[RecordField] = frozenset({WebPage.content})

    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse a script; its first line is the title."""
        script = decode_unlabeled(page.content or b"").replace("\0", "")
        return Parse(script, script.partition("\n")[0][:_MAX_TITLE], [*extract_script_links(script, url)])

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse:
        """Add links, unless the page is nofollow."""
        if document.meta.no_follow:
            return parse
        pieces = list(document.scripts)
        if _EVENT_HANDLER.search(document.html) or "javascript:" in document.html.lower():
            for node in document.tree.css("*"):
                pieces += [
                    value
                    for name, value in node.attributes.items()
                    if value
                    and (name.startswith("on") or (name in ("href", "xlink:href") and "javascript:" in value.lower()))
                ]
        found = [link for piece in pieces for link in extract_script_links(piece, document.url)]
        return parse._replace(outlinks=[*found, *parse.outlinks]) if found else parse


def extract_script_links(script: str, base: str) -> Iterator[Outlink]:
    """Yield the strings of a script that look like links.

    >>> [link.url for link in extract_script_links("go('/a/b.html'); x = 'word'", "http://h.test/")]
    ['http://h.test/a/b.html']
    """
    parsed = parse_url(base)
    for match in _STRING.finditer(script):
        text = match[2]
        if not _PATH.fullmatch(text):
            continue
        try:
            target = f"http://{text}" if text.startswith("www.") else resolve_url(parsed, text)
        except ValueError:
            continue
        yield Outlink(target.replace("&amp;", "&"))
