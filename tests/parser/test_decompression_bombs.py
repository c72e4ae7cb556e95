"""Content that exhausts a parser: each parse ends within the limits with a status, and the next page is parsed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import resource
import struct
import tarfile
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
import zstandard

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.formats.archive import ArchiveParser
from nutch2py.parser.parsechecker import create_page
from nutch2py.parser.row_parser import RowParser
from nutch2py.parser.sitemap.sitemap_parser import parse_sitemap
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.webpage import ParseStatusCode
from tests.parser.formats import samples

TIMEOUT = 20
MEMORY = 1 << 30


@pytest.fixture(scope="module")
def parsing() -> Iterator[ParseWorkerClient]:
    made = ParseWorkerClient(Configuration.load(overrides={"parser.timeout": str(TIMEOUT), "http.agent.name": "x"}))
    yield made
    made.close()


def parse(parsing: ParseWorkerClient, name: str, body: bytes, declared: str | None = None) -> Parse:
    """Parse, and hold the time limit and the memory limit of this process and its child."""
    conf = Configuration.load()
    url = f"http://h.test/{name}"
    page = create_page(url, body, declared, conf)
    start = time.process_time()
    found = parsing.parse(url, page)
    assert time.process_time() - start < TIMEOUT  # the time of the worker is limited by parser.timeout
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        assert resource.getrusage(who).ru_maxrss * 1024 < 2 * MEMORY
    url = "http://h.test/after.rtf"
    after = parsing.parse(url, create_page(url, b"{\\rtf1 fine}", None, conf))
    assert (after.major, after.text) == (ParseStatusCode.SUCCESS, "fine")
    return found


def zipped(*files: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return out.getvalue()


def zeros(size: int) -> bytes:
    """Return a gzip file of ``size`` zero bytes, made by repeating one compressed block."""
    block = 16 << 20
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + again * (size // block - 1)


def test_gzip_of_ten_gigabytes_is_limited(parsing: ParseWorkerClient) -> None:
    assert sum(len(zlib.decompressobj(wbits=31).decompress(zeros(n << 24))) for n in (2, 3)) == 5 << 24
    body = zeros(10 << 30)
    assert len(body) < 12 << 20
    found = parse(parsing, "ten.gz", body)
    assert found.major == ParseStatusCode.FAILED
    assert "parser.unpack.max.bytes" in found.args[0]


def test_zip_of_zips_is_limited(parsing: ParseWorkerClient) -> None:
    level = zipped(*[(f"{n}.txt", b"word " * 200_000) for n in range(10)])
    for _ in range(5):
        level = zipped(*[(f"{n}.zip", level) for n in range(10)])  # a million files, a terabyte
    found = parse(parsing, "bomb.zip", level)
    assert found.major == ParseStatusCode.SUCCESS  # what was read before a limit was met
    assert found.metadata["parser.unpack.limit"] == b"exceeded"
    assert 0 < len(found.text) <= 20_000_000


def test_zip_nested_too_deep_is_limited(parsing: ParseWorkerClient) -> None:
    level = b"the core"
    name = "core.txt"
    for depth in range(40):
        level, name = zipped((name, level)), f"{depth}.zip"
    found = parse(parsing, "deep.zip", level)
    assert found.major == ParseStatusCode.SUCCESS
    assert "the core" not in found.text
    assert "23.zip" in found.text


def test_many_small_files_are_limited(parsing: ParseWorkerClient) -> None:
    body = zipped(*[(f"{n}.txt", b"a") for n in range(3000)])
    found = parse(parsing, "many.zip", body)
    assert found.major == ParseStatusCode.SUCCESS
    assert found.text.count(".txt") == 1000


def test_document_parts_of_gigabytes_are_limited(parsing: ParseWorkerClient) -> None:
    body = zipped(("[Content_Types].xml", b"<Types/>"), ("word/document.xml", b"<w:t>" + b" " * (300 << 20)))
    found = parse(parsing, "bomb.docx", body)
    assert found.major == ParseStatusCode.FAILED
    assert "parser.unpack.max.ratio" in found.args[0]


@pytest.mark.parametrize(("ratio", "whole"), [("100", False), ("0", True)])
def test_package_unpack_ratio_is_limited(ratio: str, whole: bool) -> None:
    conf = Configuration.load(overrides={"parser.unpack.max.ratio": ratio, "http.agent.name": "x"})
    one = zipped(("small.txt", b"word " * 1000), ("large.txt", b"word " * 2_000_000))
    with closing(ParseWorkerClient(conf)) as parsing:
        found = parse(parsing, "a.zip", one)
    assert found.major == ParseStatusCode.SUCCESS
    assert ("parser.unpack.limit" in found.metadata) != whole
    assert len(found.text) > (1_000_000 if whole else 4_000)


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
def test_xml_entities_are_not_expanded(parsing: ParseWorkerClient, name: str, body: str) -> None:
    found = parse(parsing, name, body.encode())
    assert len(found.text) < 10 << 20


def test_xml_entities_in_package_are_not_expanded(parsing: ParseWorkerClient) -> None:
    kind = b"application/vnd.oasis.opendocument.text"
    body = zipped(("mimetype", kind), ("content.xml", f"{LAUGHS}<p>&a11;</p>".encode()))
    assert len(parse(parsing, "laughs.odt", body).text) < 10 << 20


def test_external_entities_are_not_loaded(parsing: ParseWorkerClient) -> None:
    body = b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>before &e; after</x>"
    found = parse(parsing, "xxe.xml", body)
    assert "root" not in found.text
    assert "before" in found.text


def test_attribute_of_100_megabytes_is_limited(parsing: ParseWorkerClient) -> None:
    html = b"<html><body><p id='" + b"x" * (100 << 20) + b"'>text</p><a href=/l>l</a>"
    found = parse(parsing, "long.html", html, "text/html")
    assert found.major in (ParseStatusCode.SUCCESS, ParseStatusCode.FAILED)
    xml = b"<x y='" + b"x" * (100 << 20) + b"'>text</x>"
    found = parse(parsing, "long.xml", xml)
    assert len(found.text) < 1000


def test_million_nested_elements_are_limited(parsing: ParseWorkerClient) -> None:
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


def test_pdf_loops_terminate(parsing: ParseWorkerClient) -> None:
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


def test_image_with_impossible_size_is_rejected(parsing: ParseWorkerClient) -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\x7f\xff\xff\xff" * 2 + b"\x08\x06\0\0\0" + bytes(4)
    text = b"zTXt" + b"Comment\0\0" + zlib.compress(bytes(100 << 20))
    chunk = (len(text) - 4).to_bytes(4, "big") + text + bytes(4)
    found = parse(parsing, "big.png", header + chunk)
    assert found.metadata["tiff:ImageWidth"] == b"2147483647"


def test_zip_with_false_sizes_is_limited(parsing: ParseWorkerClient) -> None:
    body = bytearray(zipped(("a.txt", b"x" * (1 << 20))))
    at = body.index(b"PK\x01\x02")
    body[at + 24 : at + 28] = (10).to_bytes(4, "little")  # the directory says 10 bytes
    found = parse(parsing, "lie.zip", bytes(body))
    assert len(found.text) < 1 << 21


def numbered(form: str, count: int) -> bytes:
    return "".join(form.format(number) for number in range(count)).encode()


PAGES = {
    "open formatting elements": b"<p>" + numbered("<b id={}>", 1_000) + b"<p>x" * 10_000,
    "open formatting elements of all kinds": b"<p>"
    + numbered("<b id={0}><i id={0}><u id={0}><em id={0}>", 600)
    + b"<p>x" * 20_000,
    "attributes of one element": b"<p " + numbered("b{} ", 209_000) + b">x",
    "attributes of html, again and again": numbered("<html b{}=1>", 60_000) + b"x",
    "iframes that are not closed": b"<br/>" + b"<iframe " * 130_000 + b">x",
    "comments that are not closed": b"<!-- RDF http://web.resource.org/cc/ -->" + b"<!-- " * 130_000,
    "nested, with end tags in comments": b"<div><!--</div>-->" * 60_000 + b"x",
}


@pytest.mark.parametrize("name", PAGES)
def test_page_with_excessive_standard_processing_is_limited(parsing: ParseWorkerClient, name: str) -> None:
    """Each is small; its text and links are found, and the process that parses it lives on."""
    page = b"<title>t</title><a href=/l>l</a>" + PAGES[name]
    assert parse(parsing, "before.html", b"<title>t", "text/html").title == "t"
    worker_pid = parsing.worker_pid
    found = parse(parsing, "bomb.html", page, "text/html")
    assert (found.major, found.title) == (ParseStatusCode.SUCCESS, "t")
    assert "http://h.test/l" in [link.url for link in found.outlinks]
    assert parsing.worker_pid == worker_pid is not None


@pytest.mark.parametrize(("properties", "name", "reason"), [
    ({"parser.html.max.copies": "0"}, "open formatting elements of all kinds", "parser.child.memory.mb"),
    ({"parser.html.max.attributes": "0", "parser.timeout": "2"}, "attributes of one element", "2 s (parser.timeout)"),
])  # fmt: skip
def test_unbounded_parse_is_killed_with_its_worker(properties: dict[str, str], name: str, reason: str) -> None:
    """Without the limits before the parser those of time and memory hold, C code or not."""
    conf = Configuration.load(overrides={"http.agent.name": "x", **properties})
    parsing = ParseWorkerClient(conf)
    url = "http://h.test/bomb.html"
    found = parsing.parse(url, create_page(url, PAGES[name], "text/html", conf))
    assert found.major == ParseStatusCode.FAILED
    assert reason in found.args[0]
    assert parsing.parse(url, create_page(url, b"<title>next", "text/html", conf)).title == "next"
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < 2 * MEMORY
    parsing.close()


INTERNAL = "<!DOCTYPE x [<!ENTITY e '" + "boo" * 100 + "'><!ENTITY f '" + "&e;" * 30 + "'>]>"


@pytest.mark.parametrize(("name", "body"), [
    ("internal.xml", INTERNAL + "<x y='&f;'>Tom &amp; Jerry &f; &lt;b&gt; &quot;&apos; &#65;&#x42; end</x>"),
    ("internal.rss", INTERNAL + "<rss><channel><title>Tom &amp; Jerry &f; &lt;b&gt; end</title></channel></rss>"),
])  # fmt: skip
def test_document_entities_are_not_resolved(parsing: ParseWorkerClient, name: str, body: str) -> None:
    found = parse(parsing, name, body.encode())
    assert "boo" not in found.text
    assert "Tom & Jerry &f;" in found.text or "Tom & Jerry &f;" in found.title
    assert len(found.text) < 200
    if name.endswith(".xml"):
        assert "<b> \"' AB end" in found.text


def test_sitemap_entities_are_not_resolved() -> None:
    body = INTERNAL + "<urlset><url><loc>http://h.test/?a=1&amp;b=2&f;</loc></url><url><loc>/&e;</loc></url></urlset>"
    assert [entry.url for entry in parse_sitemap(body.encode()).entries] == ["http://h.test/?a=1&b=2&f;", "/&e;"]


def sparse_tar(size: int, name: str = "hole.bin") -> bytes:
    """Return a tar of GNU's old sparse format with one file, a hole of ``size`` bytes."""
    header = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:410] = b"%011o\0%011o\0" % (0, 0)
    header[483:495] = b"%011o\0" % size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


