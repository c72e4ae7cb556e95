"""Builders of small files of each format, for tests, growth tests and fuzzing."""

from __future__ import annotations

import io
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
SECTOR, MINI = 512, 64


def zipped(files: Mapping[str, bytes] | Iterable[tuple[str, bytes]], packed: bool = True) -> bytes:
    """Return a ZIP; names may come twice."""
    out = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(out, "w", kind) as archive:
        for name, content in files.items() if isinstance(files, Mapping) else files:
            with archive.open(zipfile.ZipInfo(name), "w") as file:
                file.write(content)
    return out.getvalue()


def tarred(files: Iterable[tuple[str, bytes]], **headers: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", pax_headers=headers) as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def relations(targets: Iterable[tuple[str, str]], kind: str = "hyperlink") -> bytes:
    entries = "".join(f'<Relationship Id="{key}" Type="x/{kind}" Target="{target}"/>' for key, target in targets)
    return f"<Relationships>{entries}</Relationships>".encode()


def docx(body: str, targets: Iterable[tuple[str, str]] = (), kind: str = "hyperlink") -> bytes:
    return zipped(
        {
            "[Content_Types].xml": b"<Types/>",
            "docProps/core.xml": b"<p><title>T</title><creator>A</creator></p>",
            "word/document.xml": f'<w:document xmlns:w="w" xmlns:r="r">{body}</w:document>'.encode(),
            "word/_rels/document.xml.rels": relations(targets, kind),
        }
    )


def xlsx(cells: str, strings: str = "<si><t>s</t></si>", sheets: str = '<sheet name="S" id="1"/>') -> bytes:
    return zipped(
        {
            "[Content_Types].xml": b"<Types/>",
            "xl/workbook.xml": f"<workbook><sheets>{sheets}</sheets></workbook>".encode(),
            "xl/_rels/workbook.xml.rels": relations([("1", "worksheets/sheet1.xml")], "worksheet"),
            "xl/sharedStrings.xml": f"<sst>{strings}</sst>".encode(),
            "xl/styles.xml": b'<s><numFmt numFmtId="170" formatCode="yyyy"/><cellXfs><xf numFmtId="14"/></cellXfs></s>',
            "xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{cells}</sheetData></worksheet>".encode(),
        }
    )


def lists(text: str, paragraphs: int, levels: int = 1, styles: str = "") -> bytes:
    """Make a docx of list items; ``text``: of a level's number."""
    level = f'<lvl ilvl="0"><start val="1"/><lvlText val="{text}"/></lvl>'
    numbering = f'<numbering><abstractNum abstractNumId="1">{level * levels}</abstractNum>'
    numbering += '<num numId="1"><abstractNumId val="1"/></num></numbering>'
    item = '<p><pPr><pStyle val="0"/><numPr><ilvl val="8"/><numId val="1"/></numPr></pPr><r><t>x</t></r></p>'
    if styles:
        item = '<p><pPr><pStyle val="0"/></pPr><r><t>x</t></r></p>'
    return zipped({
        "word/document.xml": f"<document>{item * paragraphs}</document>".encode(),
        "word/numbering.xml": numbering.encode(),
        "word/styles.xml": f"<styles>{styles}</styles>".encode(),
    })  # fmt: skip


def formats(styles: str, cells: int, code: str = "0.0") -> bytes:
    """Make an xlsx of numbers in cells of these styles; format 9 has its own code."""
    parts = {
        "xl/workbook.xml": b'<workbook><sheets><sheet name="S" id="1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": b'<R><Relationship Id="1" Type="x/worksheet" Target="s.xml"/></R>',
        "xl/styles.xml": f'<s><numFmt numFmtId="9" formatCode="{code}"/><cellXfs>{styles}</cellXfs></s>'.encode(),
        "xl/s.xml": ("<w>" + '<row><c s="0"><v>1.5</v></c></row>' * cells + "</w>").encode(),
    }
    return zipped(parts)


def pptx(slides: Iterable[str]) -> bytes:
    files = {f"ppt/slides/slide{n}.xml": f'<p:sld xmlns:p="p">{text}</p:sld>'.encode() for n, text in enumerate(slides)}
    return zipped({"[Content_Types].xml": b"<Types/>", **files})


def odt(body: str, meta: str = "<title>T</title>") -> bytes:
    return zipped(
        {
            "mimetype": b"application/vnd.oasis.opendocument.text",
            "content.xml": f'<o xmlns:xlink="x" xmlns:text="t">{body}</o>'.encode(),
            "meta.xml": f"<m>{meta}</m>".encode(),
        }
    )


def epub(chapter: str, spine: str = '<itemref idref="c"/>', items: str = '<item id="c" href="c.html"/>') -> bytes:
    return zipped(
        {
            "mimetype": b"application/epub+zip",
            "META-INF/container.xml": b'<c><rootfile full-path="book.opf"/></c>',
            "book.opf": f"<package><title>T</title>{items}{spine}</package>".encode(),
            "c.html": chapter.encode(),
        }
    )


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    whole = [(b"IHDR", struct.pack(">II5B", 4, 3, 8, 2, 0, 0, 0)), *chunks, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in whole
    )


def jpeg(*segments: tuple[int, bytes]) -> bytes:
    whole = [*segments, (0xC0, struct.pack(">BHHB", 8, 3, 4, 3))]
    parts = [b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data for marker, data in whole]
    return b"\xff\xd8" + b"".join(parts) + b"\xff\xd9"


def tiff(entries: Iterable[tuple[int, int, int, bytes]], data: bytes = b"") -> bytes:
    """Return a TIFF of one directory; an entry is tag, type, count and its value of four bytes."""
    listed = list(entries)
    directory = struct.pack("<H", len(listed)) + b"".join(
        struct.pack("<HHI", tag, kind, count) + value for tag, kind, count, value in listed
    )
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory + bytes(4)


def pdf(pages: Iterable[bytes], annotations: str = "", fonts: str = "", more: Iterable[bytes] = ()) -> bytes:
    """Return a PDF with a page for each content stream, its annotations on every page.

    ``fonts``: in addition to Helvetica (F); ``more``: further objects, from number 10 on; the outline is the first.
    """
    streams = list(pages)
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(streams)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R/Outlines 10 0 R>>" if more else b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {len(streams)}/Kids[{kids}]>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for n, stream in enumerate(streams):
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {5 + 2 * n} 0 R"
            f"/Resources<</Font<</F 3 0 R{fonts}>>>>/Annots[{annotations}]>>".encode()
        )
        objects.append(b"<</Length %d>>stream\n" % len(stream) + stream + b"\nendstream")
    if more:
        objects += [b"null"] * (9 - len(objects)) + [*more]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out) + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)


