"""A lenient HTTP client for responses that libcurl rejects.

These have a header line without a colon, NUL bytes, bare carriage returns, no blank line before the document, or an
unrequested transfer encoding. Nutch and browsers read such responses, but libcurl returns nothing of them. The page
is therefore requested again, with HTTP/1.0 and without proxies. Time limits, the content limit and the address filter
apply here as well.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from collections.abc import Sequence

from nutch2py.fetcher.protocols.address_filter import AddressExcludedError
from nutch2py.fetcher.protocols.fetch_response import FailureKind, FetchFailure, FetchResponse, parse_header_lines
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.fetcher.protocols.local_failures import find_local_failure
from nutch2py.fetcher.protocols.response_body import BodyDecoder, parse_content_encoding
from nutch2py.url.java_url import JavaURL, parse_url

_LINE_END = re.compile(rb"\r\n|\n|\r")
_STATUS_LINE = re.compile(rb"\S* +(\d{3})\b")
_HTML_START = re.compile(rb"<!doctype|<html", re.IGNORECASE)
_CHUNK_BYTES = 16384
_UNLIMITED = 1 << 62


class HeadersTooLongError(ValueError):
    """More or longer headers than the limits allow."""


def split_head(raw: bytes, max_lines: int = _UNLIMITED, max_bytes: int = _UNLIMITED) -> tuple[int, list[bytes], int]:
    """Split a response into status, header lines and the offset of the body.

    A line that contains the start of an HTML document ends the headers, with or without a blank line.

    Returns:
        Status (0 without a status line), header lines, and the offset of the body (-1 if the headers do not end).

    Raises:
        HeadersTooLongError: More than ``max_lines`` headers, or ``max_bytes`` including interim responses.
    """
    lines: list[bytes] = []
    status, position = 0, 0
    while position < len(raw):
        if position > max_bytes or len(lines) > max_lines:
            raise HeadersTooLongError
        end = _LINE_END.search(raw, position)
        start, stop = position, len(raw) if end is None else end.start()
        position = len(raw) if end is None else end.end()
        line = raw[start:stop]
        if not status:
            match = _STATUS_LINE.match(line)
            if match is None:
                return 0, [], 0
            status = int(match.group(1))
        elif not line:
            if status != 100:
                return status, lines, position
            status, lines = 0, []
        else:
            document = _HTML_START.search(line)
            if document is not None:
                return status, lines, start + document.start()
            lines.append(line + b"\r\n")
    return status, lines, -1


def decode_chunked(data: bytes) -> bytes:
    """Remove the chunk framing of a body, as far as it is valid."""
    chunks, position = [], 0
    while True:
        end = data.find(b"\n", position)
        size = data[position:end].partition(b";")[0].strip() if end >= 0 else b""
        try:
            length = int(size, 16)
        except ValueError:
            break
        if length <= 0:
            break
        chunks.append(data[end + 1 : end + 1 + length])
        position = end + 1 + length
        if data[position : position + 2] == b"\r\n":
            position += 2
    return b"".join(chunks)


async def _connect(http: HttpSettings, parts: JavaURL) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
    port = parts.default_port if parts.port < 0 else parts.port
    host = parts.host.strip("[]")
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in entries]
    allowed = [address for address in addresses if http.address_filter.is_allowed(address)]
    if not allowed:
        raise http.address_filter.exclusion_error(addresses[0])
    context = None
    if parts.protocol == "https":
        context = ssl.create_default_context()
        if not http.check_certificates:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(
        allowed[0], port, ssl=context, server_hostname=host if context else None
    )
    return reader, writer, allowed[0]


async def _fetch(http: HttpSettings, url: str, limit: int, headers: Sequence[str]) -> FetchResponse:
    started, parts = time.monotonic(), parse_url(url)
    reader, writer, address = await asyncio.wait_for(_connect(http, parts), http.timeout)
    try:
        port = "" if parts.port < 0 else f":{parts.port}"
        target = parts.file if parts.file.startswith("/") else "/" + parts.file
        request = [f"GET {target} HTTP/1.0", f"Host: {parts.host}{port}", *headers, "", ""]
        writer.write("\r\n".join(request).encode("utf-8"))
        raw = bytearray()
        max_bytes = http.header_limit + 2 * limit  # includes chunk framing and poor compression
        while limit < 0 or len(raw) < max_bytes:
            chunk = await asyncio.wait_for(reader.read(_CHUNK_BYTES), http.timeout)
            if not chunk:
                break
            raw += chunk
    finally:
        writer.close()
    return build_response(http, url, bytes(raw), limit, address, int((time.monotonic() - started) * 1000))


def build_response(http: HttpSettings, url: str, raw: bytes, limit: int, address: str, elapsed: int) -> FetchResponse:
    """Build the response from all bytes that a server sent."""
    try:
        status, lines, position = split_head(raw, http.header_count, http.header_limit)
    except HeadersTooLongError:
        return FetchResponse(
            url, failure=FetchFailure(FailureKind.LIMIT, f"more than {http.header_limit} bytes of headers")
        )
    if not status:
        return FetchResponse(
            url, failure=FetchFailure(FailureKind.PROTOCOL, f"bad status line {raw[:80].decode('latin-1')!r}")
        )
    if position < 0:
        return FetchResponse(url, failure=FetchFailure(FailureKind.CLOSED, "connection closed within the headers"))
    fields = {name.lower(): value for name, value in parse_header_lines(lines)}
    data = raw[position:]
    if "chunked" in fields.get("transfer-encoding", "").lower():
        data = decode_chunked(data)
    body = BodyDecoder(parse_content_encoding(fields.get("content-encoding")), limit)
    body.feed(data)
    response = FetchResponse(url, status, lines, body.content(), "length" if body.truncated else "")
    response.ip, response.elapsed_ms = (address if http.store_ip else ""), elapsed
    return response


async def fetch_leniently(http: HttpSettings, url: str, limit: int, headers: Sequence[str]) -> FetchResponse:
    """Request a URL with these header lines and parse the response leniently; never raises."""
    try:
        time_limit = http.time_limit if http.time_limit > 0 else None
        return await asyncio.wait_for(_fetch(http, url, limit, headers), time_limit)
    except TimeoutError:
        return FetchResponse(url, failure=FetchFailure(FailureKind.TIMEOUT, f"read timed out after {http.timeout:g} s"))
    except AddressExcludedError as error:
        return FetchResponse(url, failure=FetchFailure(FailureKind.ADDRESS_FILTER, str(error)))
    except (OSError, ValueError) as error:
        if (failure := find_local_failure(error)) is not None:
            return FetchResponse(url, failure=failure)
        return FetchResponse(url, failure=FetchFailure(FailureKind.CLOSED, f"{type(error).__name__}: {error}"))
