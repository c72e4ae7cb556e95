"""What a parser of a binary format puts together, the errors that it raises, and the class they all share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Outlink, Parse, Parser
from nutch2py.parser.links.link_extractor import extract_links
from nutch2py.records.record import Field
from nutch2py.records.webpage import ParseStatusCode, WebPage
from nutch2py.url.url_parts import resolve_url

# line feed and tab are text; other control characters, NUL and what Unicode calls no character are not
_NON_TEXT_CHARS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_MAX_TEXT_CHARS = 20_000_000  # characters: the text of a library of 40 books; what comes after is left out
_MAX_METADATA_VALUE_CHARS = 10_000  # characters of one value
_MAX_METADATA_CHARS = 1_000_000  # characters of all names and values
_MAX_ANCHOR_CHARS = 1000  # characters


class UnreadableDocumentError(Exception):
    """The content is not what it should be: broken, cut off, or of another format. Says what was found."""


class EncryptedDocumentError(Exception):
    """The content needs a password."""


class UnsupportedDocumentError(Exception):
    """The content is of a format that is not read here. Names it."""


class DocumentLimitError(Exception):
    """Unpacked, the content is more than a property allows. Names the property."""


def clean_text(text: str) -> str:
    r"""Return a text with single spaces, without empty lines and without characters that are no text.

    >>> clean_text(" a\t b \n\n  c\x00 ")
    'a b\nc'
    """
    lines = (" ".join(line.split()) for line in _NON_TEXT_CHARS.sub("", text.replace("\r", "\n")).split("\n"))
    return "\n".join(line for line in lines if line)


class ParsedDocument:
    """What was found in a document so far. ``base``: the URL against which links are resolved, "" for none.

    ``metadata`` is named as Tika names it (``dc:creator``, ``dcterms:created``, ``xmpTPg:NPages`` …).
    """

    def __init__(self, base: str = "") -> None:
        self.base = base
        self.title = ""
        self.metadata: dict[str, str] = {}
        self.outlinks: list[Outlink] = []
        self._text: list[str] = []
        self._text_length = 0
        self._metadata_length = 0

    def add_text(self, text: str) -> None:
        """Add text that stands on a line of its own; beyond 20 million characters nothing is added."""
        if text and self._text_length < _MAX_TEXT_CHARS:
            text = text[: _MAX_TEXT_CHARS - self._text_length]
            self._text.append(text)
            self._text_length += len(text) + 1

    def add_link(self, target: str, anchor: str = "") -> None:
        """Add a link; a target that is no URL is passed over."""
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

        Of a value 10,000 characters are kept, and what is more than a million in all is left out.
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
        """Add what was made of a document inside this one: its name, title, text and links."""
        self.add_text(name)
        if parse.title and parse.title not in parse.text[:1000]:
            self.add_text(parse.title)
        self.add_text(parse.text)
        self.outlinks += parse.outlinks

    @property
    def is_full(self) -> bool:
        """Whether nothing more is added to the text."""
        return self._text_length >= _MAX_TEXT_CHARS

    @property
    def remaining_chars(self) -> int:
        """How many characters of text can still be added."""
        return max(0, _MAX_TEXT_CHARS - self._text_length)

    @property
    def text_length(self) -> int:
        """How many characters of text were added."""
        return self._text_length

    @property
    def text(self) -> str:
        """The text as it is stored."""
        return clean_text("\n".join(self._text))

    def to_parse(self) -> Parse:
        """Return the successful parse. A document without links has those that its text writes out, as in Nutch."""
        text = self.text
        links = self.outlinks or extract_links(text)
        metadata = {name: value.encode("utf-8", "replace") for name, value in self.metadata.items()}
        return Parse(text, self.title, links, ParseStatusCode.SUCCESS, metadata=metadata)


class DocumentParser(Parser):
    """Base of the parsers here: a subclass says what it claims and reads bytes into a :class:`ParsedDocument`.

    Statuses: FAILED/INVALID_FORMAT for content that is broken, FAILED/MISSING_CONTENT for none at all,
    FAILED/EXCEPTION, with the reason, for content that is encrypted or exceeds a limit.
    """

    part_of = "parse-tika"
    content_types = ""
    fields: frozenset[Field[Any]] = frozenset(
        {WebPage.content, WebPage.content_type, WebPage.headers, WebPage.base_url, WebPage.metadata}
    )

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read ``content`` into ``document``; raise one of the errors of this module when that cannot be done."""
        raise TypeError(f"{type(self).__name__} has no read")

    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content``."""
        content = page.content or b""
        if not content:
            return failed_parse(ParseStatusCode.MISSING_CONTENT, "no content")
        document = ParsedDocument(page.base_url or url)
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
    """Return a failed parse."""
    return Parse("", "", (), ParseStatusCode.FAILED, minor, (message,))


def parse_int(text: str, default: int = 0) -> int:
    """Return a number of at most 18 digits, else the default.

    >>> whole_number("12"), whole_number("x", 1), whole_number("9" * 5000)
    (12, 1, 0)
    """
    return int(text) if text.isdecimal() and len(text) <= 18 else default


def join_anchor(pieces: Sequence[str], start: int = 0) -> str:
    """Return the anchor of a link whose text begins at ``pieces[start]``: 1,000 characters of it at most.

    Links may lie in each other as deep as their author likes: each may cost no more than that.
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
    """Return the non-empty ones of ``words``, joined."""
    return separator.join(word for word in words if word)
