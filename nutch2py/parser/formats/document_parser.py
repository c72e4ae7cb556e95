"""Base class, result and errors of the parsers of binary formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Outlink, Parse, Parser
from nutch2py.parser.links.text_link_extractor import extract_links
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import ParseStatusCode, WebPage
from nutch2py.url.url_parts import resolve_url

# line feed and tab are text; other control characters, NUL, surrogates and non-characters are not
_NON_TEXT_CHARS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
DEFAULT_MAX_CHARACTERS = 20_000_000
"""Characters of text per document, as in about 40 books."""
_MAX_METADATA_VALUE_CHARS = 10_000  # of one value
_MAX_METADATA_CHARS = 1_000_000  # of all names and values
_MAX_ANCHOR_CHARS = 1000


class UnreadableDocumentError(Exception):
    """The content is malformed, truncated or of another format. The message describes it."""


class EncryptedDocumentError(Exception):
    """The content requires a password."""


class UnsupportedDocumentError(Exception):
    """The content is of an unsupported format, which the message names."""


class DocumentLimitError(Exception):
    """The unpacked content exceeds the limit of a property, which the message names."""


def clean_text(text: str) -> str:
    r"""Return a text with single spaces, without empty lines and without non-text characters.

    >>> clean_text(" a\t b \n\n  c\x00 ")
    'a b\nc'
    """
    lines = (" ".join(line.split()) for line in _NON_TEXT_CHARS.sub("", text.replace("\r", "\n")).split("\n"))
    return "\n".join(line for line in lines if line)


class ParsedDocument:
    """Collects the text, links and metadata of a document.

    ``base``: the URL against which links are resolved, "" for none. ``max_characters``: length of the text, the rest
    is dropped. ``metadata`` has Tika's names (``dc:creator``, ``dcterms:created``, ``xmpTPg:NPages`` …).
    """

    def __init__(self, base: str = "", max_characters: int = DEFAULT_MAX_CHARACTERS) -> None:
        self.base = base
        self._max_characters = max_characters
        self.title = ""
        self.metadata: dict[str, str] = {}
        self.outlinks: list[Outlink] = []
        self._text: list[str] = []
        self._text_length = 0
        self._metadata_length = 0

    def add_text(self, text: str) -> None:
        """Add text as a line of its own; text beyond the limit is dropped."""
        if text and self._text_length < self._max_characters:
            text = text[: self._max_characters - self._text_length]
            self._text.append(text)
            self._text_length += len(text) + 1

    def add_link(self, target: str, anchor: str = "") -> None:
        """Add a link; an invalid target is skipped."""
        target = target.strip()
        if not target or target.startswith("#"):
            return
        try:
            url = resolve_url(self.base, target) if self.base else target
        except ValueError:
            return
        self.outlinks.append(Outlink(url, clean_text(anchor).replace("\n", " ")))

    def set_metadata(self, name: str, value: object) -> None:
        """Set a metadata entry unless the value is empty; ``title`` sets the title.

        Keeps 10,000 characters of a value, and a million characters of all.
        """
        if value is None or self._metadata_length >= _MAX_METADATA_CHARS:
            return
        text = clean_text(str(value)[: 2 * _MAX_METADATA_VALUE_CHARS])[:_MAX_METADATA_VALUE_CHARS]
        if not text:
            return
        self._metadata_length += len(name) + len(text)
        if name in ("title", "dc:title"):
            self.title = self.title or text.replace("\n", " ")
        else:
            self.metadata[name] = text

    def add_embedded(self, name: str, parse: Parse) -> None:
        """Add the result of an embedded document: its name, title, text and links."""
        self.add_text(name)
        if parse.title and parse.title not in parse.text[:1000]:
            self.add_text(parse.title)
        self.add_text(parse.text)
        self.outlinks += parse.outlinks

    @property
    def is_full(self) -> bool:
        """Whether the text has reached its limit."""
        return self._text_length >= self._max_characters

    @property
    def remaining_chars(self) -> int:
        """Number of characters that can still be added."""
        return max(0, self._max_characters - self._text_length)

    @property
    def text_length(self) -> int:
        """Number of characters added so far."""
        return self._text_length

    @property
    def text(self) -> str:
        """The cleaned text."""
        return clean_text("\n".join(self._text))

    def to_parse(self) -> Parse:
        """Return the successful parse. Without links, URLs in the text become the outlinks, as in Nutch."""
        text = self.text
        links = self.outlinks or extract_links(text)
        metadata = {name: value.encode("utf-8", "replace") for name, value in self.metadata.items()}
        return Parse(text, self.title, links, ParseStatusCode.SUCCESS, metadata=metadata)


class DocumentParser(Parser):
    """Base of the parsers of binary formats: a subclass reads bytes into a :class:`ParsedDocument`.

    Statuses: FAILED/INVALID_FORMAT for malformed content, FAILED/MISSING_CONTENT for empty content, FAILED/EXCEPTION
    with the reason for content that is encrypted or exceeds a limit.
    """

    part_of = "parse-tika"
    content_types = ""
    fields: frozenset[RecordField] = frozenset(
        {WebPage.content, WebPage.content_type, WebPage.headers, WebPage.base_url, WebPage.metadata}
    )

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self._max_characters = conf.get_int("parser.document.max.characters", DEFAULT_MAX_CHARACTERS)

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read ``content`` into ``document``; raise one of this module's errors on failure."""
        raise TypeError(f"{type(self).__name__} has no read")

    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content``."""
        content = page.content or b""
        if not content:
            return failed_parse(ParseStatusCode.MISSING_CONTENT, "no content")
        document = ParsedDocument(page.base_url or url, self._max_characters)
        try:
            self.read(content, document, page)
        except UnreadableDocumentError as error:
            return failed_parse(ParseStatusCode.INVALID_FORMAT, f"{type(self).__name__}: {error}")
        except EncryptedDocumentError as error:
            return failed_parse(ParseStatusCode.EXCEPTION, f"{type(self).__name__}: encrypted: {error}")
        except (DocumentLimitError, UnsupportedDocumentError) as error:
            return failed_parse(ParseStatusCode.EXCEPTION, f"{type(self).__name__}: {error}")
        except ImportError as error:
            package = (error.name or "").partition(".")[0]
            message = f"{type(self).__name__} needs the package {package}: pip install 'nutch2py[formats]'"
            return failed_parse(ParseStatusCode.EXCEPTION, message)
        return document.to_parse()


def failed_parse(minor: ParseStatusCode, message: str) -> Parse:
    """Return the result of a failed parse."""
    return Parse("", "", (), ParseStatusCode.FAILED, minor, (message,))


def parse_int(text: str, default: int = 0) -> int:
    """Return a number of at most 18 digits, else the default.

    >>> parse_int("12"), parse_int("x", 1), parse_int("9" * 5000)
    (12, 1, 0)
    """
    return int(text) if text.isdecimal() and len(text) <= 18 else default


def join_anchor(pieces: Sequence[str], start: int = 0) -> str:
    """Return the anchor of a link whose text starts at ``pieces[start]``, at most 1,000 characters.

    Links may nest without limit, so the cost of each is bounded.
    """
    found: list[str] = []
    room = _MAX_ANCHOR_CHARS
    for index in range(start, min(len(pieces), start + _MAX_ANCHOR_CHARS)):
        found.append(pieces[index][:room])
        room -= len(found[-1])
        if room <= 0:
            break
    return "".join(found)


def join_nonempty(words: Iterable[str], separator: str = " ") -> str:
    """Return the non-empty ``words``, joined."""
    return separator.join(word for word in words if word)
