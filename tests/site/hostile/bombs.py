"""Decompression bombs: encodings, PDF and archives."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable
from functools import cache
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import brotli
import zstandard

from tests.site.hostile.trick import Tricks, serving

tricks = Tricks()
_SIZE = 100_000_000
_PART = 3_000_000


@cache
def packed(encoding: str) -> bytes:
    """Return some hundred kilobytes that decode to 100 MB of zeros."""
    if encoding == "br":
        packer = brotli.Compressor(quality=1)
        return b"".join(packer.process(bytes(_PART)) for _ in range(_SIZE // _PART)) + packer.finish()
    if encoding == "zstd":
        stream = zstandard.ZstdCompressor().compressobj()
    else:
        stream = zlib.compressobj(9, zlib.DEFLATED, {"gzip": 31, "deflate": 15, "raw": -15}[encoding])
    return b"".join(stream.compress(bytes(_PART)) for _ in range(_SIZE // _PART)) + stream.flush()


def _encoded(name: str, what: str, encoding: str, make: Callable[[], bytes], parsed: str = "success") -> None:
    made = cache(make)
    answer = serving(made, "text/html", f"Content-Encoding: {encoding}")
    tricks.add(f"encoding-{name}", f"encoding: {what}", answer, "SUCCESS|EXCEPTION", parsed, make=made)


_PLAIN = b"<p>hello"
_encoded("gzip", "100 MB in gzip", "gzip", lambda: packed("gzip"))
_encoded("deflate", "100 MB in deflate", "deflate", lambda: packed("deflate"))
_encoded("raw", "100 MB in deflate without its header", "deflate", lambda: packed("raw"))
_encoded("brotli", "100 MB in brotli", "br", lambda: packed("br"))
_encoded("zstd", "100 MB in zstd", "zstd", lambda: packed("zstd"))
_encoded("lie", "gzip that is none", "gzip", lambda: _PLAIN)
_encoded("unknown", "an unknown encoding", "x-snappy, x-" + "y" * 900, lambda: _PLAIN)
_encoded(
    "nested",
    "gzip in gzip in gzip",
    "gzip, gzip, gzip",
    lambda: gzip.compress(gzip.compress(packed("gzip"))),
    "success|failed",
)
_encoded("many", "5,000 encodings", ", ".join(["gzip"] * 5000), lambda: gzip.compress(_PLAIN), "success|failed")
_encoded("members", "30,000 empty members of gzip", "gzip", lambda: gzip.compress(b"") * 30_000, "success|failed")
_encoded("cut", "gzip that breaks off", "gzip", lambda: gzip.compress(_PLAIN * 9000)[:-30])
_encoded(
    "quine",
    "members of gzip with names of 60,000 bytes",
    "gzip",
    lambda: (b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 60_000 + b"\0\x03\0" + bytes(8)) * 15,
    "success|failed",
)
_encoded(
    "blocks",
    "deflate of 2,000,000 empty blocks",
    "deflate",
    lambda: b"\x00\x00\x00\xff\xff" * 400_000,
    "success|failed",
)
_encoded(
    "broken",
    "gzip of 900 KB that breaks at its end",
    "gzip",
    lambda: gzip.compress(bytes(n * n % 251 for n in range(900_000)), 1)[:-9] + b"\xff" * 9000,
    "success|failed",
)


def zip_of(files: list[tuple[str, bytes]], how: int = ZIP_DEFLATED) -> bytes:
    out = BytesIO()
    with ZipFile(out, "w", how) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return out.getvalue()


def _pdf(*objects: bytes) -> bytes:
    """Return a PDF of these objects, the first one its catalogue."""
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, text in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, text)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out + b"trailer <</Size %d /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))


_CATALOG = b"<</Type/Catalog /Pages 2 0 R>>"
_FONT = b"<</Type/Font /Subtype/Type1 /BaseFont/Helvetica>>"


def _pdf_of(stream: bytes, filters: str = "/FlateDecode") -> bytes:
    pages = b"<</Type/Pages /Kids[3 0 R] /Count 1>>"
    leaf = b"<</Type/Page /Parent 2 0 R /MediaBox[0 0 612 792] /Contents 4 0 R /Resources<</Font<</F1 5 0 R>>>>>>"
    content = b"<</Length %d /Filter[%b]>>\nstream\n%b\nendstream" % (len(stream), filters.encode(), stream)
    return _pdf(_CATALOG, pages, leaf, content, _FONT)


@cache
def _nested_zip() -> bytes:
    inner = b"<p>word " * 1000
    name = "a.html"
    for _ in range(10):
        inner, name = zip_of([(f"{n}-{name}", inner) for n in range(10)]), "a.zip"
    return inner


def _overlapping_zip() -> bytes:
    """Return a ZIP of one compressed megabyte with 8,000 directory entries for it."""
    whole = zip_of([("a.txt", bytes(10_000_000))])
    start = whole.index(b"PK\x01\x02")
    end = whole.index(b"PK\x05\x06")
    entry = whole[start:end]
    folder = entry * 8000
    last = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 8000, 8000, len(folder), start, 0)
    return whole[:start] + folder + last


def _tar() -> bytes:
    name = b"a.html".ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + b"\x80\0\0\0\x7f" + b"\xff" * 7
    header = bytearray((name + b"00000000000\0" + b" " * 8 + b"0").ljust(512, b"\0"))
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + b"<p>x" * 1000


@cache
def _long_pdf() -> bytes:
    return _pdf_of(zlib.compress(_TEXT * 200_000, 9))


_TEXT = b"BT /F1 12 Tf 72 700 Td (ab) Tj ET\n"
tricks.document(
    "pdf-text",
    "a PDF of 400,000 lines of text in 30 KB",
    lambda: _pdf_of(zlib.compress(_TEXT * 400_000, 9)),
    "application/pdf",
)
tricks.document(
    "pdf-zeros", "a PDF with a stream of 100 MB of zeros", lambda: _pdf_of(packed("deflate")), "application/pdf"
)
tricks.document(
    "pdf-filters",
    "a stream in 200 filters",
    lambda: _pdf_of(zlib.compress(_TEXT), "/FlateDecode " * 200),
    "application/pdf",
)
tricks.document(
    "pdf-cycle",
    "a tree of pages that contains itself",
    lambda: _pdf(_CATALOG, b"<</Type/Pages /Kids[2 0 R 2 0 R] /Count 99999999>>"),
    "application/pdf",
)
tricks.document(
    "pdf-depth",
    "arrays in arrays, 200,000 deep",
    lambda: _pdf(_CATALOG, b"<</Type/Pages /Kids" + b"[" * 200_000 + b"]" * 200_000 + b">>"),
    "application/pdf",
)
tricks.document(
    "pdf-previous",
    "a table of objects that names itself as its elder",
    lambda: (
        b"%PDF-1.4\n1 0 obj\n<</Type/Catalog>>\nendobj\nxref\n0 1\n0000000000 65535 f \n"
        b"trailer <</Size 2 /Root 1 0 R /Prev 45>>\nstartxref\n45\n%%EOF"
    ),
    "application/pdf",
)
tricks.document(
    "pdf-pages",
    "100,000 empty pages",
    lambda: _pdf(
        _CATALOG,
        b"<</Type/Pages /Count 100000 /Kids[" + b"3 0 R " * 100_000 + b"]>>",
        b"<</Type/Page /Parent 2 0 R /MediaBox[0 0 9 9]>>",
    ),
    "application/pdf",
)
tricks.document(
    "pdf-numbers",
    "a number of 500,000 digits",
    lambda: _pdf_of(zlib.compress(b"BT " + b"9" * 500_000 + b" 0 Td ET")),
    "application/pdf",
)
tricks.document(
    "pdf-garbage", "%PDF and 900 KB of nothing", lambda: b"%PDF-1.7\n" + b"1 0 obj " * 110_000, "application/pdf"
)

tricks.document("zip-zeros", "a ZIP of 100 MB of zeros", lambda: zip_of([("a.txt", bytes(_SIZE))]), "application/zip")
tricks.document("zip-nested", "ten ZIPs in each other, ten in each", _nested_zip, "application/zip")
tricks.document(
    "zip-many", "a ZIP of 8,000 pages", lambda: zip_of([(f"{n}.html", b"<p>x") for n in range(8000)]), "application/zip"
)
tricks.document(
    "zip-pdfs",
    "35 PDFs of 200,000 lines in a ZIP",
    lambda: zip_of([(f"{n}.pdf", _long_pdf()) for n in range(35)]),
    "application/zip",
)
tricks.document(
    "zip-names",
    "names that climb, repeat and have 60,000 letters",
    lambda: zip_of([("../../../etc/passwd", b"x"), ("/tmp/x", b"x"), ("a" * 60_000, b"x"), ("\x01\n.html", b"<p>x")]),
    "application/zip",
)
tricks.document("zip-overlap", "a ZIP with entries that share the same bytes", _overlapping_zip, "application/zip")
tricks.document("zip-lie", "a ZIP that is none", lambda: b"PK\x03\x04" + b"\xff" * 900_000, "application/zip")
tricks.document("gzip-zeros", "100 MB in a .gz", lambda: packed("gzip"), "application/gzip")
tricks.document("tar-endless", "a tar with a file of 8 EB", _tar, "application/x-tar")
