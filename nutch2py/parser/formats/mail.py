"""E-mail (RFC 5322) and mailboxes: extracts subject, addresses, body and attachments."""

from __future__ import annotations

import re
from binascii import a2b_base64, a2b_qp
from contextlib import suppress
from email.errors import MessageError
from email.message import Message
from email.parser import BytesParser
from email.policy import Compat32
from email.utils import parsedate_to_datetime
from itertools import islice

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.charset.encoding_detector import decode_unlabeled
from nutch2py.parser.charset.encoding_names import decode, resolve_label
from nutch2py.parser.formats.document_parser import DocumentParser, ParsedDocument, UnreadableDocumentError
from nutch2py.parser.formats.embedded_documents import EmbeddedDocumentParser
from nutch2py.parser.formats.unpack_budget import unpack_budget
from nutch2py.records.webpage import WebPage

_FROM_LINE = re.compile(rb"^From \S.*\r?\n", re.MULTILINE)
_ENCODED_WORD = re.compile(r"=\?[^?\s]{1,40}\?[bBqQ]\?[^?]*\?=")
_READ_HEADERS = ("From", "To", "Cc", "Subject")
_MAX_PARTS = 1000
# nesting types: the standard library compares each line with all open boundaries, and recurses for each level
_NESTED_TYPE = re.compile(rb"^content-type:\s*(?:multipart|message)/", re.MULTILINE | re.IGNORECASE)
_MAX_DEPTH = 100
_MAX_HEADER_CHARS, _MAX_PARAMETERS_CHARS = 50_000, 4_000


class _TruncatingPolicy(Compat32):
    """Truncates headers: the standard library takes quadratic time for parameters and encoded words."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Return name and value of a header."""
        name, value = super().header_source_parse(sourcelines)
        return name, value[: _MAX_PARAMETERS_CHARS if name.lower().startswith("content-") else _MAX_HEADER_CHARS]


class MailParser(DocumentParser):
    """Reads a message or a mailbox. Of alternatives it prefers HTML to plain text."""

    content_types = "message/rfc822|application/mbox"

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._embedded_parser = EmbeddedDocumentParser(conf)
        self._parser = BytesParser(policy=_TruncatingPolicy())
        self._part_count = 0  # of the current message

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read a message or a mailbox."""
        with unpack_budget(self.conf):
            if not content.startswith(b"From "):
                self._part_count = 0
                self._read_message(self._parse_message(content), document)
                return
            starts = [match.end() for match in _FROM_LINE.finditer(content)]
            ends = [*[match.start() for match in _FROM_LINE.finditer(content)][1:], len(content)]
            for start, end in zip(starts[:_MAX_PARTS], ends, strict=False):
                self._part_count = 0
                self._read_message(self._parse_message(content[start:end]), document)

    def _parse_message(self, content: bytes) -> Message:
        if sum(1 for _ in islice(_NESTED_TYPE.finditer(content), _MAX_DEPTH)) == _MAX_DEPTH:
            raise UnreadableDocumentError(f"{_MAX_DEPTH} or more nested messages")
        return self._parser.parsebytes(content)

    def _read_message(self, message: Message, document: ParsedDocument, *, inner: bool = False) -> None:
        """Read a message; ``inner``: whether it is embedded in another one, which then sets title and author."""
        found = [(name, decode_header_words(message.get(name))) for name in _READ_HEADERS]
        if not message.keys() and not isinstance(message.get_payload(), str):
            raise UnreadableDocumentError("no message")
        for name, value in found:
            document.add_text(value)
            label = {"Subject": "title", "From": "dc:creator"}.get(name, f"Message-{name}")
            if not inner:
                document.set_metadata(label, value)
        with suppress(TypeError, ValueError, AttributeError, OverflowError):
            if not inner:
                document.set_metadata("dcterms:created", parsedate_to_datetime(message["Date"]).isoformat())
        self._read_part(message, document)

    def _read_part(self, part: Message, document: ParsedDocument) -> None:
        """Read a part and its children; of alternatives the last one that a mail client would show."""
        if not part.is_multipart():
            self._read_leaf(part, document)
            return
        # only of multipart parts: get_payload fails on text in a charset whose name contains NUL
        found = part.get_payload()
        kind, parts = part.get_content_type(), [each for each in found if isinstance(each, Message)]
        if kind == "message/rfc822":
            whole = _decode_embedded_message(part)
            if whole is not None:
                self._embedded_parser.parse_into(document, decode_header_words(part.get_filename()), whole, kind)
                return
            for each in parts[:1]:
                self._read_message(each, document, inner=True)
        elif kind == "multipart/alternative":
            self._read_alternatives(parts, document)
        else:
            for each in parts:
                self._read_part(each, document)

    def _read_alternatives(self, parts: list[Message], document: ParsedDocument) -> None:
        """Read attachments and the HTML body; another body if that one has no text."""
        bodies = [part for part in parts if _is_body(part)]
        bodies.sort(key=lambda part: part.get_content_type() != "text/plain")  # otherwise in order, best last
        for part in parts:
            if not _is_body(part):
                self._read_part(part, document)
        before = document.text_length
        while bodies and document.text_length == before:
            self._read_part(bodies.pop(), document)

    def _read_leaf(self, part: Message, document: ParsedDocument) -> None:
        self._part_count += 1
        data = part.get_payload(decode=True)
        if self._part_count > _MAX_PARTS or not isinstance(data, bytes):
            return
        name, kind = decode_header_words(part.get_filename()), part.get_content_type()
        if name or kind not in ("text/plain", "text/html"):
            self._embedded_parser.parse_into(document, name, data, kind)
        elif kind == "text/plain":
            document.add_text(self._decode_text(part, data))
        else:
            charset = _charset_of(part)
            self._embedded_parser.parse_into(
                document, "", data, f"text/html; charset={charset}" if charset else "text/html"
            )

    def _decode_text(self, part: Message, data: bytes) -> str:
        name = _charset_of(part)
        return decode_unlabeled(data) if name is None else decode(data, name)


def _is_body(part: Message) -> bool:
    """Return whether an alternative is text or HTML with its images, not an attachment or a calendar."""
    kind = part.get_content_type()
    return kind.startswith("multipart/") or (kind in ("text/plain", "text/html") and not part.get_filename())


def _decode_embedded_message(part: Message) -> bytes | None:
    """Return an embedded message encoded against RFC 2046, or None when it is not encoded."""
    within = part.get_payload(0)
    text = within.get_payload() if isinstance(within, Message) and not within.keys() else None
    encoding = str(part.get("content-transfer-encoding", "")).strip().lower()
    if encoding not in ("base64", "quoted-printable") or not isinstance(text, str):
        return None
    raw = text.encode("ascii", "surrogateescape")
    try:
        return a2b_base64(raw) if encoding == "base64" else a2b_qp(raw)
    except ValueError:
        return None


def _charset_of(part: Message) -> str | None:
    label = part.get_param("charset")
    return resolve_label(label) if isinstance(label, str) else None


def decode_header_words(value: object) -> str:
    """Return a header with its encoded words decoded; invalid ones stay.

    >>> decode_header_words("=?utf-8?q?=C3=BC?= x")
    'ü x'
    """
    from email.header import decode_header, make_header

    text = "" if value is None else str(value)
    if not _ENCODED_WORD.search(text):
        return text
    try:
        return str(make_header(decode_header(text)))
    except (LookupError, ValueError, MessageError):
        return text
