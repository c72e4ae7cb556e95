"""Strict framing of requests: rejects what two HTTP servers could read as different requests (request smuggling).

h11 accepts some of it, as RFC 9112 permits. A proxy in front of this server may read the same bytes in another way.
"""

from __future__ import annotations

import re

import h11

_HEAD_END = re.compile(rb"\n\r?\n")
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_FOLDED_LINE = re.compile(rb"\n[ \t]")


class StrictConnection(h11.Connection):
    """A server's side of a connection that checks the head of each request before h11 reads it."""

    _scanned_bytes = 0

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return the next event; raise h11.RemoteProtocolError for an ambiguous head."""
        if self.their_state is h11.IDLE and self.our_state is h11.IDLE:
            data = self.trailing_data[0]
            end = _HEAD_END.search(data, max(0, self._scanned_bytes - 2))  # a head may arrive byte by byte
            self._scanned_bytes = len(data) if end is None else 0
            if end is not None and (reason := find_framing_error(data[: end.end()])):
                raise h11.RemoteProtocolError(reason, error_status_hint=400)
        return super().next_event()


def find_framing_error(head: bytes) -> str:
    r"""Return why the head of a request is ambiguous, "" if it is not.

    >>> find_framing_error(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    ''
    >>> find_framing_error(b"GET / HTTP/1.1\nHost: a\r\n\r\n")
    'a line ends without a carriage return'
    """
    if _BARE_LINE_FEED.search(head):
        return "a line ends without a carriage return"
    if _FOLDED_LINE.search(head):
        return "a header is folded"
    request_line, *lines = head.split(b"\r\n")
    values: dict[bytes, list[bytes]] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        values.setdefault(name.lower(), []).append(value)
    lengths = values.get(b"content-length", [])
    if len(lengths) > 1 or b"," in b"".join(lengths):
        return "several Content-Length"
    if b"transfer-encoding" in values:
        if lengths:
            return "Content-Length with Transfer-Encoding (RFC 9112, section 6.1)"
        if not request_line.endswith(b"HTTP/1.1"):
            return "Transfer-Encoding before HTTP/1.1 (RFC 9112, section 6.1)"
    return ""
