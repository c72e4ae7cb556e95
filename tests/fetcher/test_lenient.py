from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.conf import Configuration
from nutch2py.fetcher.http_settings import HttpSettings
from nutch2py.fetcher.lenient import make_answer, part_head, unchunk

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
def test_head(raw: bytes, status: int, lines: list[bytes], body: bytes) -> None:
    found_status, found_lines, position = part_head(raw)
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
def test_chunks(raw: bytes, body: bytes) -> None:
    assert unchunk(raw) == body


@given(st.binary(max_size=300) | st.binary(max_size=200).map(lambda tail: b"HTTP/1.1 200 OK\r\n" + tail))
def test_anything_gives_an_answer(raw: bytes) -> None:
    answer = make_answer(HTTP, "http://a.test/", raw, 50, "127.0.0.1", 1)
    assert answer.failure is not None or 100 <= answer.status <= 999
    assert len(answer.content) <= 50