def sparse_pax_tar(size: int) -> bytes:
    """Return a tar of the PAX sparse format 1.0."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("GNUSparseFile.0/hole.bin")
        entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(size),
                             "GNU.sparse.name": "hole.bin"}  # fmt: skip
        body = b"1\n0\n0\n".ljust(512, b"\0")
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
    return out.getvalue()


def ppt_with_object(content: bytes) -> bytes:
    """Return a presentation with a compressed object (MS-PPT 2.10.34)."""
    packed = len(content).to_bytes(4, "little") + zlib.compress(content)
    return samples.compound(samples.ppt(samples.atom(0x1011, packed, version=0x10)))


def pdf_with_attachment(content: bytes) -> bytes:
    packed = zlib.compress(content)
    file = b"<</Type/EmbeddedFile/Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(packed), packed)
    names = b"<</EmbeddedFiles<</Names[(a.txt)<</Type/Filespec/F(a.txt)/EF<</F 11 0 R>>>>]>>>>"
    made = samples.pdf([b"BT /F 9 Tf (text) Tj ET"], more=[b"<<>>", file, names])
    return made.replace(b"/Outlines 10 0 R", b"/Names 12 0 R   ")


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("hole.tar", sparse_tar(99 << 20)),
        ("pax.tar", sparse_pax_tar(99 << 20)),
        ("packed.tar.gz", gzip.compress(sparse_tar(99 << 20))),
        ("in.zip", zipped(("hole.tar", sparse_tar(99 << 20)))),
        ("spaces.txt.bz2", bz2.compress(b" " * (99 << 20))),
        ("spaces.txt.xz", lzma.compress(b" " * (99 << 20))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_small_package_does_not_unpack_to_hundreds_of_times_its_size(
    parsing: ParseWorkerClient, name: str, body: bytes
) -> None:
    found = parse(parsing, name, body)
    if found.major == ParseStatusCode.FAILED:
        assert "parser.unpack.max.ratio" in found.args[0]
    else:
        assert len(found.text) < 100  # the names of files inside


def packed(package: bytes) -> bytes:
    """Return a ZIP with its files compressed."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        return zipped(*((name, archive.read(name)) for name in archive.namelist()))


