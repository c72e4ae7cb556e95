from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.fetcher.protocols.fetch_response import FailureKind, parse_header_lines
from nutch2py.fetcher.protocols.http_settings import HttpSettings
from nutch2py.fetcher.protocols.lenient_http import HeadersTooLongError, build_response, decode_chunked, split_head
from tests.growth import assert_linear, repetitions

HTTP = HttpSettings.from_conf(Configuration({"http.agent.name": "probe"}))


@pytest.mark.parametrize(
    ("raw", "status", "lines", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nA: 1\r\n\r\nbody", 200, [b"A: 1\r\n"], b"body"),
        (b"HTTP/1.1 200 OK\nA: 1\n\nbody", 200, [b"A: 1\r\n"], b"body"),
        (b"HTTP/1.1 200 OK\rA: 1\r\rbody", 200, [b"A: 1\r\n"], b"body"),
        (b"ICY 200 OK\r\n\r\nbody", 200, [], b"body"),
        (b"HTTP/1.1 100 C\r\nA: 1\r\n\r\nHTTP/1.1 404 No\r\nB: 2\r\n\r\n", 404, [b"B: 2\r\n"], b""),
        (b"HTTP/1.1 200 OK\r\nA: 1\r\n<!DOCTYPE html><p>", 200, [b"A: 1\r\n"], b"<!DOCTYPE html><p>"),
    ],
)
def test_malformed_head_is_parsed(raw: bytes, status: int, lines: list[bytes], body: bytes) -> None:
    found_status, found_lines, position = split_head(raw)
    assert (found_status, found_lines, raw[position:]) == (status, lines, body)


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"3\r\nabc\r\n5\r\nde", b"abcde"),
        (b"3\nabc2\nde", b"abcde"),
        (b"abc", b""),
        (b"-3\r\nabc", b""),
        (b"", b""),
    ],
)
def test_malformed_chunks_are_decoded(raw: bytes, body: bytes) -> None:
    assert decode_chunked(raw) == body


@given(st.binary(max_size=300) | st.binary(max_size=200).map(lambda tail: b"HTTP/1.1 200 OK\r\n" + tail))
def test_arbitrary_bytes_give_a_response(raw: bytes) -> None:
    answer = build_response(HTTP, "http://a.test/", raw, 50, "127.0.0.1", 1)
    assert answer.failure is not None or 100 <= answer.status <= 999
    assert len(answer.content) <= 50


PIECES = [
    "\r\n", "\n", "\r", "A: b\r\n", "A\n", " folded\n", "\tx\r", "A:", "<htm", "<!doctyp", "<html", "x",
    "HTTP/1.1 100 C\r\n\r\n", "100 ", " ", "1\r\nx\r\n", "f", ";", "0",
]  # fmt: skip
HEADS = [
    "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n", "HTTP/1.1 ", "HTTP/1.1 100 C\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "",
]  # fmt: skip


def test_response_parsing_time_is_linear() -> None:
    """Without limits, the cost of any input is proportional to its length."""
    http = dataclasses.replace(HTTP, header_limit=1 << 30, header_count=1 << 30)

    def read(text: str) -> None:
        build_response(http, "http://a.test/", text.encode(), -1, "127.0.0.1", 1)

    assert_linear(read, repetitions(PIECES, HEADS, ["", "\r\n\r\nbody", "<html>"]))


def test_header_parsing_time_is_linear() -> None:
    shapes = repetitions(["A: b\n", " folded\n", "A:\n", "A\n", ":\n", "\n"], ["", "A: b\n"], [""])
    assert_linear(lambda text: [*parse_header_lines(text.encode().splitlines(keepends=True))], shapes)


@pytest.mark.parametrize("piece", [b"X: y\r\n", b"\tfolded\n", b"nonsense\r", b"X: " + b"y" * 10_000 + b"\n"])
def test_headers_are_read_up_to_limit(piece: bytes) -> None:
    endless = b"HTTP/1.1 200 OK\r\n" + piece * (1_000_000 // len(piece))
    answer = build_response(HTTP, "http://a.test/", endless, 50, "127.0.0.1", 1)
    assert answer.failure is not None
    assert (answer.failure.kind, answer.failure.message) == (FailureKind.LIMIT, "more than 131072 bytes of headers")
    with pytest.raises(HeadersTooLongError):
        split_head(endless, 100, 20_000)


def test_headers_within_limits_are_read() -> None:
    lines = b"X: y\r\n" * 100
    raw = b"HTTP/1.1 200 OK\r\n" + lines + b"\r\nbody"
    assert split_head(raw, 100, len(raw))[0] == 200
    with pytest.raises(HeadersTooLongError):
        split_head(raw, 99, len(raw))
    with pytest.raises(HeadersTooLongError):
        split_head(raw, 100, 100)
    interim = b"HTTP/1.1 100 C\r\n\r\n" * 1_000 + raw
    with pytest.raises(HeadersTooLongError):
        split_head(interim, 100, 10_000)