def _vertical() -> dict[str, Any]:
    cmap = b"begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange"
    cmap += b" 1 beginbfrange <0020> <007e> <0020> endbfrange endcmap"
    letters = b"/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 600/FontDescriptor 14 0 R>>"
    size = b"/Flags 4/ItalicAngle 0/Ascent 700/Descent -200/FontBBox[0 -200 1000 900]>>"
    return {
        "fonts": "/G 11 0 R",
        "more": [
            b"<<>>",
            b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-V/DescendantFonts[12 0 R]/ToUnicode 13 0 R>>",
            b"<</Type/Font/Subtype/CIDFontType2/BaseFont/X" + letters,
            b"<</Length %d>>stream\n" % len(cmap) + cmap + b"\nendstream",
            b"<</Type/FontDescriptor/FontName/X" + size,
        ],
    }


VERTICAL = _vertical()  # arguments of pdf() for a font G for vertical writing, of two bytes a letter


def link(target: str) -> str:
    return f"<</Type/Annot/Subtype/Link/Rect[0 0 600 800]/A<</S/URI/URI({target})>>>>"


def compound(streams: Mapping[str, bytes], share: bool = False) -> bytes:
    """Return a compound file ([MS-CFB], version 3) of streams by ``folder/name``; ``share``: they share sectors."""
    folders: dict[str, list[str]] = {"": []}
    for path in streams:
        parts = path.split("/")
        for depth in range(len(parts)):
            parent, here = "/".join(parts[:depth]), "/".join(parts[: depth + 1])
            if here not in folders.setdefault(parent, []):
                folders[parent].append(here)
    entries = [""]
    numbers = {"": 0}
    for path in [*folders, *streams]:
        if path not in numbers:
            numbers[path] = len(entries)
            entries.append(path)
    fat: list[int] = []
    mini: list[int] = []
    body, small = bytearray(), bytearray()
    places: dict[str, int] = {}

    def chain(table: list[int], count: int) -> int:
        start = len(table)
        table += [*range(start + 1, start + count), END] if count else []
        return start if count else END

    for path, content in streams.items():
        if share and places:
            places[path] = next(iter(places.values()))
        elif len(content) < 4096:
            places[path] = chain(mini, -(-len(content) // MINI))
            small += content + bytes(-len(content) % MINI)
        else:
            places[path] = chain(fat, -(-len(content) // SECTOR))
            body += content + bytes(-len(content) % SECTOR)
    root = chain(fat, -(-len(small) // SECTOR))
    body += small + bytes(-len(small) % SECTOR)
    mini += [FREE] * (-len(mini) % 128)
    minifat = chain(fat, len(mini) // 128)
    body += struct.pack(f"<{len(mini)}I", *mini)
    siblings: dict[str, tuple[int, int]] = {}

    def tree(paths: list[str]) -> int:
        if not paths:
            return FREE
        middle = len(paths) // 2
        siblings[paths[middle]] = tree(paths[:middle]), tree(paths[middle + 1 :])
        return numbers[paths[middle]]

    children = {path: tree(sorted(names, key=lambda p: (len(p), p.upper()))) for path, names in folders.items()}
    directory = bytearray()
    for path in entries:
        name = ("Root Entry" if not path else path.rpartition("/")[2]).encode("utf-16-le")[:62]
        kind = 5 if not path else 2 if path in streams else 1
        size = len(small) if not path else len(streams.get(path, b""))
        left, right = siblings.get(path, (FREE, FREE))
        start = root if not path else places.get(path, 0)
        directory += name.ljust(64, b"\0") + struct.pack(
            "<HBBIII", len(name) + 2, kind, 1, left, right, children.get(path, FREE)
        )
        directory += bytes(36) + struct.pack("<IQ", start, size)
    directory += bytes(-len(directory) % SECTOR)
    first = chain(fat, len(directory) // SECTOR)
    body += directory
    tables = 1
    while (len(fat) + tables) > 128 * tables:
        tables += 1
    assert tables <= 109
    where = [len(fat) + n for n in range(tables)]
    fat += [FAT] * tables
    fat += [FREE] * (128 * tables - len(fat))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<IIIIIIIII", 0, tables, first, 0, 4096, minifat, len(mini) // 128, END, 0)
    header += struct.pack("<109I", *where, *[FREE] * (109 - tables))
    return header + bytes(body) + struct.pack(f"<{len(fat)}I", *fat)


def doc(text: str) -> dict[str, bytes]:
    """Return the streams of a Word document of one piece."""
    raw = text.encode("utf-16-le")
    head = bytearray(0x400)
    struct.pack_into("<HHHHHHH", head, 0, 0xA5EC, 0xC1, 0, 0, 0, 0x0200, 0)
    pieces = struct.pack("<IIHIH", 0, len(text), 0, 0x400, 0)
    table = b"\x02" + struct.pack("<I", len(pieces)) + pieces
    struct.pack_into("<II", head, 0x01A2, 0, len(table))
    return {"WordDocument": bytes(head) + raw, "1Table": table}


def list_level(text: str, kind: int = 0, start: int = 1, flags: int = 0, limit: int = 0) -> bytes:
    """Return a level of a Word list (LVL); %1 to %9 are the numbers of levels."""
    characters, places = "", []
    for part in text.split("%"):
        if characters or places or text.startswith("%"):
            places.append(len(characters) + 1)
            characters += chr(int(part[0]) - 1) + part[1:] if part else ""
        else:
            characters = part
    head = struct.pack("<iBB", start, kind, flags) + bytes(places[:9]).ljust(9, b"\0") + bytes(9)
    return head + bytes([0, 0, limit, 0]) + struct.pack("<H", len(characters)) + characters.encode("utf-16-le")


def doc_with_lists(
    text: str,
    items: Mapping[int, bytes],
    definitions: Iterable[Iterable[bytes]],
    lists: Iterable[tuple[int, bytes]] = ((0, b""),),
    styles: Iterable[tuple[int, bytes]] = (),
) -> dict[str, bytes]:
    """Return the streams of a Word document with lists.

    ``items``: properties of paragraphs by number of the paragraph; ``definitions``: their levels, one or nine;
    ``lists``: the definition of each and its changes of levels (LFOLVL); ``styles``: what each is based on and says.
    """
    streams = doc(text)
    stream, table = bytearray(streams["WordDocument"]), bytearray(streams["1Table"])
    stream += bytes(-len(stream) % 512)
    struct.pack_into("<H", stream, 0x98, 93)
    numbers = [len(line) + 1 for line in text.split("\r")[:-1]]
    ends = [0x400 + 2 * characters for characters in accumulate(numbers)]
    pages = []
    for first in range(0, len(ends), 12):
        some = ends[first : first + 12]
        page = bytearray(512)
        struct.pack_into(f"<{len(some) + 1}I", page, 0, 0x400, *some)
        page[511], at = len(some), 510
        for index in range(len(some)):
            said = items.get(first + index, b"")
            if said:
                said += bytes(1 - len(said) % 2)
                at -= len(said) + 1
                page[at : at + 1 + len(said)] = bytes([len(said) // 2 + 1]) + said
                page[4 * (len(some) + 1) + 13 * index] = at // 2
        pages.append(len(stream) // 512)
        stream += page

    def place(where: int, data: bytes, length: int | None = None) -> None:
        struct.pack_into("<II", stream, where, len(table), len(data) if length is None else length)
        table.extend(data)

    place(0x102, struct.pack(f"<{2 * len(pages) + 1}I", *range(len(pages) + 1), *pages))
    heads, levels = b"", b""
    for number, each in enumerate(definitions):
        one = [*each]
        heads += struct.pack("<II9HBB", number, 0, *range(1, 10), len(one) == 1, 0)
        levels += b"".join(one)
    place(0x2E2, struct.pack("<H", len(heads) // 28) + heads + levels, len(heads) + 2)
    items = [*lists]
    changes = b"".join(struct.pack("<I", 0xFFFFFFFF) + each for _, each in items)
    heads = b"".join(struct.pack("<I8xB3x", name, bool(each)) for name, each in items)
    place(0x2EA, struct.pack("<I", len(items)) + heads + changes)
    each_style = [
        struct.pack("<HHHHHH", 0, 1 | based_on << 4, 1, 0, 0, 0) + bytes(2) + struct.pack("<H", len(said)) + said
        for based_on, said in styles
    ]
    if each_style:
        sheet = struct.pack("<HHH", 4, len(each_style), 10)
        place(0xA2, sheet + b"".join(struct.pack("<H", len(one)) + one + bytes(len(one) % 2) for one in each_style))
    return {"WordDocument": bytes(stream), "1Table": bytes(table)}


def in_list(number: int | None = None, level: int | None = None, style: int = 0) -> bytes:
    """Return the properties of a paragraph of a Word list."""
    said = struct.pack("<H", style)
    if number is not None:
        said += struct.pack("<HH", 0x460B, number)
    return said + (b"" if level is None else struct.pack("<HB", 0x260A, level))


def record(kind: int, data: bytes) -> bytes:
    """Return a record of a workbook."""
    return struct.pack("<HH", kind, len(data)) + data


def xls(records: bytes) -> dict[str, bytes]:
    return {"Workbook": record(0x0809, struct.pack("<HH", 0x0600, 5) + bytes(12)) + records}


def label(row: int, text: str) -> bytes:
    return record(0x204, struct.pack("<HHHHB", row, 0, 0, len(text), 0) + text.encode("latin-1"))


def shared_strings(*texts: str) -> bytes:
    entries = b"".join(struct.pack("<HB", len(text), 0) + text.encode("latin-1") for text in texts)
    return record(0xFC, struct.pack("<II", len(texts), len(texts)) + entries)


def atom(kind: int, data: bytes, version: int = 0) -> bytes:
    """Return a record of a presentation; version 15 is a container."""
    return struct.pack("<HHI", version, kind, len(data)) + data


def ppt(records: bytes) -> dict[str, bytes]:
    return {"PowerPoint Document": records}


def msg(**more: bytes) -> dict[str, bytes]:
    """Return the streams of an Outlook message; ``more``: streams by name."""
    return {
        "__properties_version1.0": bytes(32) + struct.pack("<III4x", 0x3FFD0003, 6, 1252),
        "__substg1.0_0037001F": "Subject".encode("utf-16-le"),
        "__substg1.0_1000001E": b"The body",
        "__attach_version1.0_#00000000/__substg1.0_3707001F": "a.txt".encode("utf-16-le"),
        "__attach_version1.0_#00000000/__substg1.0_37010102": b"attached",
        **more,
    }


RSS = (
    "<?xml version='1.0'?><rss><channel><title>F</title><item><title>One &amp; &lt;b&gt;two&lt;/b&gt;</title>"
    "<link>http://h.test/1</link><description>d</description></item></channel></rss>"
)
ATOM = (
    "<feed xmlns='http://www.w3.org/2005/Atom'><title>F</title><entry><title>t</title><link href='/x'/>"
    "<content type='application/x'>YWJj</content></entry></feed>"
)
MAIL = (
    b"From: A <a@h.test>\r\nTo: b@h.test\r\nSubject: =?utf-8?q?=C3=BC?=\r\nDate: Thu, 1 Jan 2026 00:00:00 +0000\r\n"
    b'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\nContent-Type: text/plain; '
    b"charset=utf-8\r\n\r\ntext\r\n--x\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n"
    b"Content-Disposition: attachment; filename=a.html\r\n\r\nPHA+YQ==\r\n--x--\r\n"
)
RTF = (
    rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset0 A;}}{\info{\title T}}a \'e9 \u20013?\par {\field{\*\fldinst "
    rb'HYPERLINK "http://h.test/x"}{\fldrslt link}}}'
)
