"""Office documents, books, mail and images with false sizes and counts."""

from __future__ import annotations

import struct
from base64 import b64encode

from tests.site.hostile.bombs import packed, zip_of
from tests.site.hostile.trick import Request, Sent, Tricks, page

tricks = Tricks()

_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_TYPES = ("[Content_Types].xml", b"<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>")
_ODT = "application/vnd.oasis.opendocument.text"


def _entities(levels: int = 9) -> bytes:
    inner = b"".join(b'<!ENTITY e%d "%b">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, levels + 1))
    return b'<!DOCTYPE x [<!ENTITY e0 "ha">' + inner + b"]>"


tricks.document(
    "docx-zeros",
    "a Word document of 70 MB of markup",
    lambda: zip_of([_TYPES, ("word/document.xml", b"<w:document xmlns:w='w'><w:body>" + b"<w:p/>" * 10_000_000)]),
    _WORD,
)
tricks.document(
    "docx-entities",
    "a Word document of 10^9 entities",
    lambda: zip_of([_TYPES, ("word/document.xml", b"<?xml version='1.0'?>" + _entities() + b"<x>&e9;</x>")]),
    _WORD,
)
tricks.document(
    "docx-deep",
    "a Word document 500,000 elements deep",
    lambda: zip_of([_TYPES, ("word/document.xml", b"<w:document xmlns:w='w'>" + b"<w:p>" * 500_000)]),
    _WORD,
)
tricks.document(
    "xlsx-sparse",
    "a sheet of 16,384 columns with the last cell of each of 20,000 rows",
    lambda: zip_of(
        [
            _TYPES,
            ("xl/workbook.xml", b"<workbook><sheets><sheet name='a' sheetId='1'/></sheets></workbook>"),
            (
                "xl/worksheets/sheet1.xml",
                b"<worksheet><sheetData>"
                + b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (n, n) for n in range(1, 20_000))
                + b"</sheetData></worksheet>",
            ),
        ]
    ),
    _SHEET,
)
tricks.document(
    "xlsx-strings",
    "a sheet that names one long string 40,000 times",
    lambda: zip_of(
        [
            _TYPES,
            ("xl/workbook.xml", b"<workbook><sheets><sheet name='a' sheetId='1'/></sheets></workbook>"),
            ("xl/sharedStrings.xml", b"<sst><si><t>" + b"word " * 100_000 + b"</t></si></sst>"),
            (
                "xl/worksheets/sheet1.xml",
                b"<worksheet><sheetData><row>" + b'<c t="s"><v>0</v></c>' * 40_000 + b"</row></sheetData></worksheet>",
            ),
        ]
    ),
    _SHEET,
)
tricks.document(
    "odt-repeats",
    "a text of 10^9 repeated blanks and cells",
    lambda: zip_of(
        [
            ("mimetype", _ODT.encode()),
            (
                "content.xml",
                (
                    b"<office:document-content xmlns:office='urn:oasis:names:tc:opendocument:xmlns:office:1.0' "
                    b"xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0' "
                    b"xmlns:table='urn:oasis:names:tc:opendocument:xmlns:table:1.0'><office:body><office:text>"
                    b"<text:p>a<text:s text:c='999999999'/>b</text:p><table:table>"
                    b"<table:table-row table:number-rows-repeated='999999'>"
                    b"<table:table-cell table:number-columns-repeated='999999'><text:p>x</text:p></table:table-cell>"
                    b"</table:table-row></table:table></office:text></office:body></office:document-content>"
                ),
            ),
        ]
    ),
    _ODT,
)
tricks.document(
    "epub-cycle",
    "a book with one file of 10 MB as 3,000 chapters",
    lambda: zip_of(
        [
            ("mimetype", b"application/epub+zip"),
            ("META-INF/container.xml", b"<container><rootfiles><rootfile full-path='o.opf'/></rootfiles></container>"),
            (
                "o.opf",
                b"<package><manifest>"
                + b"".join(
                    b"<item id='i%d' href='c.xhtml' media-type='application/xhtml+xml'/>" % n for n in range(3000)
                )
                + b"</manifest><spine>"
                + b"".join(b"<itemref idref='i%d'/>" % n for n in range(3000))
                + b"</spine></package>",
            ),
            ("c.xhtml", b"<html><body>" + b"<p>word</p>" * 900_000),
        ]
    ),
    "application/epub+zip",
)
tricks.document("rtf-groups", "RTF of 900,000 open groups", lambda: b"{\\rtf1 " + b"{" * 900_000, "application/rtf")
tricks.document(
    "rtf-numbers",
    "RTF of numbers of 300,000 digits",
    lambda: b"{\\rtf1 \\uc9999999999\\u" + b"9" * 300_000 + b" x}",
    "application/rtf",
)
tricks.document(
    "ole-cycle",
    "an OLE file with sectors in a ring",
    lambda: (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        + bytes(16)
        + b"\x3e\0\x03\0\xfe\xff\x09\0\x06\0"
        + bytes(10)
        + struct.pack("<9I", 1, 0, 0, 4096, 0, 1, 0, 1, 0)
        + bytes(436)
        + bytes(512) * 900
    ),
    "application/msword",
)
tricks.document(
    "mail-nested",
    "mail in mail, 3,000 deep",
    lambda: (
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(3000))
        + b"\r\nx"
    ),
    "message/rfc822",
)
tricks.document(
    "mail-parts",
    "mail of 100,000 parts",
    lambda: b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n\r\nx\r\n" * 100_000,
    "message/rfc822",
)
tricks.document(
    "mail-headers",
    "mail of 50,000 addresses and encoded words",
    lambda: (
        b"From: a@b\r\nTo: "
        + b"=?utf-8?q?=41?= <a@b>, " * 30_000
        + b"\r\nSubject: "
        + b"=?utf-8?b?QQ==?= " * 20_000
        + b"\r\n\r\nx"
    ),
    "message/rfc822",
)
tricks.document(
    "mail-comments",
    "an address of 100,000 brackets",
    lambda: b"From: " + b"(" * 100_000 + b"\r\nDate: " + b"(" * 100_000 + b"\r\n\r\nx",
    "message/rfc822",
)
tricks.document(
    "image-huge",
    "a PNG of 2^31 by 2^31 points",
    lambda: (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
        + struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 6, 0, 0, 0)
        + b"\0\0\0\0"
        + b"\0\0\0\0IDAT"
    ),
    "image/png",
    "success|failed",
)
tricks.document(
    "image-text",
    "a PNG with a text of 100 MB",
    lambda: (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
        + struct.pack(">IIBBBBBI", 1, 1, 8, 6, 0, 0, 0, 0)
        + struct.pack(">I", len(packed("deflate")) + 6)
        + b"zTXta\0\0"
        + packed("deflate")
    ),
    "image/png",
)
tricks.document(
    "image-ring",
    "a TIFF with directories in a ring",
    lambda: b"II*\0\x08\0\0\0\x01\0\x00\x01\x03\0\x01\0\0\0\x01\0\0\0\x08\0\0\0" + bytes(900),
    "image/tiff",
)


@tricks.trick("a page with an image of a megabyte of base64 in its URL", "SUCCESS", "success")
def data_image(_: Request) -> Sent:
    return page(b'<p>x<img src="data:image/png;base64,' + b64encode(bytes(700_000)) + b'"><a href="/y">y</a>')
