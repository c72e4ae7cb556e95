"""Parses embedded documents by their type, within one budget for the whole page."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.formats.document_parser import DocumentLimitError, ParsedDocument, failed_parse
from nutch2py.parser.formats.unpack_budget import unpack_budget
from nutch2py.parser.mime.mime_table import OCTET_STREAM
from nutch2py.parser.mime.mime_types import get_mime_resolver
from nutch2py.records.webpage import ParseStatusCode, WebPage


class EmbeddedDocumentParser:
    """Parses parts of a document by their type, with the parsers of the configuration."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._is_enabled = conf.get_bool("tika.parse.embedded", True)

    def parse_into(self, document: ParsedDocument, name: str, content: bytes, declared: str | None = None) -> None:
        """Add text and links of an embedded document; an unreadable one adds only its name.

        ``declared``: its Content-Type, with the charset where the container declares one.
        """
        if not self._is_enabled or not content:
            return
        if document.is_full:
            raise DocumentLimitError("contains more text than a page may have")
        with unpack_budget(self._conf) as budget:
            if budget.documents_left <= 0:
                raise DocumentLimitError("contains more documents than parser.unpack.max.documents")
            budget.documents_left -= 1
            if budget.depth_left <= 0:
                document.add_text(name)
                return
            budget.depth_left -= 1
            try:
                parse = self._parse(document.base, name, content, declared)
            finally:
                budget.depth_left += 1
        if parse.major == ParseStatusCode.SUCCESS:
            document.add_embedded(name, parse)
        else:
            document.add_text(name)

    def _parse(self, base: str, name: str, content: bytes, declared: str | None) -> Parse:
        from nutch2py.parser.parser_factory import get_parser_factory

        url = f"{base}#/{name}"
        kind = get_mime_resolver(self._conf).resolve(declared, f"file:///{name}", content)
        if kind == OCTET_STREAM:
            return failed_parse(ParseStatusCode.EXCEPTION, "unknown type")
        page = WebPage()
        page.base_url, page.content, page.content_type = base, content, kind
        page.headers = {"Content-Type": declared} if declared else {}
        parse = failed_parse(ParseStatusCode.EXCEPTION, f"no parser for {kind}")
        for parser in get_parser_factory(self._conf).get_parsers(kind):
            try:
                parse = parser.parse(url, page)
            except (DocumentLimitError, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - one bad part must not fail the others
                parse = failed_parse(ParseStatusCode.EXCEPTION, f"{type(error).__name__}: {error}")
            if parse.major == ParseStatusCode.SUCCESS:
                break
        return parse
