"""The parser of plain text (plug-in parse-text; also part of parse-tika)."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse, Parser
from nutch2py.parser.charset.encoding_detector import EncodingDetector, store_encoding
from nutch2py.parser.charset.encoding_names import decode
from nutch2py.parser.links.text_link_extractor import extract_links
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage


class TextParser(Parser):
    """Returns a text unchanged: no title, its URLs as outlinks without anchors.

    Without a charset in the header, valid UTF-8 is read as UTF-8: most texts are, and
    ``parser.character.encoding.default`` would garble them.
    """

    content_types = r"text/.*|application/(?:json|javascript|x-sh|x-tex|x-ndjson|[^;]*\+json)"
    part_of = "parse-tika"
    fields: frozenset[RecordField] = frozenset(
        {WebPage.content, WebPage.content_type, WebPage.headers, WebPage.metadata}
    )

    def __init__(self, conf: Configuration) -> None:
        self._detector = EncodingDetector(conf)

    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content``; sets the charset in ``page.metadata``."""
        body = page.content or b""
        encoding = self._detector.choose(
            body, page.content_type, page.headers.get("Content-Type"), page.base_url or url
        )
        store_encoding(page, encoding)
        text = decode(body, encoding.name).replace("\0", "")
        return Parse(text, "", extract_links(text))
