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
from nutch2py.parser.charset.encoding_detector import decode_unlabeled, guess_encoding
from nutch2py.parser.charset.encoding_names import decode, resolve_label
from nutch2py.parser.formats.document_parser import DocumentParser, ParsedDocument, UnreadableDocumentError
from nutch2py.parser.formats.embedded_documents import EmbeddedDocumentParser
from nutch2py.parser.formats.unpack_budget import unpack_budget
from nutch2py.records.webpage import WebPage

_FROM_LINE = re.compile(rb"^From \S.*\r?\n", re.MULTILINE)
# encoded words in a row: the white space between them is not part of the text (RFC 2047, 6.2)
_ENCODED_WORDS = re.compile(r"(?:=\?[^?\s]{1,40}\?[bBqQ]\?[^?]*\?=(?:\s+(?==\?))?)+")
_DECLARED_CHARSET = re.compile(
    rb"^content-type:[^\r\n]{0,500}(?:\r?\n[ \t][^\r\n]{0,500}){0,20}?[;\s]charset\s*=\s*\"?([\w.:-]{1,40})",
    re.MULTILINE | re.IGNORECASE,
)
_DECLARATION_BYTES = 1 << 16
_ASCII_LABELS = frozenset({"us-ascii", "ascii", "utf-8", "utf8"})  # what cannot explain bytes that are no UTF-8
_READ_HEADERS = ("From", "To", "Cc", "Subject")
_MAX_PARTS = 1000
# nesting types: the standard library compares each line with all open boundaries, and recurses for each level
_NESTED_TYPE = re.compile(rb"^content-type:\s*(?:multipart|message)/", re.MULTILINE | re.IGNORECASE)
_MAX_DEPTH = 100
_MAX_HEADER_CHARS, _MAX_PARAMETERS_CHARS = 50_000, 4_000


class _HeaderPolicy(Compat32):
    """Decodes bytes in headers, and truncates headers.

    The standard library takes quadratic time for parameters and encoded words, and replaces bytes by U+FFFD.
    """

    raw_encoding: str | None = None
    """Encoding of bytes in headers that are not UTF-8."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Return name and value of a header."""
        name, value = super().header_source_parse(sourcelines)
        return name, value[: _MAX_PARAMETERS_CHARS if name.lower().startswith("content-") else _MAX_HEADER_CHARS]

    def header_fetch_parse(self, name: str, value: str) -> str:
        """Return a header, whose bytes are UTF-8 (RFC 6532) or in the encoding of the message (older programs)."""
        if value.isascii():
            return value
        raw = value.encode("utf-8", "surrogateescape")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return decode(raw, self.raw_encoding) if self.raw_encoding else decode_unlabeled(raw)


class MailParser(DocumentParser):
    """Reads a message or a mailbox. Of alternatives it prefers HTML to plain text."""

    content_types = "message/rfc822|application/mbox"

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._embedded_parser = EmbeddedDocumentParser(conf)
        self._policy = _HeaderPolicy()
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
        policy = self._policy if content.isascii() else self._policy.clone(raw_encoding=_raw_encoding(content))  # type: ignore[call-arg] # own attribute
        return BytesParser(policy=policy).parsebytes(content)

    def _read_message(self, message: Message, document: ParsedDocument, *, inner: bool = False) -> None:
        """Read a message; ``inner``: whether it is embedded in another one, which then sets title and author."""
        found = [(name, decode_header_words(message.get(name))) for name in _READ_HEADERS]
        if not message.keys() and not isinstance(message.get_payload(), str):
            raise UnreadableDocumentError("not a mail message")
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
                self._embedded_parser.parse_into(document, _file_name_of(part), whole, kind)
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
        name, kind = _file_name_of(part), part.get_content_type()
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
    return kind.startswith("multipart/") or (kind in ("text/plain", "text/html") and not _file_name_of(part))


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


def _raw_encoding(content: bytes) -> str | None:
    """Return the encoding of a message's undeclared bytes: the first that its parts declare, else a guess."""
    declared = _DECLARED_CHARSET.search(content, 0, _DECLARATION_BYTES)
    label = declared[1].decode("ascii", "replace").lower() if declared else ""
    if label not in _ASCII_LABELS and (found := resolve_label(label)):
        return found
    guessed = guess_encoding(content)
    if guessed == "utf-8":  # of the body; the headers are something else
        guessed = guess_encoding(re.split(rb"\r?\n\r?\n", content, maxsplit=1)[0])
    return None if guessed == "utf-8" else guessed


def _charset_of(part: Message) -> str | None:
    label = part.get_param("charset")
    return resolve_label(label) if isinstance(label, str) else None


def _file_name_of(part: Message) -> str:
    """Return the file name of a part (RFC 2183, RFC 2231), "" without one."""
    found = part.get_param("filename", None, "content-disposition") or part.get_param("name", None, "content-type")
    if isinstance(found, tuple):
        label, _, value = found
        raw = value.encode("latin-1", "ignore")
        return decode(raw, resolve_label(label or "") or "utf-8").strip()
    return decode_header_words(found).strip()


def decode_header_words(value: object) -> str:
    """Return a header with its encoded words decoded by the tables of the WHATWG; invalid ones stay.

    >>> decode_header_words("=?utf-8?q?=C3=BC?= x")
    'ü x'
    """
    text = "" if value is None else str(value)
    return _ENCODED_WORDS.sub(_decode_words, text) if "=?" in text else text


def _decode_words(words: re.Match[str]) -> str:
    from email.header import decode_header

    decoded = ""
    try:
        for data, label in decode_header(words[0]):
            if isinstance(data, str) or label is None:
                return words[0]
            name = resolve_label(label.partition("*")[0])  # a language follows in RFC 2231
            if name is None:
                return words[0]
            decoded += decode(data, name)
    except (ValueError, MessageError):
        return words[0]
    return decoded