SPACES = 12 << 20
PACKAGES: dict[str, Callable[[], bytes]] = {
    "a.txt.zst": lambda: zstandard.compress(bytes(SPACES)),
    "a.txt.gz": lambda: gzip.compress(bytes(SPACES), 1),
    "a.epub": lambda: packed(samples.epub(" " * SPACES)),
    "a.odt": lambda: packed(samples.odt(" " * SPACES)),
    "a.pptx": lambda: packed(samples.pptx([" " * SPACES])),
    "a.xlsx": lambda: packed(samples.xlsx(" " * SPACES)),
    "a.ppt": lambda: ppt_with_object(b"word " * (SPACES // 5)),
    "a.pdf": lambda: pdf_with_attachment(b"word " * (SPACES // 5)),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_counts_what_it_unpacks_to(conf: Configuration, name: str) -> None:
    """In this process: what is unpacked before the limit is not kept as text."""
    body = PACKAGES[name]()
    assert len(body) < SPACES // 100
    url = f"http://h.test/{name}"
    found = RowParser(conf).parse(url, create_page(url, body, None, conf))
    assert found.major == ParseStatusCode.FAILED or len(found.text) < SPACES // 5


def test_holes_of_tar_are_rejected_before_they_are_made() -> None:
    conf = Configuration.load()
    page = create_page("http://h.test/hole.tar", sparse_tar(99 << 20), None, conf)
    tracemalloc.start()
    try:
        found = ArchiveParser(conf).parse("http://h.test/hole.tar", page)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert "parser.unpack.max.ratio" in found.args[0]


def overlapping_zip(count: int, kernel_bytes: int, *, whole: bool) -> bytes:
    """Return a zip whose files share their data.

    Args:
        count: number of entries.
        kernel_bytes: unpacked bytes of the shared data.
        whole: all entries are the same file; else each starts a stored block before the next and reaches over it.
    """
    packer = zlib.compressobj(9, wbits=-15)
    kernel_text = b"word " * (kernel_bytes // 5)
    kernel = packer.compress(kernel_text) + packer.flush()
    files, directory = bytearray(), bytearray()
    bodies = [(kernel, kernel_text)]
    for number in range(1, 1 if whole else count):
        name = b"%05d.txt" % number
        inner = local_header(b"%05d.txt" % (number - 1), *bodies[-1])
        bodies.append(
            (b"\0" + struct.pack("<HH", len(inner), len(inner) ^ 0xFFFF) + inner + bodies[-1][0], inner + bodies[-1][1])
        )
        del name
    last = len(bodies) - 1
    files += local_header(b"%05d.txt" % last, *bodies[last]) + bodies[last][0]
    offset = 0
    for number in range(count):
        index = last if whole else last - number
        data, text = bodies[index]
        name = b"%05d.txt" % (number if whole else index)
        directory += (
            struct.pack(
                "<4s6H3I5H2I",
                b"PK\1\2",
                20,
                20,
                0,
                8,
                0,
                0,
                zlib.crc32(text),
                len(data),
                len(text),
                len(name),
                0,
                0,
                0,
                0,
                0,
                offset,
            )
            + name
        )
        offset += 0 if whole else len(local_header(name, data, text)) + 5
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(directory), len(files), 0)
    return bytes(files + directory + end)


def local_header(name: bytes, data: bytes, text: bytes) -> bytes:
    return (
        struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0, zlib.crc32(text), len(data), len(text), len(name), 0) + name
    )


@pytest.mark.parametrize("whole", [True, False], ids=["same-file", "quoted"])
def test_overlapping_files_of_zip_are_not_unpacked_again(parsing: ParseWorkerClient, whole: bool) -> None:
    body = overlapping_zip(200, 100_000, whole=whole)
    found = parse(parsing, "overlap.zip", body)
    assert len(found.text) < 1_000_000


@pytest.mark.parametrize(("limit", "length"), [("5000", 5000), ("0", 0), ("1000000", 199_999)])
def test_characters_of_document_are_limited_by_property(limit: str, length: int) -> None:
    conf = Configuration.load(overrides={"parser.document.max.characters": limit})
    page = create_page("http://h.test/a.zip", zipped(("a.txt", b"word " * 40_000)), None, conf)
    found = ArchiveParser(conf).parse("http://h.test/a.zip", page)
    assert abs(len(found.text) - length) <= 6
