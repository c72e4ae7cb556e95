"""What a parser of a binary format puts together, the errors that it raises, and the class they all share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from nutch2py.conf import Configuration
from nutch2py.contracts import Outlink, Parse, Parser
from nutch2py.parser.link_extractor import extract_links
from nutch2py.record import Field
from nutch2py.url.parts import resolve
from nutch2py.webpage import ParseStatusCode, WebPage

# line feed and tab are text; other control characters, NUL and what Unicode calls no character are not
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_MAX_TEXT = 20_000_000  # characters: the text of a library of 40 books; what comes after is left out
_MAX_METADATA = 10_000  # characters of one value
_MOST_METADATA = 1_000_000  # characters of all names and values
_MAX_ANCHOR = 1000  # characters


class Unreadable(Exception):
    """The content is not what it should be: broken, cut off, or of another format. Says what was found."""


class Encrypted(Exception):
    """The content needs a password."""


class Unsupported(Exception):
    """The content is of a format that is not read here. Names it."""


class LimitExceeded(Exception):
    """Unpacked, the content is more than a property allows. Names the property."""


def clean_text(text: str) -> str:
    r"""Return a text with single spaces, without empty lines and without characters that are no text.

    >>> clean_text(" a\t b \n\n  c\x00 ")
    'a b\nc'
    """
    lines = (" ".join(line.split()) for line in _NO_TEXT.sub("", text.replace("\r", "\n")).split("\n"))
    return "\n".join(line for line in lines if line)


class Document:
    """What was found in a document so far. ``base``: the URL against which links are resolved, "" for none.

    ``metadata`` is named as Tika names it (``dc:creator``, ``dcterms:created``, ``xmpTPg:NPages`` …).
    """

    def __init__(self, base: str = "") -> None:
        self.base = base
        self.title = ""
        self.metadata: dict[str, str] = {}
        self.outlinks: list[Outlink] = []
        self._text: list[str] = []
        self._length = 0
        self._described = 0

    def add(self, text: str) -> None:
        """Add text that stands on a line of its own; beyond 20 million characters nothing is added."""
        if text and self._length < _MAX_TEXT:
            text = text[: _MAX_TEXT - self._length]
            self._text.append(text)
            self._length += len(text) + 1

    def link(self, target: str, anchor: str = "") -> None:
        """Add a link; a target that is no URL is passed over."""
        target = target.strip()
        if not target or target.startswith("#"):
            return
        try:
            url = resolve(self.base, target) if self.base else target
        except ValueError:
            return
        self.outlinks.append(Outlink(url, clean_text(anchor).replace("\n", " ")))

    def describe(self, name: str, value: object) -> None:
        """Set a metadata entry unless the value is empty; ``title`` sets the title.

        Of a value 10,000 characters are kept, and what is more than a million in all is left out.
        """
        if value is None or self._described >= _MOST_METADATA:
            return
        text = clean_text(str(value)[: 2 * _MAX_METADATA])[:_MAX_METADATA]
        if not text:
            return
        self._described += len(name) + len(text)
        if name in ("title", "dc:title"):
            self.title = self.title or text.replace("\n", " ")
        else:
            self.metadata[name] = text

    def include(self, name: str, parse: Parse) -> None:
        """Add what was made of a document inside this one: its name, title, text and links."""
        self.add(name)
        if parse.title and parse.title not in parse.text[:1000]:
            self.add(parse.title)
        self.add(parse.text)
        self.outlinks += parse.outlinks

    @property
    def full(self) -> bool:
        """Whether nothing more is added to the text."""
        return self._length >= _MAX_TEXT

    @property
    def room(self) -> int:
        """How many characters of text can still be added."""
        return max(0, _MAX_TEXT - self._length)

    @property
    def length(self) -> int:
        """How many characters of text were added."""
        return self._length

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
    """Base of the parsers here: a subclass says what it claims and reads bytes into a :class:`Document`.

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

    def read(self, content: bytes, document: Document, page: WebPage) -> None:
        """Read ``content`` into ``document``; raise one of the errors of this module when that cannot be done."""
        raise TypeError(f"{type(self).__name__} has no read")

    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content``."""
        content = page.content or b""
        if not content:
            return failure(ParseStatusCode.MISSING_CONTENT, "no content")
        document = Document(page.base_url or url)
        try:
            self.read(content, document, page)
        except Unreadable as error:
            return failure(ParseStatusCode.INVALID_FORMAT, f"{type(self).__name__}: {error}")
        except Encrypted as error:
            return failure(ParseStatusCode.EXCEPTION, f"{type(self).__name__}: encrypted: {error}")
        except (LimitExceeded, Unsupported) as error:
            return failure(ParseStatusCode.EXCEPTION, f"{type(self).__name__}: {error}")
        except ImportError as error:
            package = (error.name or "").partition(".")[0]
            message = f"{type(self).__name__} needs the package {package}: pip install 'nutch2py[formats]'"
            return failure(ParseStatusCode.EXCEPTION, message)
        return document.to_parse()


def failure(minor: ParseStatusCode, message: str) -> Parse:
    """Return a failed parse."""
    return Parse("", "", (), ParseStatusCode.FAILED, minor, (message,))


def whole_number(text: str, default: int = 0) -> int:
    """Return a number of at most 18 digits, else the default.

    >>> whole_number("12"), whole_number("x", 1), whole_number("9" * 5000)
    (12, 1, 0)
    """
    return int(text) if text.isdecimal() and len(text) <= 18 else default


def anchor_of(pieces: Sequence[str], start: int = 0) -> str:
    """Return the anchor of a link whose text begins at ``pieces[start]``: 1,000 characters of it at most.

    Links may lie in each other as deep as their author likes: each may cost no more than that.
    """
    found: list[str] = []
    room = _MAX_ANCHOR
    for index in range(start, min(len(pieces), start + _MAX_ANCHOR)):
        found.append(pieces[index][:room])
        room -= len(found[-1])
        if room <= 0:
            break
    return "".join(found)


def join_words(words: Iterable[str], between: str = " ") -> str:
    """Return the non-empty ones of ``words``, joined."""
    return between.join(word for word in words if word)
