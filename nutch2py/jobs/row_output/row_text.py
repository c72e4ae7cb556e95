"""Formats a row as text for ``readdb -url`` and ``readdb -dump``, with the lines of Nutch 2's WebTableReader.

Two things differ: map entries are sorted by key (in Java they have the order of a hash table), and bytes that are not
text are escaped as in HBase's shell, while Nutch prints them unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nutch2py.records.cells import ParseStatus, ProtocolStatus, decode_text, float32
from nutch2py.records.record import MapField, RecordField
from nutch2py.records.webpage import CrawlStatus, ParseStatusCode, ProtocolStatusCode, WebPage

_MAJOR_NAMES = ("notparsed", "success", "failed")
_MINOR_NAMES = {
    ParseStatusCode.OK: "ok",
    ParseStatusCode.REDIRECT: "redirect",
    ParseStatusCode.EXCEPTION: "exception",
    ParseStatusCode.TRUNCATED: "truncated",
    ParseStatusCode.INVALID_FORMAT: "invalid_format",
    ParseStatusCode.MISSING_PARTS: "missing_parts",
    ParseStatusCode.MISSING_CONTENT: "missing_content",
}
_PRINTABLE_BYTES = frozenset(b" `~!@#$%^&*()-_=+[]{}\\|;:'\",.<>/?") | frozenset(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)
_BASE_FIELDS: frozenset[RecordField] = frozenset(
    {
        WebPage.base_url,
        WebPage.status,
        WebPage.fetch_time,
        WebPage.prev_fetch_time,
        WebPage.fetch_interval,
        WebPage.retries_since_fetch,
        WebPage.modified_time,
        WebPage.prev_modified_time,
        WebPage.protocol_status,
        WebPage.prev_signature,
        WebPage.signature,
        WebPage.parse_status,
        WebPage.title,
        WebPage.score,
        WebPage.page_rank,
        WebPage.markers,
        WebPage.repr_url,
        WebPage.batch_id,
        WebPage.metadata,
    }
)


def page_fields(
    content: bool = False, headers: bool = False, links: bool = False, text: bool = False
) -> frozenset[RecordField]:
    """Return the fields that :func:`format_page` reads with the same options."""
    fields = set(_BASE_FIELDS)
    if content:
        fields |= {WebPage.content, WebPage.content_type}
    if headers:
        fields.add(WebPage.headers)
    if links:
        fields |= {WebPage.inlinks, WebPage.outlinks}
    if text:
        fields.add(WebPage.text)
    return frozenset(fields)


def format_bytes(value: bytes) -> str:
    r"""Return bytes as text if they are UTF-8 without control characters (except tab and line ends), otherwise escaped.

    >>> format_bytes("é\tü".encode())
    'é\tü'
    >>> format_bytes(bytes([0x3F, 0x80, 0, 0]))
    '?\\x80\\x00\\x00'
    """
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return escape_bytes(value)
    if any((c < " " and c not in "\t\n\r") or "\x7f" <= c < "\xa0" for c in text):
        return escape_bytes(value)
    return text


def escape_bytes(value: bytes) -> str:
    r"""Return bytes in the form of HBase's ``Bytes.toStringBinary``: printable ASCII unchanged, others as ``\xHH``."""
    return "".join(chr(byte) if byte in _PRINTABLE_BYTES else f"\\x{byte:02X}" for byte in value)


def format_float(value: float) -> str:
    """Return a 32-bit float as Java prints it: the shortest digits that round-trip, always with a decimal point.

    >>> [format_float(v) for v in (1.0, 1 / 3, 1e10, 0.00025)]
    ['1.0', '0.33333334', '1.0E10', '2.5E-4']
    """
    value = float32(value)
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    scientific = next(text for text in (f"{value:.{n}e}" for n in range(9)) if _round_trips(text, value))
    mantissa, exponent = scientific.split("e")
    power = int(exponent)
    sign, digits = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    digits = digits.replace(".", "").rstrip("0") or "0"
    if value == 0 or -3 <= power < 7:
        if power < 0:
            return f"{sign}0.{'0' * (-power - 1)}{digits}"
        digits = digits.ljust(power + 1, "0")
        return f"{sign}{digits[: power + 1]}.{digits[power + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _round_trips(text: str, value: float) -> bool:
    return float32(float(text)) == value


def format_status(status: int) -> str:
    """Return ``2 (status_fetched)``; the name is ``null`` for 0, an injected row that was never fetched."""
    try:
        name = CrawlStatus(status).label
    except ValueError:
        name = "null"
    return f"{status} ({name})"


