"""Records of WARC 1.1 from exported rows: a response of each page, or a revisit of the same bytes.

The table keeps the last header of each name and the decoded body, but neither the status line nor the request. As in
``fetch -warc``, headers of the encoded body are kept as ``X-Crawler-…``.
"""

from __future__ import annotations

import re
import zlib
from base64 import b32encode
from collections.abc import Iterable, Sequence
from hashlib import sha1
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote
from uuid import uuid4

IDENTICAL_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
CRAWLER_HEADER_PREFIX = "X-Crawler-"
"""Prefix of the headers that describe the body before it was decoded."""
_ENCODING_HEADERS = frozenset({"content-encoding", "transfer-encoding"})
_MEMBER_BITS = 31  # window bits of zlib for a gzip member
_LEVEL = 6
_NO_URI = re.compile(r"[^\x21-\x7e]+")
_NO_TOKEN = re.compile(r"[\x00-\x20:\x7f]+")
_LINE_ENDS = re.compile(r"[\r\n\x00]+")


class HttpBlock(NamedTuple):
    """Head of an HTTP response, and the reason why its body is incomplete, "" when it is whole."""

    head: bytes
    truncated: str


def to_uri(url: str) -> str:
    """Return a URL in ASCII and without blanks, which no header line of a record can end.

    >>> to_uri("http://h.test/ä b")
    'http://h.test/%C3%A4%20b'
    """
    return _NO_URI.sub(lambda found: quote(found[0], safe="", errors="replace"), url)


def content_digest(content: bytes) -> str:
    """Return the digest of bytes as WARC and CDXJ have it: SHA-1 in base32."""
    return "sha1:" + b32encode(sha1(content, usedforsecurity=False).digest()).decode()


def build_http_head(status: int, headers: Iterable[tuple[str, str]], size: int, media_type: str) -> HttpBlock:
    """Return the head of a response whose stored body has ``size`` bytes.

    Args:
        status: HTTP status code.
        headers: Stored headers.
        size: Bytes of the body.
        media_type: The type of the body, used when no header names one.
    """
    lines: list[tuple[str, str]] = []
    declared, is_encoded, has_type = "", False, False
    for name, value in headers:
        lower = name.lower()
        if lower == "content-length":
            declared = value.strip()
            continue
        has_type = has_type or lower == "content-type"
        if lower in _ENCODING_HEADERS:
            is_encoded = True
            name = CRAWLER_HEADER_PREFIX + name
        lines.append((name, value))
    if media_type and not has_type:
        lines.append(("Content-Type", media_type))
    truncated = ""
    if declared and declared != str(size):
        lines.append((f"{CRAWLER_HEADER_PREFIX}Content-Length", declared))
        if not is_encoded and re.fullmatch("[0-9]{1,15}", declared) and int(declared) > size:
            truncated = "length" if size else "unspecified"
    if declared or is_encoded:
        lines.append(("Content-Length", str(size)))
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    head = f"HTTP/1.1 {status} {phrase}\r\n" + "".join(
        f"{clean}: {_LINE_ENDS.sub(' ', value)}\r\n" for name, value in lines if (clean := _NO_TOKEN.sub("_", name))
    )
    return HttpBlock(_encode_header(head) + b"\r\n", truncated)


def _encode_header(text: str) -> bytes:
    """Return headers as bytes: the table holds them as Latin-1, which keeps every byte that a server sent."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def make_record(kind: str, headers: Sequence[tuple[str, str]], *block: bytes) -> bytes:
    """Return a record as a gzip member.

    Args:
        kind: ``WARC-Type``.
        headers: Its other headers, without those of the block.
        block: The block, in parts.
    """
    digest = sha1(usedforsecurity=False)
    for part in block:
        digest.update(part)
    lines = [
        ("WARC-Type", kind),
        ("WARC-Record-ID", f"<urn:uuid:{uuid4()}>"),
        *headers,
        ("WARC-Block-Digest", f"sha1:{b32encode(digest.digest()).decode()}"),
        ("Content-Length", str(sum(map(len, block)))),
    ]
    head = "".join(f"{name}: {value}\r\n" for name, value in lines)
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _MEMBER_BITS)
    packed = [packer.compress(f"WARC/1.1\r\n{head}\r\n".encode()), *map(packer.compress, block)]
    return b"".join([*packed, packer.compress(b"\r\n\r\n"), packer.flush()])
