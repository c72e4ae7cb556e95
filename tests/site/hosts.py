"""A generated web of several hosts on loopback addresses, with a record of all requests.

Every host has 60 pages, many with links to other hosts, documents, a page that robots.txt excludes, and one that no
parser finishes. Responses depend on host and path only.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from io import BytesIO
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from tests.small_http import Answering, QuietServer

HOSTS = tuple(f"127.0.71.{number}" for number in range(1, 7))
PAGES = 60
_WORDS = (
    "crawl",
    "table",
    "batch",
    "round",
    "host",
    "queue",
    "delay",
    "link",
    "anchor",
    "score",
    "rank",
    "index",
    "token",
)


class Request(NamedTuple):
    """One request: host and path, time of arrival (seconds, monotonic), and client address.

    ``owner``: the entry of :attr:`Web.owner`.
    """

    host: str
    path: str
    time: float
    owner: object
    client: str


class Web:
    """The hosts while they are served; ``owner`` maps a client's port to the owner of the connection."""

    def __init__(self, port: int, names: tuple[str, ...]) -> None:
        self.port, self.hosts = port, names
        self.requests: list[Request] = []
        self.owner: Callable[[int], object] = lambda _: None

    def url(self, host: str, path: str) -> str:
        """Return the URL of a path."""
        return f"http://{host}:{self.port}{path}"

    def seeds(self) -> list[str]:
        """Return eight pages of each host, a document, and the page that no parser finishes."""
        found = [self.url(host, f"/p/{number}.html") for host in self.hosts for number in range(8)]
        found += [self.url(host, "/doc/paper") for host in self.hosts]
        return [*found, self.url(self.hosts[0], "/doc/endless")]


class _Handler(Answering):
    owner: object = None
    asked = False
    server: _Server

    def serve(self) -> None:
        came = time.monotonic()
        web, host = self.server.web, str(self.server.server_address[0])
        if not self.asked:
            self.asked, self.owner = True, web.owner(self.client_address[1])
        web.requests.append(Request(host, self.path, came, self.owner, self.client_address[0]))
        status, content_type, body, location = _answer(web, host, self.path)
        self.answer(status, body, content_type, location)


class _Server(QuietServer):
    web: Web


@contextmanager
def web(names: tuple[str, ...] = HOSTS) -> Iterator[Web]:
    """Serve the hosts, which are addresses of this machine, on one free port."""
    with ExitStack() as stack:
        port = 0
        servers = []
        for host in names:
            server = stack.enter_context(_Server((host, port), _Handler))
            port = server.server_address[1]
            servers.append(server)
        served = Web(port, names)
        for server in servers:
            server.web = served
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            stack.callback(server.shutdown)
        yield served


def _answer(web: Web, host: str, path: str) -> tuple[int, str, bytes, str]:
    """Return status, content type, body and location."""
    at = web.hosts.index(host)
    folder, _, name = path[1:].partition("/")
    stem = name.removesuffix(".html")
    if path == "/robots.txt":
        if at == 3:
            return 404, "text/plain", b"none", ""
        return 200, "text/plain", b"User-agent: *\nDisallow: /private/\n", ""
    if folder == "doc" and name in _DOCUMENTS:
        content_type, make = _DOCUMENTS[name]
        return 200, content_type, make(at), ""
    if folder == "private":
        return 200, "text/html", b"<title>not to be seen</title>", ""
    if folder != "p" or not stem.isdigit() or int(stem) >= PAGES:
        return 404, "text/html", b"none", ""
    number = int(stem)
    if number % 17 == 13:
        return 301, "text/html", b"", f"/p/{(number + 5) % PAGES}.html"
    if number % 19 == 14:
        return 302, "text/html", b"", web.url(web.hosts[(at + 1) % len(web.hosts)], f"/p/{number + 1}.html")
    if number % 23 == 12:
        return 410, "text/html", b"gone", ""
    if number % 29 == 11:
        return 500, "text/html", b"failed", ""
    if number % 31 == 10:
        return 200, "text/html", b'<meta http-equiv="refresh" content="0;url=/p/1.html">', ""
    return 200, *_page(web, at, number), ""


