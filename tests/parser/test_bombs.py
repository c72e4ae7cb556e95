"""Content made to exhaust a parser: each ends within the limits, with a status, and the next page is parsed."""

from __future__ import annotations

import io
import resource
import time
import zipfile
import zlib
from collections.abc import Iterator

import pytest

from nutch2py.conf import Configuration
from nutch2py.contracts import Parse
from nutch2py.parser.parsechecker import page_of
from nutch2py.parser.parsing import Parsing
from nutch2py.webpage import ParseStatusCode

TIMEOUT = 20
SLACK = 5.0  # seconds beyond the limit for ending a process on a busy machine
MEMORY = 1 << 30


@pytest.fixture(scope="module")
def parsing() -> Iterator[Parsing]:
    made = Parsing(Configuration.load(overrides={"parser.timeout": str(TIMEOUT), "http.agent.name": "x"}))
    yield made
    made.close()


def parse(parsing: Parsing, name: str, body: bytes, declared: str | None = None) -> Parse:
    """Parse, and hold the time limit and the memory limit of this process and its child."""
    conf = Configuration.load()
    begin = time.monotonic()
    url = f"http://h.test/{name}"
    found = parsing.parse(url, page_of(url, body, declared, conf))
    assert time.monotonic() - begin < TIMEOUT + SLACK
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        assert resource.getrusage(who).ru_maxrss * 1024 < 2 * MEMORY
    url = "http://h.test/after.rtf"
    after = parsing.parse(url, page_of(url, b"{\\rtf1 fine}", None, conf))
    assert (after.major, after.text) == (ParseStatusCode.SUCCESS, "fine")
    return found


def zipped(*files: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return out.getvalue()


def zeros(size: int) -> bytes:
    """Give a gzip file of ``size`` zero bytes, made of one packed block written down again and again."""
    block = 16 << 20
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + again * (size // block - 1)


def test_a_gzip_of_ten_gigabytes(parsing: Parsing) -> None:
    assert sum(len(zlib.decompressobj(wbits=31).decompress(zeros(n << 24))) for n in (2, 3)) == 5 << 24
    body = zeros(10 << 30)
    assert len(body) < 12 << 20
    found = parse(parsing, "ten.gz", body)
    assert found.major == ParseStatusCode.FAILED
    assert "parser.unpack.max.bytes" in found.args[0]


def test_a_zip_of_zips(parsing: Parsing) -> None:
    level = zipped(*[(f"{n}.txt", b"word " * 200_000) for n in range(10)])
    for _ in range(5):
        level = zipped(*[(f"{n}.zip", level) for n in range(10)])  # a million files, a terabyte
    found = parse(parsing, "bomb.zip", level)
    assert found.major == ParseStatusCode.SUCCESS  # what was read before a limit was met
    assert found.metadata["parser.unpack.limit"] == b"exceeded"
    assert 0 < len(found.text) <= 20_000_000


def test_a_zip_deeper_than_allowed(parsing: Parsing) -> None:
    level = b"the core"
    name = "core.txt"
    for depth in range(40):
        level, name = zipped((name, level)), f"{depth}.zip"
    found = parse(parsing, "deep.zip", level)
    assert found.major == ParseStatusCode.SUCCESS
    assert "the core" not in found.text
    assert "23.zip" in found.text


def test_many_small_files(parsing: Parsing) -> None:
    body = zipped(*[(f"{n}.txt", b"a") for n in range(3000)])
    found = parse(parsing, "many.zip", body)
    assert found.major == ParseStatusCode.SUCCESS
    assert found.text.count(".txt") == 1000


def test_a_document_whose_parts_unpack_to_gigabytes(parsing: Parsing) -> None:
    body = zipped(("[Content_Types].xml", b"<Types/>"), ("word/document.xml", b"<w:t>" + b" " * (300 << 20)))
    found = parse(parsing, "bomb.docx", body)
    assert found.major == ParseStatusCode.FAILED
    assert "parser.unpack.max.bytes" in found.args[0]


LAUGHS = (
    "<?xml version='1.0'?><!DOCTYPE lolz [<!ENTITY a0 'lol'>"
    + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12))
    + "]>"
)


@pytest.mark.parametrize(("name", "body"), [
    ("laughs.xml", LAUGHS + "<x>&a11;</x>"),
    ("laughs.rss", LAUGHS + "<rss><channel><title>&a11;</title></channel></rss>"),
    ("attribute.xml", LAUGHS + "<x y='&a11;'>t</x>"),
    ("quadratic.xml", "<!DOCTYPE x [<!ENTITY a '" + "a" * 100_000 + "'>]><x>" + "&a;" * 100_000 + "</x>"),
])  # fmt: skip
def test_entities_are_not_blown_up(parsing: Parsing, name: str, body: str) -> None:
    found = parse(parsing, name, body.encode())
    assert len(found.text) < 10 << 20


