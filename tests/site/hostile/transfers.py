"""Responses with wrong, endless or slow headers or transfers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, repeat

from tests.site.hostile.trick import Request, Sent, Tricks, head, page

tricks = Tricks()
PAGE = b"<html><title>A page</title><body>hello</body></html>"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_ODD = bytes(set(range(256)) - {0, 10, 13})


def _raw(name: str, what: str, sent: Sent, fetched: str, parsed: str = "") -> None:
    tricks.add(name, what, sent, fetched, parsed)


def _with(name: str, what: str, lines: bytes, fetched: str = "SUCCESS", parsed: str = "success") -> None:
    """Return a page that is good except for its header lines."""
    tricks.add(name, f"header: {what}", [_HEAD + lines + b"Connection: close\r\n\r\n" + PAGE], fetched, parsed)


_raw(
    "status-bytes",
    "every byte in the reason phrase",
    [b"HTTP/1.1 200 " + _ODD + b"\r\n\r\n" + PAGE],
    "SUCCESS",
    "success|failed",
)
_raw(
    "status-escape",
    "terminal commands in the reason phrase of a 500",
    [b"HTTP/1.1 500 \x1b[2J\x1b]0;owned\x07\r\nContent-Length: 0\r\n\r\n"],
    "EXCEPTION",
)
_raw("status-long", "a reason phrase without end", repeat(b"HTTP/1.1 200 " + b"y" * 65_536), "EXCEPTION")
_raw("status-none", "HTTP/0.9: no status line", [PAGE], "EXCEPTION")
_raw("status-garbage", "bytes that are no HTTP", [bytes(range(256)) * 300], "EXCEPTION")
_raw("status-negative", "status -200", [b"HTTP/1.1 -200 OK\r\n\r\n" + PAGE], "EXCEPTION")
_raw("status-999", "status 999", [head(status="999 Request denied") + PAGE], "EXCEPTION")
_raw("status-000", "status 000", [head(status="000 Nothing") + PAGE], "EXCEPTION")
_raw("status-four-digits", "status 2000", [head(status="2000 OK") + PAGE], "EXCEPTION|SUCCESS", "success|failed|")
_raw(
    "status-http2",
    "HTTP/2 without having been asked",
    [b"HTTP/2 200\r\n\r\n" + PAGE],
    "EXCEPTION|SUCCESS",
    "success|failed|",
)
_raw("status-204", "204 with a body", [head(status="204 No Content") + PAGE], "EXCEPTION")
_raw("status-206", "206: a part that was not requested", page(PAGE, status="206 Partial Content"), "EXCEPTION")
_raw(
    "status-101",
    "101: switching to a protocol that never comes",
    [head("x", "Upgrade: x", status="101 Switching")],
    "EXCEPTION",
)
_raw("interim-endless", "100 Continue without end", repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 100), "EXCEPTION")
_raw(
    "interim-early-hints",
    "103 with ever more Link headers",
    repeat(b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n" * 100),
    "EXCEPTION",
)
_raw("interim-slow", "100 Continue every second", cycle([b"HTTP/1.1 100 Continue\r\n\r\n", 1.0]), "EXCEPTION")

_with("names-bytes", "every byte in a name", b"X-" + _ODD.replace(b":", b"") + b": y\r\n")
_with("values-bytes", "every byte in a value", b"X-Odd: " + _ODD + b"\r\n")
_with("values-nul", "NUL in a value", b"X: a\0b\r\n")
_with("no-colon", "a line without colon", b"nonsense\r\n")
_with("no-name", "a line that starts with the colon", b": value\r\n")
_with("folded", "a value folded over 900 lines", b"X: a\r\n" + b" b\r\n" * 900)
_with("folded-first", "a fold before there is a header", b" folded: x\r\n")
_with("bare-returns", "bare carriage returns", b"X: a\rY: b\r")
_with("many", "10,000 headers", b"".join(b"X-%d: y\r\n" % n for n in range(10_000)), "EXCEPTION", "")
_with("huge", "a value of 10 MB", b"X: " + b"y" * 10_000_000 + b"\r\n", "EXCEPTION", "")
_with("long-names", "900 names of 120 letters", b"".join(b"N%0119d: y\r\n" % n for n in range(900)))
_with(
    "near-names",
    "900 names that nearly are Content-Type",
    b"".join(b"Contnt-Typ%c: x\r\n" % (97 + n % 26) for n in range(900)),
    parsed="success|failed",
)
_with("cookies", "900 cookies", b"".join(b"Set-Cookie: c%d=%s\r\n" % (n, b"v" * 60) for n in range(900)))
_with("cookie-huge", "a cookie of 100,000 bytes", b"Set-Cookie: a=" + b"v" * 100_000 + b"\r\n")
_with(
    "cookie-odd",
    "cookies for other hosts, of odd bytes, for ever",
    b"Set-Cookie: a=b; Domain=.org; Path=/; Max-Age=99999999999999999\r\nSet-Cookie: \xff\x01=;;;=\r\n",
)
_with("robots-tags", "900 X-Robots-Tag", b"X-Robots-Tag: noindex, nofollow, other: all\r\n" * 900)
_with("robots-tag-commas", "X-Robots-Tag of 50,000 commas", b"X-Robots-Tag: " + b"a:," * 20_000 + b"noindex\r\n")
_with("links", "900 headers Link", b'Link: <http://127.0.0.1:1/>; rel="canonical"\r\n' * 900)
_with(
    "type-long",
    "a Content-Type of 100,000 bytes",
    b"Content-Type: text/" + b"x;" * 50_000 + b"\r\n",
    parsed="success|failed",
)
_with(
    "type-quotes",
    "a charset of 50,000 quotes",
    b"Content-Type: text/html; charset=" + b"\"'" * 25_000 + b"\r\n",
    parsed="success|failed",
)
_with("type-many", "900 headers Content-Type", b"Content-Type: application/x-a\r\n" * 900, parsed="success|failed")
_with("language-long", "a Content-Language of 100,000 bytes", b"Content-Language: " + b"en," * 33_000 + b"\r\n")
_with("modified-odd", "a Last-Modified of the year 99999", b"Last-Modified: Mon, 99 Foo 99999 99:99:99 GMT\r\n")
_with("modified-long", "a Last-Modified of 100,000 digits", b"Last-Modified: " + b"9" * 100_000 + b"\r\n")
_with("etag-long", "an ETag of 100,000 bytes", b'ETag: "' + b"e" * 100_000 + b'"\r\n')
_with("etag-injecting", "an ETag with line ends of its own", b'ETag: "a"\x0b\x0cX-Injected: y\r\n')
_with("security-policy", "a policy of 100,000 bytes", b"Content-Security-Policy: " + b"a " * 50_000 + b"\r\n")
_with("alt-svc", "Alt-Svc: ask another host from now on", b'Alt-Svc: h2="127.0.0.1:1"; ma=99999999, h3=":1"\r\n')
_with("hsts", "Strict-Transport-Security on plain HTTP", b"Strict-Transport-Security: max-age=99999999\r\n")
_with("disposition", "a file name that climbs", b"Content-Disposition: attachment; filename=../../../../etc/x\r\n")

_with("length-wrong", "Content-Length that is too long", b"Content-Length: 5000\r\n", parsed="")
_with("length-short", "Content-Length that is too short", b"Content-Length: 5\r\n")
_with("length-negative", "Content-Length -5", b"Content-Length: -5\r\n", "EXCEPTION", "")
_with("length-huge", "Content-Length 10^20", b"Content-Length: 99999999999999999999\r\n")
_with(
    "length-digits", "Content-Length of 5,000 digits", b"Content-Length: " + b"1" * 5000 + b"\r\n", "SUCCESS|EXCEPTION"
)
_with("length-two", "two that differ", b"Content-Length: 5\r\nContent-Length: 9\r\n", "SUCCESS|EXCEPTION", "success|")
_with(
    "length-and-chunked",
    "Content-Length and chunked",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "SUCCESS|EXCEPTION",
    "success|",
)
_with(
    "transfer-odd",
    "Transfer-Encoding: gzip, chunked, identity",
    b"Transfer-Encoding: gzip, chunked, identity\r\n",
    "SUCCESS|EXCEPTION",
    "success|failed|",
)
_with(
    "transfer-many",
    "400 transfer encodings",
    b"Transfer-Encoding: " + b"gzip, " * 400 + b"chunked\r\n",
    "SUCCESS|EXCEPTION",
    "success|failed|",
)

_raw("chunk-length", "a chunk length that is no number", [_CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n"], "EXCEPTION")
_raw("chunk-negative", "a chunk of -5 bytes", [_CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n"], "EXCEPTION")
_raw("chunk-huge", "a chunk of 10^20 bytes", [_CHUNKED + b"ffffffffffffffffff\r\nhello"], "EXCEPTION")
_raw("chunk-cut", "a chunk that is cut off", [_CHUNKED + b"1f\r\nhello"], "EXCEPTION")
_raw(
    "chunk-zeros",
    "a chunk length with a million zeros",
    [_CHUNKED + b"0" * 1_000_000 + b"5\r\nhello\r\n0\r\n\r\n"],
    "EXCEPTION",
)


def _begun(first: bytes, rest: bytes, pause: float = 0.0) -> Iterator[bytes | float]:
    yield first
    while True:
        if pause:
            yield pause
        yield rest


def _endless(name: str, what: str, first: bytes, rest: bytes, fetched: str, parsed: str = "", pause: float = 0) -> None:
    tricks.add(name, what, lambda _: _begun(first, rest, pause), fetched, parsed)


_endless("chunk-extensions", "chunk extensions without end", _CHUNKED + b"5;", b"x" * 65_536, "EXCEPTION")
_endless("chunk-tiny", "chunks of one byte without end", _CHUNKED, b"1\r\nx\r\n" * 1000, "SUCCESS", "success")
_endless("chunk-trailers", "trailers without end", _CHUNKED + b"5\r\nhello\r\n0\r\n", b"X: y\r\n" * 1000, "EXCEPTION")
_endless(
    "chunk-slow-trailers",
    "a trailer every second",
    _CHUNKED + b"5\r\nhello\r\n0\r\n",
    b"X: y\r\n",
    "EXCEPTION|SUCCESS",
    "success|",
    1,
)
_endless("body-endless", "a body without end", _HEAD + b"\r\n", b"word " * 10_000, "SUCCESS", "success")
_endless("body-drip", "a byte of the body every second", _HEAD + b"\r\n", b"x", "SUCCESS", "success", 1)
_endless(
    "body-drip-length",
    "the same with a declared length",
    _HEAD + b"Content-Length: 100000\r\n\r\n",
    b"x",
    "SUCCESS",
    "",
    1,
)
_endless("body-drip-chunks", "a chunk of one byte every second", _CHUNKED, b"1\r\nx\r\n", "SUCCESS", "success", 1)
_endless("headers-drip", "a byte of the headers every second", _HEAD + b"X: ", b"y", "EXCEPTION", pause=1)
_endless("headers-slow", "a header every second", _HEAD, b"X: y\r\n", "EXCEPTION", pause=1)
_endless("headers-endless", "headers without end", _HEAD, b"X-Header: " + b"y" * 1000 + b"\r\n", "EXCEPTION")
_endless("header-endless", "a header without end", _HEAD + b"X: ", b"y" * 10_000, "EXCEPTION")
_endless("status-drip", "a byte of the status line every second", b"", b"H", "EXCEPTION", pause=1)
_endless("empty-drip", "line ends before the status line", b"", b"\r\n", "EXCEPTION", pause=1)


@tricks.trick("nothing, on an open connection", "EXCEPTION")
def silent(_: Request) -> Sent:
    yield 3600.0


@tricks.trick("headers, then nothing", "EXCEPTION|SUCCESS")
def silent_body(_: Request) -> Sent:
    yield head("text/html", "Content-Length: 5000")
    yield 3600.0


@tricks.trick("the whole page, and the connection stays open without a length", "SUCCESS|EXCEPTION", "success|")
def silent_end(_: Request) -> Sent:
    yield head() + PAGE
    yield 3600.0


@tricks.trick("closed at once", "EXCEPTION")
def nothing(_: Request) -> Sent:
    return ()


@tricks.trick("a second, unrequested response after the page", "SUCCESS", "success")
def smuggled(_: Request) -> Sent:
    yield from page(PAGE)
    yield head("text/html", "Content-Length: 5") + b"owned"
    yield 1.0


tricks.add("tls-none", "plain HTTP where TLS is expected", page(PAGE), "EXCEPTION", scheme="https")
tricks.add(
    "tls-garbage",
    "TLS of random bytes",
    [b"\x16\x03\x03\xff\xff" + bytes(range(256)) * 300],
    "EXCEPTION",
    scheme="https",
)
tricks.add("tls-silent", "a TLS handshake that never continues", [3600.0], "EXCEPTION", scheme="https")
tricks.add(
    "error-page", "500 with a page of 100 MB", lambda _: _begun(head(status="500 Failed"), b"x" * 65_536), "EXCEPTION"
)
tricks.add(
    "retry-after-long",
    "429: come back in a year",
    page(b"", "text/html", "Retry-After: 31536000", status="429 Too Many Requests"),
    "EXCEPTION",
)
tricks.add(
    "retry-after-odd",
    "503 with a Retry-After of 100,000 digits",
    page(b"", "text/html", "Retry-After: " + "9" * 100_000, status="503 Later"),
    "EXCEPTION",
)
tricks.add(
    "unauthorized",
    "401 of 300 schemes",
    page(b"", "text/html", *['WWW-Authenticate: Basic realm="x", Digest, NTLM'] * 300, status="401 Unauthorized"),
    "ACCESS_DENIED",
)
