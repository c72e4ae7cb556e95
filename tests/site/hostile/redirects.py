"""Redirects to nowhere, to many places, to internal addresses, or in loops."""

from __future__ import annotations

from itertools import count

from tests.site.hostile.trick import Request, Sent, Tricks, head, page

tricks = Tricks()
_numbers = count(1)


def _to(location: str | bytes, status: str = "302 Found") -> list[bytes | float]:
    value = location.encode() if isinstance(location, str) else location
    return [head("text/html", b"Location: " + value, "Content-Length: 0", status=status)]


_LOCATIONS: tuple[tuple[str, str, str | bytes, str], ...] = (
    ("redirect-dots", "a host of 60 dots and a port that is none", "a" + "." * 60 + "!:x", "EXCEPTION|TEMP_MOVED"),
    ("redirect-many-dots", "the same with 60,000 dots", "http://a" + "." * 60_000 + "!:x/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-labels", "a host of 20,000 labels", "http://" + "a." * 20_000 + "test/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-long-label", "a host with a single label of 5,000 letters", f"http://{'a' * 5000}/", "TEMP_MOVED"),
    ("redirect-long", "a path of 100,000 characters", "/" + "y" * 100_000, "EXCEPTION|TEMP_MOVED"),
    ("redirect-dot-segments", "30,000 times ../ in the path", "/a/" + "../" * 30_000, "EXCEPTION|TEMP_MOVED"),
    ("redirect-session-ids", "2,000 session ids in the query", "/x?" + "sid=a&" * 2000, "EXCEPTION|TEMP_MOVED"),
    ("redirect-escapes", "2,500 times %25, which is % again", "/" + "%25" * 2500, "TEMP_MOVED"),
    ("redirect-at-signs", "a login of 3,000 @", "http://" + "@" * 3000 + "h/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-slashes", "8,000 slashes", "/" * 8000, "EXCEPTION|TEMP_MOVED"),
    ("redirect-bad-port", "port 99999999999999999999", "http://127.0.0.1:99999999999999999999/", "EXCEPTION"),
    ("redirect-port-zero", "port 0", "http://127.0.0.1:0/", "TEMP_MOVED"),
    ("redirect-ssh-port", "the port of another service", "http://127.0.0.1:1/", "TEMP_MOVED"),
    ("redirect-file", "a file of the crawler's machine", "file:///etc/passwd", "TEMP_MOVED"),
    ("redirect-ftp", "ftp", "ftp://127.0.0.1:1/x", "TEMP_MOVED"),
    ("redirect-javascript", "a script", "javascript:alert(1)", "EXCEPTION|TEMP_MOVED"),
    ("redirect-data", "a data: URL", "data:text/html,<p>x", "EXCEPTION|TEMP_MOVED"),
    ("redirect-gopher", "gopher", "gopher://127.0.0.1:1/_x", "EXCEPTION|TEMP_MOVED"),
    ("redirect-unknown-scheme", "an unknown scheme", "nosuch:thing", "EXCEPTION|TEMP_MOVED"),
    ("redirect-metadata", "a cloud's metadata service", "http://169.254.169.254/latest/meta-data/", "TEMP_MOVED"),
    ("redirect-decimal", "loopback as one number", "http://2130706433:1/", "TEMP_MOVED"),
    ("redirect-octal", "loopback in octal", "http://0177.0.0.01:1/", "TEMP_MOVED"),
    ("redirect-hexadecimal", "loopback in hexadecimal", "http://0x7f.1:1/", "TEMP_MOVED"),
    ("redirect-mapped", "loopback inside IPv6", "http://[::ffff:127.0.0.1]:1/", "TEMP_MOVED"),
    ("redirect-nat64", "loopback as a NAT64 address", "http://[64:ff9b::7f00:1]:1/", "TEMP_MOVED"),
    ("redirect-escaped-host", "loopback in escapes", "http://%31%32%37.0.0.1:1/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-wide-digits", "loopback in digits of full width", "http://１２７.0.0.1:1/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-zone", "an IPv6 address with a zone", "http://[fe80::1%25eth0]/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-half-bracket", "an address with an unclosed bracket", "http://[::1/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-nothing", "an empty Location", "", "EXCEPTION|TEMP_MOVED"),
    ("redirect-blank", "a Location of 8,000 blanks and tabs", " \t" * 4000, "EXCEPTION|TEMP_MOVED"),
    ("redirect-bytes", "a Location of every byte", bytes(set(range(1, 256)) - {10, 13}), "EXCEPTION|TEMP_MOVED"),
    ("redirect-bad-idn", "a host in broken Punycode", "http://xn--" + "a" * 50 + "-.xn--/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-idn", "1,000 combining marks in a host", "http://" + "e\u0301" * 1000 + "/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-right-to-left", "a host that turns the line round", "http://\u202egnp.\u202d/", "EXCEPTION|TEMP_MOVED"),
    ("redirect-questions", "8,000 question marks", "/?" + "?" * 8000, "EXCEPTION|TEMP_MOVED"),
    ("redirect-fragment", "a fragment of 8,000 signs", "/x#" + "#" * 8000, "EXCEPTION|TEMP_MOVED"),
)
for _name, _what, _location, _fetched in _LOCATIONS:
    tricks.add(_name, f"redirect: {_what}", _to(_location), _fetched)

tricks.add("redirect-without-location", "301 without Location", [head(status="301 Moved")], "MOVED|EXCEPTION")
tricks.add("redirect-399", "a status 399 with a Location", _to("/x", "399 Odd"), "MOVED|EXCEPTION")
tricks.add("redirect-305", "305: use this proxy", _to("http://127.0.0.1:1/", "305 Use Proxy"), "MOVED|EXCEPTION")
tricks.add(
    "redirect-many-locations",
    "900 headers Location",
    [head("text/html", *(f"Location: /{n}" for n in range(900)), status="302 Found")],
    "EXCEPTION|TEMP_MOVED",
)


@tricks.trick("redirects to itself", "TEMP_MOVED")
def redirect_to_itself(request: Request) -> Sent:
    return _to(request.path)


@tricks.trick("redirects to ever new pages of its own", "MOVED")
def redirect_endless(_: Request) -> Sent:
    return _to(f"/next/{next(_numbers)}", "301 Moved Permanently")


@tricks.trick("redirects to a page that is one directory deeper, for ever", "TEMP_MOVED")
def redirect_deeper(request: Request) -> Sent:
    return _to(f"{request.path}/deeper")


@tricks.trick("304 to a request that had no condition", "NOTMODIFIED")
def not_modified(_: Request) -> Sent:
    return [head(status="304 Not Modified")]


def _refresh(name: str, what: str, value: str, parsed: str) -> None:
    tricks.add(
        f"refresh-{name}",
        f"header Refresh: {what}",
        lambda _: page(b"<p>x", "text/html", f"Refresh: {value}"),
        "SUCCESS",
        parsed,
    )


_refresh("itself", "the page itself", "0; url=/refresh-itself", "success|redirect")
_refresh("dots", "a host of 60 dots", "0;url=a" + "." * 60 + "!:x", "success|redirect|failed")
_refresh("semicolons", "30,000 semicolons", "0" + ";" * 30_000 + "url=/x", "success|redirect|failed")
_refresh("number", "in 10^5000 seconds", "9" * 5000 + ";url=/x", "success|redirect|failed")
_refresh("file", "a file of the crawler's machine", "0;url=file:///etc/passwd", "success|redirect|failed")