def test_entities_in_a_package_are_not_blown_up(parsing: Parsing) -> None:
    kind = b"application/vnd.oasis.opendocument.text"
    body = zipped(("mimetype", kind), ("content.xml", f"{LAUGHS}<p>&a11;</p>".encode()))
    assert len(parse(parsing, "laughs.odt", body).text) < 10 << 20


def test_external_entities_are_not_loaded(parsing: Parsing) -> None:
    body = b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>before &e; after</x>"
    found = parse(parsing, "xxe.xml", body)
    assert "root" not in found.text
    assert "before" in found.text


def test_an_attribute_of_100_megabytes(parsing: Parsing) -> None:
    html = b"<html><body><p id='" + b"x" * (100 << 20) + b"'>text</p><a href=/l>l</a>"
    found = parse(parsing, "long.html", html, "text/html")
    assert found.major in (ParseStatusCode.SUCCESS, ParseStatusCode.FAILED)
    xml = b"<x y='" + b"x" * (100 << 20) + b"'>text</x>"
    found = parse(parsing, "long.xml", xml)
    assert len(found.text) < 1000


def test_a_million_nested_elements(parsing: Parsing) -> None:
    html = b"<div>" * 1_000_000 + b"core" + b"<a href=/l>l</a>"
    found = parse(parsing, "nested.html", html, "text/html")
    assert (found.major, found.text) == (ParseStatusCode.SUCCESS, "core l")
    assert [link.url for link in found.outlinks] == ["http://h.test/l"]
    found = parse(parsing, "nested.xml", b"<x>" * 1_000_000)
    assert found.major in (ParseStatusCode.SUCCESS, ParseStatusCode.FAILED)
    found = parse(parsing, "nested.rtf", b"{\\rtf1 " + b"{" * 1_000_000)
    assert found.major == ParseStatusCode.FAILED


def pdf(*objects: bytes) -> bytes:
    """Make a PDF of objects numbered from 1; the first is the catalog."""
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out + b"trailer <</Size %d /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))


def test_pdfs_with_loops(parsing: Parsing) -> None:
    catalog = b"<</Type/Catalog /Pages 2 0 R>>"
    draws = b"/Resources <</XObject <</X 5 0 R>>>>"
    page = b"<</Type/Page /Parent 2 0 R /MediaBox[0 0 9 9] /Contents 4 0 R %b>>" % draws
    form = b"<</Type/XObject /Subtype/Form /BBox[0 0 9 9] %b /Length 5>>stream\n/X Do\nendstream" % draws
    content = b"<</Length 5>>stream\n/X Do\nendstream"
    loops = {
        "form.pdf": pdf(catalog, b"<</Type/Pages /Kids[3 0 R] /Count 1>>", page, content, form),
        "pages.pdf": pdf(catalog, b"<</Type/Pages /Kids[2 0 R 2 0 R] /Count 2>>"),
        "count.pdf": pdf(catalog, b"<</Type/Pages /Kids[3 0 R] /Count 2000000000>>", page, content, form),
        "self.pdf": pdf(b"1 0 R", b"<</Type/Pages /Kids[] /Count 0>>"),
        "prev.pdf": pdf(catalog).replace(b"/Root", b"/Prev 60 /Root"),
    }
    for name, body in loops.items():
        assert parse(parsing, name, body).major in (ParseStatusCode.SUCCESS, ParseStatusCode.FAILED)


def test_an_image_of_impossible_size(parsing: Parsing) -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\x7f\xff\xff\xff" * 2 + b"\x08\x06\0\0\0" + bytes(4)
    text = b"zTXt" + b"Comment\0\0" + zlib.compress(bytes(100 << 20))
    chunk = (len(text) - 4).to_bytes(4, "big") + text + bytes(4)
    found = parse(parsing, "big.png", header + chunk)
    assert found.metadata["tiff:ImageWidth"] == b"2147483647"


def test_a_bomb_behind_a_zip_that_lies_about_sizes(parsing: Parsing) -> None:
    body = bytearray(zipped(("a.txt", b"x" * (1 << 20))))
    at = body.index(b"PK\x01\x02")
    body[at + 24 : at + 28] = (10).to_bytes(4, "little")  # the directory says 10 bytes
    found = parse(parsing, "lie.zip", bytes(body))
    assert len(found.text) < 1 << 21
