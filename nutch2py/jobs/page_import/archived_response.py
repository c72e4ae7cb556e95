"""Turns records of WARC files into responses, as the fetcher would have received them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from nutch2py.fetcher.protocols.fetch_response import FetchResponse, parse_header_lines
from nutch2py.fetcher.protocols.response_body import BodyDecoder, parse_content_encoding
from nutch2py.jobs.export.warc_records import CRAWLER_HEADER_PREFIX
from nutch2py.jobs.page_import.warc_reader import WarcRecord
from nutch2py.support.clock import now_ms

MAX_HEAD_BYTES = 300 << 10
"""Bytes of the head of a response; libcurl receives as many."""
_STATUS_LINE = re.compile(rb"HTTP/[0-9](?:\.[0-9])? +([1-9][0-9]{2})(?![0-9])")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[^\r\n]*\r?\n")
_DECODED_HEADERS = frozenset(
    f"{CRAWLER_HEADER_PREFIX}{name}".lower() for name in ("Content-Encoding", "Transfer-Encoding", "Content-Length")
)


def parse_date(text: str) -> int:
    """Return a ``WARC-Date`` in ms since 1970, at most the current time; 0 when it is malformed."""
    try:
        time = datetime.fromisoformat(text)
        found = round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
    return min(max(0, found), now_ms())


def build_response(record: WarcRecord, content_limit: int) -> FetchResponse | str:
    """Return the response of a record of kind response, revisit or resource, or the reason why it has none.

    Args:
        record: The record.
        content_limit: ``http.content.limit``.
    """
    media_type = record.headers.get("content-type", "")
    truncated = record.headers.get("warc-truncated", "")
    if record.headers.get("warc-segment-number", "") or record.is_cut:
        truncated = truncated or "length"
    if record.kind == "resource":
        content = record.block if content_limit < 0 else record.block[:content_limit]
        lines = [f"Content-Type: {media_type}".encode("latin-1", "replace")] if media_type else []
        return FetchResponse(record.url, 200, lines, content, truncated, _address(record))
    status = _STATUS_LINE.match(record.block)
    if status is None:
        return "not_http"
    end = _HEAD_END.search(record.block, 0, MAX_HEAD_BYTES)
    if end is None and len(record.block) > MAX_HEAD_BYTES:
        return "not_http"
    head, body = (record.block, b"") if end is None else (record.block[: end.start()], record.block[end.end() :])
    status_line, *lines = head.splitlines()
    lines, encoding, is_chunked = _restore_headers(lines)
    if is_chunked:
        body = _join_chunks(body)
    decoder = BodyDecoder(parse_content_encoding(encoding), content_limit)
    decoder.feed(body)
    if decoder.truncated:
        truncated = truncated or "length"
    return FetchResponse(
        record.url, int(status[1]), lines, decoder.content(), truncated, _address(record), status_line=status_line
    )


def _address(record: WarcRecord) -> str:
    return record.headers.get("warc-ip-address", "")[:45]


def _restore_headers(lines: list[bytes]) -> tuple[list[bytes], str, bool]:
    """Return the headers as the server sent them, and the encodings that the body still has.

    Archives of decoded bodies call the headers of the encoded form ``X-Crawler-…``; ``Content-Length`` is then theirs.
    """
    fields = [*parse_header_lines(lines)]
    is_decoded = any(name.lower() in _DECODED_HEADERS for name, _ in fields)
    restored, encoding, is_chunked = [], "", False
    for name, value in fields:
        lower = name.lower()
        if lower in _DECODED_HEADERS:
            name = name[len(CRAWLER_HEADER_PREFIX) :]
        elif lower == "content-length" and is_decoded:
            continue
        elif lower == "content-encoding":
            encoding = value
        elif lower == "transfer-encoding":
            is_chunked = value.strip().lower().endswith("chunked")
        restored.append(f"{name}: {value}".encode("latin-1"))
    return restored, encoding, is_chunked


def _join_chunks(body: bytes) -> bytes:
    """Return a body without the chunked encoding. Many archives keep the header of a body that they have decoded."""
    parts: list[bytes] = []
    at = 0
    while (size := _CHUNK_SIZE.match(body, at)) is not None and (length := int(size[1], 16)):
        parts.append(body[size.end() : size.end() + length])
        at = size.end() + length
        if body[at : at + 2] == b"\r\n":
            at += 2
        elif body[at : at + 1] == b"\n":
            at += 1
        elif at < len(body):
            return b"".join(parts) if len(parts) > 1 else body  # not chunked, or the length lies
    return b"".join(parts) if parts or size is not None else body