def _page(web: Web, at: int, number: int) -> tuple[str, bytes]:
    links = [f"/p/{(number * 7 + 8 + step) % PAGES}.html" for step in range(4)]
    links += [
        web.url(web.hosts[(at + step) % len(web.hosts)], f"/p/{(number * 5 + step) % PAGES}.html") for step in (1, 2, 4)
    ]
    links += [f"/missing/{number}.html"] if number % 9 == 0 else []
    links += ["/private/page.html", "/doc/report"] if number % 20 == 1 else []
    if number % 16 == 9:  # the same on every host, without links of its own: duplicates
        text, links, head = f"What all hosts say about {_WORDS[number % len(_WORDS)]}.", [], "<title>The same</title>"
    else:
        words = " ".join(_WORDS[(number * 3 + at * 5 + step * step) % len(_WORDS)] for step in range(40))
        text = f"Page {number} of host {at}. {words}. Grüße, 你好, \x85\u2028 naïve\rcafé\t{number}."
        head = f"<title>Page {number} of {at}</title>"
    if number % 22 == 8:
        head += '<meta name="robots" content="noindex">'
    if number % 22 == 16:
        head += '<meta name="robots" content="nofollow">'
    anchors = "".join(f'<a href="{url}">to&#13;{position}&#9;from {number}</a>\n' for position, url in enumerate(links))
    page = f"<html><head>{head}</head><body><p>{text}</p>\r\n{anchors}</body></html>"
    if number % 3 == 0:
        return "text/html; charset=iso-8859-1", page.encode("iso-8859-1", "xmlcharrefreplace")
    return "text/html; charset=utf-8", page.encode()


def _pdf(stream: bytes) -> bytes:
    packed = zlib.compress(stream, 9)
    font = b"<</Type/Font /Subtype/Type1 /BaseFont/Helvetica>>"
    page = b"<</Type/Page /Parent 2 0 R /MediaBox[0 0 612 792] /Contents 4 0 R /Resources<</Font<</F1 5 0 R>>>>>>"
    content = b"<</Length %d /Filter/FlateDecode>>\nstream\n%b\nendstream" % (len(packed), packed)
    objects = (b"<</Type/Catalog /Pages 2 0 R>>", b"<</Type/Pages /Kids[3 0 R] /Count 1>>", page, content, font)
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, text in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, text)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out + b"trailer <</Size 6 /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % start)


def _zip(**files: bytes) -> bytes:
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@cache
def paper(at: int = 0) -> bytes:
    """Return a PDF of one line, different for each host, since equal pages would be deduplicated."""
    return _pdf(b"BT /F1 12 Tf 72 700 Td (A paper about crawling %d hosts) Tj ET\n" % (at + 1))


@cache
def endless(_: int = 0) -> bytes:
    """Return a small archive that takes minutes: a thousand documents, each as large as the parser reads."""
    document = _pdf(b"BT /F1 12 Tf 72 700 Td (ab) Tj ET\n" * 200_000)
    return _zip(**{f"{number}.pdf": document for number in range(1000)})


@cache
def report(at: int = 0) -> bytes:
    """Return a docx of one paragraph, different for each host."""
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    paragraph = f"<w:p><w:r><w:t>A report of {at + 1} pages</w:t></w:r></w:p>"
    text = f"<w:document xmlns:w='{word}'><w:body>{paragraph}</w:body></w:document>"
    types = "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>"
    return _zip(**{"[Content_Types].xml": types.encode(), "word/document.xml": text.encode()})


_DOCUMENTS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "paper": ("application/pdf", paper),
    "endless": ("application/zip", endless),
    "report": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", report),
}