def protocol_status_name(code: int) -> str:
    """Return the name of a protocol status code."""
    try:
        return ProtocolStatusCode(code).name
    except ValueError:
        return f"UNKNOWN_CODE_{code}"


def parse_status_name(status: ParseStatus) -> str:
    """Return ``major/minor`` by name."""
    major = _MAJOR_NAMES[status.major] if 0 <= status.major < len(_MAJOR_NAMES) else "null"
    return f"{major}/{_MINOR_NAMES.get(status.minor, 'null')}"  # type: ignore[call-overload]


def format_protocol_status(status: ProtocolStatus | None) -> str:
    """Return ``NAME, args=[…]``."""
    return "(null)" if status is None else f"{protocol_status_name(status.code)}, args=[{','.join(status.args)}]"


def format_parse_status(status: ParseStatus | None) -> str:
    """Return ``success/ok (1/0), args=[…]``."""
    if status is None:
        return "(null)"
    return f"{parse_status_name(status)} ({status.major}/{status.minor}), args=[{','.join(status.args)}]"


def _or_null(value: str | None) -> str:
    return "null" if value is None else value


def _map_entries(page: WebPage, field: MapField[Any]) -> list[tuple[str, bytes]]:
    """Return key and cell of a map, sorted by the bytes of the keys."""
    return [(decode_text(key), cell) for key, cell in sorted(field.__get__(page, WebPage).raw_cells().items())]


def format_page(
    key: str,
    page: WebPage,
    content: bool = False,
    headers: bool = False,
    links: bool = False,
    text: bool = False,
    markdown: str | None = None,
    show_url: Callable[[str], str] = str,
) -> str:
    """Return the lines of a row, each with its line end.

    ``key`` is shown unchanged: Nutch passes the URL for ``-url`` and the row key for ``-dump``. The options add raw
    content, response headers, out- and inlinks, extracted text, and the given Markdown. ``show_url`` writes the URLs.
    Times are ms since 1970, the interval is in seconds.
    """
    lines = [
        f"key:\t{key}",
        f"baseUrl:\t{_or_null(page.base_url and show_url(page.base_url))}",
        f"status:\t{format_status(page.status)}",
        f"fetchTime:\t{page.fetch_time}",
        f"prevFetchTime:\t{page.prev_fetch_time}",
        f"fetchInterval:\t{page.fetch_interval}",
        f"retriesSinceFetch:\t{page.retries_since_fetch}",
        f"modifiedTime:\t{page.modified_time}",
        f"prevModifiedTime:\t{page.prev_modified_time}",
        f"protocolStatus:\t{format_protocol_status(page.protocol_status)}",
    ]
    if page.prev_signature is not None:
        lines.append(f"prevSignature:\t{page.prev_signature.hex()}")
    if page.signature is not None:
        lines.append(f"signature:\t{page.signature.hex()}")
    lines.append(f"parseStatus:\t{format_parse_status(page.parse_status)}")
    lines.append(f"title:\t{_or_null(page.title)}")
    lines.append(f"score:\t{format_float(page.score)}")
    if page.page_rank:  # not in Nutch 2: without it the output is the same
        lines.append(f"pageRank:\t{format_float(page.page_rank)}")
    lines += [f"marker {name} : \t{decode_text(cell)}" for name, cell in _map_entries(page, WebPage.markers)]
    lines.append(f"reprUrl:\t{_or_null(page.repr_url and show_url(page.repr_url))}")
    if page.batch_id is not None:
        lines.append(f"batchId:\t{page.batch_id}")
    lines += [f"metadata {name} : \t{format_bytes(cell)}" for name, cell in _map_entries(page, WebPage.metadata)]
    if links:
        lines += [
            f"outlink:\t{show_url(url)}\t{decode_text(cell)}" for url, cell in _map_entries(page, WebPage.outlinks)
        ]
        lines += [f"inlink:\t{show_url(url)}\t{decode_text(cell)}" for url, cell in _map_entries(page, WebPage.inlinks)]
    if headers:
        lines += [f"header:\t{name}\t{decode_text(cell)}" for name, cell in _map_entries(page, WebPage.headers)]
    if content and page.content is not None:
        lines.append(f"contentType:\t{_or_null(page.content_type)}")
        lines += ["content:start:", decode_text(page.content), "content:end:"]
    if text and page.text is not None:
        lines += ["text:start:", page.text, "text:end:"]
    if markdown is not None:
        lines += ["markdown:start:", markdown, "markdown:end:"]
    return "\n".join(lines) + "\n"
