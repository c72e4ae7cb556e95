"""Documents within documents: what unpacking may cost, and the parse of a part by the parser of its type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from nutch2py.conf import Configuration
from nutch2py.contracts import Parse
from nutch2py.parser.formats.parsed_document import Document, LimitExceeded, failure
from nutch2py.parser.mime import mime_types
from nutch2py.parser.mime_table import OCTET_STREAM
from nutch2py.webpage import ParseStatusCode, WebPage


@dataclass
class Budget:
    """What is left for one page and all that is packed in it, however deep.

    ``ratio``: to how many times its bytes a package may unpack, 0 for any.
    """

    bytes_left: int
    documents_left: int
    depth_left: int
    ratio: int = 0

    def take(self, size: int) -> None:
        """Account for ``size`` unpacked bytes."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise LimitExceeded("unpacks to more bytes than parser.unpack.max.bytes")


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def unpacking(conf: Configuration) -> Iterator[Budget]:
    """Give the budget of the page at hand: a new one for the page itself, the same for what is packed in it."""
    budget = _budget.get()
    if budget is not None:
        yield budget
        return
    budget = Budget(
        conf.get_int("parser.unpack.max.bytes", 100 << 20),
        conf.get_int("parser.unpack.max.documents", 1000),
        conf.get_int("parser.unpack.max.depth", 16),
        conf.get_int("parser.unpack.max.ratio", 100),
    )
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


class NestedDocuments:
    """Parses parts of a document by their type, with the parsers of the configuration."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._enabled = conf.get_bool("tika.parse.embedded", True)

    def add(self, document: Document, name: str, content: bytes, declared: str | None = None) -> None:
        """Add the text and links of a part; a part that cannot be read adds its name.

        ``declared``: its Content-Type, as a header would give it, with its charset where the container tells one.
        """
        if not self._enabled or not content:
            return
        if document.full:
            raise LimitExceeded("gives more text than a page may have")
        with unpacking(self._conf) as budget:
            if budget.documents_left <= 0:
                raise LimitExceeded("holds more documents than parser.unpack.max.documents")
            budget.documents_left -= 1
            if budget.depth_left <= 0:
                document.add(name)
                return
            budget.depth_left -= 1
            try:
                parse = self._parse(document.base, name, content, declared)
            finally:
                budget.depth_left += 1
        if parse.major == ParseStatusCode.SUCCESS:
            document.include(name, parse)
        else:
            document.add(name)

    def _parse(self, base: str, name: str, content: bytes, declared: str | None) -> Parse:
        from nutch2py.parser.parser_factory import parser_factory

        url = f"{base}#/{name}"
        kind = mime_types(self._conf).resolve(declared, f"file:///{name}", content)
        if kind == OCTET_STREAM:
            return failure(ParseStatusCode.EXCEPTION, "of no known type")
        page = WebPage()
        page.base_url, page.content, page.content_type = base, content, kind
        page.headers = {"Content-Type": declared} if declared else {}
        parse = failure(ParseStatusCode.EXCEPTION, f"no parser for {kind}")
        for parser in parser_factory(self._conf).parsers(kind):
            try:
                parse = parser.parse(url, page)
            except (LimitExceeded, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - one bad part must not cost the others
                parse = failure(ParseStatusCode.EXCEPTION, f"{type(error).__name__}: {error}")
            if parse.major == ParseStatusCode.SUCCESS:
                break
        return parse
