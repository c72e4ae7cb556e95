"""A second, forgiving reader for answers that libcurl refuses.

These are: a header line without a colon, NUL bytes, bare carriage returns, no blank line before the document, a
transfer encoding nobody asked for. Nutch and browsers read such answers, and libcurl gives none of what came, so the
page is asked for once more, with HTTP/1.0 and without proxies. Time limits, the limit of the content and the address
gate hold here too.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from collections.abc import Sequence

from nutch2py.fetcher.answer import Answer, Failure, FailureKind, header_fields
from nutch2py.fetcher.body import Body, encoding_of
from nutch2py.fetcher.gate import AddressExcludedError
from nutch2py.fetcher.http_settings import HttpSettings
from nutch2py.url.javaurl import JavaURL, parse_url

_EOL = re.compile(rb"\r\n|\n|\r")
_STATUS = re.compile(rb"\S* +(\d{3})\b")
_DOCUMENT = re.compile(rb"<!doctype|<html", re.IGNORECASE)
_PIECE = 16384
_UNLIMITED = 1 << 62


class HeadTooLongError(ValueError):
    """More or longer headers than the limits allow."""


def part_head(raw: bytes, most_lines: int = _UNLIMITED, most_bytes: int = _UNLIMITED) -> tuple[int, list[bytes], int]:
    """Part status (0: there is no status line), header lines and the offset of the body (-1: the headers do not end).

    A line that holds the begin of an HTML document ends the headers, with a blank line or without. HeadTooLongError
    for more than ``most_lines`` headers, or ``most_bytes`` with what interim answers take; no more is read then.
    """
    lines: list[bytes] = []
    status, position = 0, 0
    while position < len(raw):
        if position > most_bytes or len(lines) > most_lines:
            raise HeadTooLongError
        end = _EOL.search(raw, position)
        start, stop = position, len(raw) if end is None else end.start()
        position = len(raw) if end is None else end.end()
        line = raw[start:stop]
        if not status:
            match = _STATUS.match(line)
            if match is None:
                return 0, [], 0
            status = int(match.group(1))
        elif not line:
            if status != 100:
                return status, lines, position
            status, lines = 0, []
        else:
            document = _DOCUMENT.search(line)
            if document is not None:
                return status, lines, start + document.start()
            lines.append(line + b"\r\n")
    return status, lines, -1


def unchunk(data: bytes) -> bytes:
    """Take the chunk lengths out of a body, as far as it can be read."""
    found, position = [], 0
    while True:
        end = data.find(b"\n", position)
        size = data[position:end].partition(b";")[0].strip() if end >= 0 else b""
        try:
            length = int(size, 16)
        except ValueError:
            break
        if length <= 0:
            break
        found.append(data[end + 1 : end + 1 + length])
        position = end + 1 + length
        if data[position : position + 2] == b"\r\n":
            position += 2
    return b"".join(found)


async def _connect(http: HttpSettings, parts: JavaURL) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
    port = parts.default_port if parts.port < 0 else parts.port
    host = parts.host.strip("[]")
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    allowed = [address for address in addresses if http.gate.accepts(address)]
    if not allowed:
        raise AddressExcludedError(addresses[0])
    context = None
    if parts.protocol == "https":
        context = ssl.create_default_context()
        if not http.check_certificates:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(
        allowed[0], port, ssl=context, server_hostname=host if context else None
    )
    return reader, writer, allowed[0]


async def _read(http: HttpSettings, url: str, limit: int, headers: Sequence[str]) -> Answer:
    started, parts = time.monotonic(), parse_url(url)
    reader, writer, address = await asyncio.wait_for(_connect(http, parts), http.timeout)
    try:
        port = "" if parts.port < 0 else f":{parts.port}"
        file = parts.file if parts.file.startswith("/") else "/" + parts.file
        request = [f"GET {file} HTTP/1.0", f"Host: {parts.host}{port}", *headers, "", ""]
        writer.write("\r\n".join(request).encode("utf-8"))
        raw = bytearray()
        most = http.header_limit + 2 * limit  # chunk lengths and a poor compression included
        while limit < 0 or len(raw) < most:
            piece = await asyncio.wait_for(reader.read(_PIECE), http.timeout)
            if not piece:
                break
            raw += piece
    finally:
        writer.close()
    return make_answer(http, url, bytes(raw), limit, address, int((time.monotonic() - started) * 1000))


def make_answer(http: HttpSettings, url: str, raw: bytes, limit: int, address: str, elapsed: int) -> Answer:
    """Make an answer of all that a server sent."""
    try:
        status, lines, position = part_head(raw, http.header_count, http.header_limit)
    except HeadTooLongError:
        return Answer(url, failure=Failure(FailureKind.LIMIT, f"more than {http.header_limit} bytes of headers"))
    if not status:
        return Answer(url, failure=Failure(FailureKind.PROTOCOL, f"bad status line {raw[:80].decode('latin-1')!r}"))
    if position < 0:
        return Answer(url, failure=Failure(FailureKind.CLOSED, "connection closed amid the headers"))
    fields = {name.lower(): value for name, value in header_fields(lines)}
    data = raw[position:]
    if "chunked" in fields.get("transfer-encoding", "").lower():
        data = unchunk(data)
    body = Body(encoding_of(fields.get("content-encoding")), limit)
    body.feed(data)
    answer = Answer(url, status, lines, body.content(), "length" if body.truncated else "")
    answer.ip, answer.elapsed = (address if http.store_ip else ""), elapsed
    return answer


async def get(http: HttpSettings, url: str, limit: int, headers: Sequence[str]) -> Answer:
    """Ask for a URL with these header lines and read what comes as forgivingly as can be. Never raises."""
    try:
        whole = http.time_limit if http.time_limit > 0 else None
        return await asyncio.wait_for(_read(http, url, limit, headers), whole)
    except TimeoutError:
        return Answer(url, failure=Failure(FailureKind.TIMEOUT, f"read timed out after {http.timeout:g} s"))
    except AddressExcludedError as error:
        return Answer(url, failure=Failure(FailureKind.GATE, str(error)))
    except (OSError, ValueError) as error:
        return Answer(url, failure=Failure(FailureKind.CLOSED, f"{type(error).__name__}: {error}"))
