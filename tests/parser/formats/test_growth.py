"""The work of a parse is linear in the document's size, for each format's known ways to make it grow faster."""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parser
from nutch2py.parser.formats import archive, pdf
from nutch2py.parser.formats.archive import ArchiveParser
from nutch2py.parser.formats.epub import EpubParser
from nutch2py.parser.formats.feed import FeedParser, XmlParser
from nutch2py.parser.formats.image import ImageParser
from nutch2py.parser.formats.mail import MailParser
from nutch2py.parser.formats.office.ole import OleParser
from nutch2py.parser.formats.office.ooxml import OoxmlParser
from nutch2py.parser.formats.office.opendocument import OpenDocumentParser
from nutch2py.parser.formats.pdf import PdfParser
from nutch2py.parser.formats.word.rtf import RtfParser
from tests.growth import Shape, assert_linear
from tests.parser.formats import samples as s
from tests.parser.formats import test_xls_decryption as xls_password
from tests.parser.pages import fetched

PACKED = zlib.compress(b"text %d " * 1000)


def many(make: Callable[[int], bytes], size: int) -> Shape:
    """Return a shape of as many pieces of ``size`` bytes as the length has room for."""
    return lambda length: make(max(length // size, 1))


def text(piece: str, head: str = "", tail: str = "", size: int = 0) -> Shape:
    """Return head, piece over and over, tail."""
    return many(lambda n: (head + piece * n + tail).encode(), size or len(piece))


def nested(opening: str, closing: str, core: str = "x", head: str = "", tail: str = "") -> Shape:
    """Return nested elements; half of the length is the innermost's content."""

    def make(length: int) -> bytes:
        depth = max(length // (2 * len(opening + closing)), 1)
        return (head + opening * depth + core * (length // (2 * len(core))) + closing * depth + tail).encode()

    return make


def halves(make: Callable[[int, int], bytes], size: int) -> Shape:
    """Return a shape of one thing of half the length, and of as many of ``size`` bytes as the other half holds."""
    return lambda length: make(length // 2, max(length // (2 * size), 1))


def ole(make: Callable[[int], dict[str, bytes]], size: int) -> Shape:
    return many(lambda n: s.compound(make(n)), size)


def outline(item: bytes, count: int) -> list[bytes]:
    """Return an outline of a PDF as objects from number 10 on; each item names the number after its own."""
    return [b"<</First 11 0 R>>", *[item % (12 + number) for number in range(count)]]


def overlapping(size: int, count: int) -> bytes:
    """Return a ZIP with ``count`` directory entries for one file."""
    whole = s.zipped({"a.txt": b"text " * (size // 5)}, packed=False)
    start = whole.index(b"PK\1\2")
    end = whole.index(b"PK\5\6")
    entry = whole[start:end]
    directory = entry * min(count, 60000)
    tail = bytearray(whole[end:])
    struct.pack_into("<HHI", tail, 8, min(count, 60000), min(count, 60000), len(directory))
    return whole[:start] + directory + bytes(tail)


RTF_LINK = rb'{\field{\*\fldinst HYPERLINK "/x"}{\fldrslt '
W = '<w:hyperlink r:id="1"><w:r><w:t>a</w:t></w:r></w:hyperlink>'
FIELD = '<fldChar fldCharType="begin"/><instrText>HYPERLINK a</instrText><fldChar fldCharType="separate"/>'
FIELD_END = '<fldChar fldCharType="end"/>'
CMAP = b"begincmap 1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <41> <42> <05d0> endbfrange endcmap"
HEBREW: Any = {
    "fonts": "/G 11 0 R",
    "more": [
        b"<<>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 12 0 R>>",
        b"<</Length %d>>stream\n" % len(CMAP) + CMAP + b"\nendstream",
    ],
}
IPTC = b"Photoshop 3.0\0" + b"8BIM\x04\x04\0\0" + struct.pack(">I", 6000)
LISTS = [[s.list_level("%1" * 9, 1, 3888)]]  # a number of 135 letters
XML: dict[str, Shape] = {
    "elements": text("<item><title>a</title><link>/b</link></item>", "<rss><channel>", "</channel></rss>"),
    "unclosed": text("<item><title>", "<rss>"),
    "nested": nested("<title>", "</title>", head="<rss>"),
    "nested names": many(lambda n: b"<r>" + b"".join(b"<a%d>" % k for k in range(n)), 7),
    "unique names": many(lambda n: b"<r>" + b"".join(b"<a%d>x</a%d>" % (k, k) for k in range(n)), 15),
    "attributes": many(lambda n: b"<r " + b"".join(b"a%d='x' " % k for k in range(n)) + b"/>", 10),
    "name spaces": many(lambda n: b"<r " + b"".join(b"xmlns:a%d='x' " % k for k in range(n)) + b"/>", 16),
    "nested name spaces": many(lambda n: b"".join(b"<a xmlns:a%d='x'>" % k for k in range(n)), 20),
    "a long name space": halves(lambda n, k: b"<r xmlns='" + b"n" * n + b"'>" + b"<a/>" * k + b"</r>", 4),
    "a long prefix": halves(lambda n, k: b"<r xmlns:p='" + b"n" * n + b"'>" + b"<p:a/>" * k + b"</r>", 6),
    "a default": halves(lambda n, k: b"<!DOCTYPE r [<!ATTLIST a b CDATA '" + b"n" * n + b"'>]><r>" + b"<a/>" * k, 4),
    "hidden entities": halves(
        lambda n, k: b"<!DOCTYPE r [<!ENTITY c '<![CDATA['><!ENTITY e '" + b"n" * n + b"'>]><r>" + b"&e;" * k, 3
    ),
    "hidden in an instruction": halves(
        lambda n, k: b"<?x <![CDATA[ ?><!DOCTYPE r [<!ENTITY e '" + b"n" * n + b"'>]><r>" + b"&e;" * k, 3
    ),
    "declarations": text("<!ENTITY e 'x'>", "<!DOCTYPE r ["),
    "a doctype": text("<!DOCTYPE r [", ""),
    "quotes": text("'\"", "<!DOCTYPE r ["),
    "comments": text("<!--", "<r>"),
    "instructions": text("<?a ?>", ""),
    "entities": text("&amp;&a;&#9;", "<rss><title>", "</title></rss>"),
    "markup": text("&lt;b>&lt;p>x", "<rss><title>", "</title></rss>"),
    "no markup": text("&lt;b", "<rss><title>", "</title></rss>"),
    "base64": text("YWJj ", "<feed><entry><content type='a/b'>", "</content></entry></feed>"),
    "cdata": text("<![CDATA[x]]>", "<rss><title>"),
    "bases": text("<a xml:base='b/'>", "<rss>"),
    "links": text("<link href='/x'/>", "<feed><entry>", "</entry></feed>"),
    "text in pieces": text("x<b/>", "<rss><title>", "</title></rss>"),
}
PDF = s.pdf([b"BT /F 9 Tf (text) Tj ET"])
DEFLATED_STREAM = b"9 0 obj<</Filter/FlateDecode>>stream\n%s\nendstream\nendobj\n" % PACKED


def form(number: int) -> bytes:
    """Return an object of a form that draws the next one."""
    names = b"<</Subtype/Form/Resources<</XObject<</X %d 0 R>>>>>>" % (number + 1)
    return b"%d 0 obj%sstream\n/X Do /X Do\nendstream\nendobj\n" % (number, names)


SHAPES: dict[str, tuple[type[Parser], dict[str, Shape]]] = {
    "feed": (FeedParser, XML),
    "xml": (XmlParser, XML),
    "archive": (
        ArchiveParser,
        {
            "files": many(lambda n: s.zipped([(f"{k}.txt", b"text") for k in range(n)]), 110),
            "empty files": many(lambda n: s.zipped([(f"{k}", b"") for k in range(n)]), 90),
            "PDFs": many(lambda n: s.zipped([(f"{k}.pdf", PDF) for k in range(n)]), len(PDF) + 110),
            "one name": many(lambda n: s.zipped([("a.txt", b"text")] * n), 110),
            "long names": many(lambda n: s.zipped([("é" * 200 + str(k), b"") for k in range(n)]), 900),
            "entries that overlap": halves(overlapping, 60),
            "tar": many(lambda n: s.tarred([(f"{k}.txt", b"text") for k in range(n)]), 1024),
            "empty tar": many(lambda n: s.tarred([(f"{k}", b"") for k in range(n)]), 512),
            "headers for all": halves(
                lambda n, k: s.tarred([("a", b"")] * k, **{f"x{j}": "y" for j in range(n // 10)}), 512
            ),
            "gzip": many(lambda n: gzip.compress(b"text ") * n, 25),
            "bzip2": many(lambda n: bz2.compress(b"text ") * n, 40),
        },
    ),
    "ooxml": (
        OoxmlParser,
        {
            "paragraphs": many(lambda n: s.docx("<w:p><w:r><w:t>text</w:t></w:r></w:p>" * n), 36),
            "nested": many(lambda n: s.docx("<w:t>" * n + "x" * 5 * n + "</w:t>" * n), 20),
            "links": many(lambda n: s.docx(W * n, [("1", "http://h.test/")]), 60),
            "targets": many(lambda n: s.docx("", [(str(k), f"http://h.test/{k}") for k in range(n)]), 70),
            "fields": many(lambda n: s.docx('<w:fldSimple w:instr="HYPERLINK a">' * n + "<w:t>x</w:t>"), 36),
            "complex fields": many(lambda n: s.docx(FIELD * n + "<w:t>x</w:t>" * n), 60),
            "complex fields in each other": many(lambda n: s.docx(FIELD * n + "<w:t>x</w:t>" * n + FIELD_END * n), 90),
            "a code": many(lambda n: s.docx(FIELD + "<instrText>\\l &quot;x&quot;</instrText>" * n + FIELD_END), 45),
            "cells": many(lambda n: s.xlsx('<row><c t="s"><v>0</v></c></row>' * n), 32),
            "a row": many(lambda n: s.xlsx("<row>" + '<c t="s"><v>0</v></c>' * n), 22),
            "a long string in many cells": halves(
                lambda n, k: s.xlsx("<row>" + '<c t="s"><v>0</v></c>' * k, f"<si><t>{'x' * n}</t></si>"), 22
            ),
            "a value in pieces": many(lambda n: s.xlsx("<row><c><v>" + "1<b/>" * n + "</v></c></row>"), 5),
            "lists": many(lambda n: s.lists("%1%2%3%4%5%6%7%8%9" * 30, n), 90),
            "a list's levels": many(lambda n: s.lists("%1", 1, n), 30),
            "styles of lists": many(
                lambda n: s.lists("%1", n // 2, styles="".join(f'<style styleId="{k}"/>' for k in range(n))),
                55,
            ),
            "number formats": many(lambda n: s.formats("".join(f'<xf numFmtId="{k}"/>' for k in range(n)), n), 70),
            "a long number format": halves(
                lambda n, k: s.formats('<xf numFmtId="9"/>', k, "#,#?0\\a&quot;" * (n // 16)), 30
            ),
            "strings": many(lambda n: s.xlsx("", "<si><t>a</t></si>" * n), 17),
            "one sheet often": halves(
                lambda n, k: s.xlsx("<row><c><v>1</v></c></row>" * (n // 26), sheets='<sheet id="1"/>' * k), 15
            ),
            "layouts": many(
                lambda n: s.zipped({"ppt/slideLayouts/slideLayout1.xml": b"<x>" + b"<sp><t>a</t><p/></sp>" * n}), 22
            ),
            "shapes in each other": many(
                lambda n: s.zipped({"ppt/slideMasters/slideMaster1.xml": b"<sp><t>a</t>" * n + b"</sp>" * n}), 17
            ),
            "slides": many(lambda n: s.pptx(["<a:t xmlns:a='a'>x</a:t>"] * n), 150),
            "parts of one name": halves(
                lambda n, k: s.zipped([("word/document.xml", b"<t>" + b"x" * n)] + [("word/document.xml", b"")] * k),
                120,
            ),
            "chunks": many(lambda n: s.docx("", [(str(k), "a.html") for k in range(n)], "aFChunk"), 70),
            "charts": many(lambda n: s.zipped([(f"word/charts/chart{k}.xml", b"") for k in range(n)]), 130),
            "properties": many(
                lambda n: s.zipped([("docProps/core.xml", b"<p><title>" + b"x<b/>" * n), ("word/a", b"")]), 5
            ),
        },
    ),
    "opendocument": (
        OpenDocumentParser,
        {
            "paragraphs": many(lambda n: s.odt("<text:p>text</text:p>" * n), 21),
            "annotations in each other": many(lambda n: s.odt("<text:p>x<annotation>" * n), 21),
            "nested paragraphs": many(lambda n: s.odt("<text:p>x" * n), 9),
            "links": many(lambda n: s.odt("<text:p>" + '<text:a xlink:href="/a">x</text:a>' * n + "</text:p>"), 34),
            "nested links": many(
                lambda n: s.odt("<text:p>" + '<a href="b">' * n + "x<b/>" * n * 4 + "</a>" * n + "</text:p>"), 36
            ),
            "spaces": many(lambda n: s.odt("<text:p>" + '<text:s text:c="999"/>' * n + "</text:p>"), 22),
            "properties": many(lambda n: s.odt("", "<title>" + "x<b/>" * n + "</title>"), 5),
            "objects": many(
                lambda n: s.zipped({"content.xml": b"<o/>", **{f"Object {k}/content.xml": b"<o/>" for k in range(n)}}),
                150,
            ),
        },
    ),
    "epub": (
        EpubParser,
        {
            "chapters": many(
                lambda n: s.zipped({**{f"{k}.html": b"<p>text" for k in range(n)}, "META-INF/container.xml": b"<c/>"}),
                110,
            ),
            "one chapter often": halves(lambda n, k: s.epub("<p>text" * (n // 7), '<itemref idref="c"/>' * k), 20),
            "items": many(lambda n: s.epub("", items="".join(f'<item id="{k}" href="a"/>' for k in range(n))), 24),
            "a title in pieces": many(lambda n: s.epub("", "<title>" + "x<b/>" * n + "</title>"), 5),
        },
    ),
    "rtf": (
        RtfParser,
        {
            "words": text(r"text\par ", r"{\rtf1 ", "}"),
            "groups": text("{x}", r"{\rtf1 "),
            "nested": text("{x", r"{\rtf1 "),
            "closed": text("}", r"{\rtf1 x"),
            "escapes": text(r"\'e9", r"{\rtf1 "),
            "characters": text(r"\u20013?", r"{\rtf1 "),
            "surrogates": text(r"\u-10179?", r"{\rtf1 "),
            "fonts": many(
                lambda n: rb"{\rtf1{\fonttbl" + b"".join(rb"{\f%d\fcharset128 A;}" % k for k in range(n)), 22
            ),
            "links": text(r'{\field{\*\fldinst HYPERLINK "/x"}{\fldrslt y}}', r"{\rtf1 "),
            "nested links": many(
                lambda n: b"{\\rtf1 " + RTF_LINK * n + rb"x\par " * n * 8 + b"}}" * n,
                96,
            ),
            "a link": text(r"\\l ", r"{\rtf1 {\field{\*\fldinst HYPERLINK ", "}}"),
            "spaces of a link": text(" ", r"{\rtf1 {\field{\*\fldinst HYPERLINK", "}}"),
            "binary": text(r"\bin1 x", r"{\rtf1 "),
        },
    ),
    "mail": (
        MailParser,
        {
            "lines": text("text\n", "Subject: a\n\n"),
            "headers": text("Subject: a\n"),
            "one header": text("=?utf-8?q?a?= ", "Subject: "),
            "near words": text("=?u?q?", "Subject: "),
            "folded": text(" a\n", "Subject: a\n"),
            "addresses": text("a@b.test, ", "To: "),
            "messages": text("From a\nSubject: b\n\nc\n"),
            "parts": text("--x\n\na\n", "Content-Type: multipart/mixed; boundary=x\n\n"),
            "alternatives": text("--x\n\na\n", "Content-Type: multipart/alternative; boundary=x\n\n"),
            "alternatives that say nothing": text("--x\n\n\n", "Content-Type: multipart/alternative; boundary=x\n\n"),
            "alternatives in HTML": text(
                "--x\nContent-Type: text/html\n\n<p>\n", "Content-Type: multipart/alternative; boundary=x\n\n"
            ),
            "messages in a message": text(
                "--x\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogYQoKYg==\n",
                "Content-Type: multipart/mixed; boundary=x\n\n",
            ),
            "nested": nested("Content-Type: multipart/mixed; boundary=x\n\n--x\n", "--x--\n", "x\n"),
            "nested messages": nested("Content-Type: message/rfc822\n\n", "", "x\n"),
            "digests": text("--x\n\nSubject: a\n\n", "Content-Type: multipart/digest; boundary=x\n\n"),
            "parameters": text(";a=b", "Content-Type: multipart/mixed"),
            "quotes": text(';"', "Content-Type: multipart/mixed"),
            "pieces of a name": many(
                lambda n: b"Content-Disposition: attachment" + b"".join(b"; filename*%d=a" % k for k in range(n)), 15
            ),
            "base64": text("YWJj\n", "Content-Transfer-Encoding: base64\n\n"),
            "quoted": text("=3D=\n", "Content-Transfer-Encoding: quoted-printable\n\n"),
            "uu": text("#86%B\n", "Content-Transfer-Encoding: x-uuencode\n\nbegin 666 a\n"),
        },
    ),
    "image": (
        ImageParser,
        {
            "PNG texts": many(lambda n: s.png(*[(b"tEXt", b"k%d\0text" % k) for k in range(n)]), 21),
            "PNG packed texts": many(
                lambda n: s.png(*[(b"zTXt", b"k%d\0\0" % k + PACKED) for k in range(n)]), len(PACKED) + 20
            ),
            "PNG's directories": many(lambda n: s.png(*[(b"eXIf", s.tiff([(0x010E, 2, 4, b"text")]))] * n), 40),
            "JPEG comments": many(lambda n: s.jpeg(*[(0xFE, b"text")] * n), 8),
            "JPEG keywords": many(lambda n: s.jpeg(*[(0xED, IPTC + b"\x1c\2\x19\0\1a" * 1000)] * (n // 1000 + 1)), 6),
            "JPEG resources": many(lambda n: s.jpeg(*[(0xED, IPTC[:22] + bytes(4))] * n), 30),
            "JPEG fill": many(lambda n: b"\xff\xd8" + b"\xff" * n, 1),
            "no JPEG": many(lambda n: b"\xff\xd8" + b"\0" * n, 1),
            "TIFF entries": many(lambda n: s.tiff([(0x010E, 2, 4, b"text")] * min(n, 65535)), 12),
            "TIFF entries that overlap": halves(
                lambda n, k: s.tiff([(0x010E, 3, n // 2, struct.pack("<I", 8))] * k, bytes(n)), 12
            ),
            "TIFF texts that overlap": halves(
                lambda n, k: s.tiff([(0x010E, 2, n, struct.pack("<I", 8))] * k, b"a" * n), 12
            ),
        },
    ),
    "pdf": (
        PdfParser,
        {
            "pages": many(lambda n: s.pdf([b"BT /F 9 Tf (text) Tj ET"] * n), 300),
            "text": many(lambda n: s.pdf([b"BT /F 9 Tf " + b"(text) Tj " * n + b"ET"]), 10),
            "links": many(lambda n: s.pdf([b"BT /F 9 Tf (text) Tj ET"], s.link("http://h.test/") * n), 90),
            "links over text": halves(
                lambda n, k: s.pdf([b"BT /F 9 Tf (" + b"text " * (n // 5) + b") Tj ET"], s.link("http://h.test/") * k),
                90,
            ),
            "objects": text("1 0 obj<</Length 1>>stream\n"),
            "dictionaries": text("1 0 obj<<", tail=">>stream\n"),
            "ends of dictionaries": text(">>stream\n", head="1 0 obj<<"),
            "packed streams": many(lambda n: s.pdf([b""]) + DEFLATED_STREAM * n, len(DEFLATED_STREAM)),
            "forms": many(lambda n: s.pdf([b""]) + b"".join(map(form, range(n))), 130),
            "names of forms": text("/X 9 0 R", head="1 0 obj<</Subtype/Form/XObject<<", tail=">>>>stream\n/X Do"),
            "drawn forms": text("/X Do ", "1 0 obj<</Subtype/Form/XObject<</X 2 0 R>>>>stream\n", "endstream"),
            "torn words": many(lambda n: s.pdf([b"BT /G 9 Tf " + b"<00410042> Tj " * n + b"ET"], **s.VERTICAL), 14),
            "from right to left": many(lambda n: s.pdf([b"BT /G 9 Tf " + b"(AB) Tj " * n + b"ET"], **HEBREW), 8),
            "heights": many(lambda n: s.pdf([b"BT /G 9 Tf " + b"0 9 Td (AB) Tj " * n + b"ET"], **HEBREW), 15),
            "an outline": many(lambda n: s.pdf([b""], more=outline(b"<</Title(t)/Next %d 0 R>>", n)), 60),
            "an outline in itself": many(
                lambda n: s.pdf([b""], more=outline(b"<</Title(t)/Next 11 0 R/First %d 0 R>>", n)), 80
            ),
            "notes": many(
                lambda n: s.pdf([b""], "<</Type/Annot/Subtype/Text/Rect[0 0 9 9]/T(A)/Contents(note)>>" * n), 75
            ),
            "no objects": text("1 0 obj ", "%PDF-1.4\n"),
        },
    ),
    "ole": (
        OleParser,
        {
            "streams": ole(lambda n: {**s.doc("x"), **{f"s{k}": b"x" for k in range(n)}}, 200),
            "folders": ole(lambda n: {**s.doc("x"), **{f"f{k}/s": b"x" for k in range(n)}}, 400),
            "streams at one place": halves(
                lambda n, k: s.compound({f"f{j}/CONTENTS": b"x" * max(n, 4096) for j in range(k)}, share=True), 300
            ),
            "messages": ole(
                lambda n: {**s.doc("x"), **{f"f{k}/__properties_version1.0": bytes(32) for k in range(n)}}, 400
            ),
            "attachments": ole(
                lambda n: {**s.msg(), **{f"__attach_{k}/__substg1.0_37010102": b"text" for k in range(n)}}, 400
            ),
            "packages": ole(lambda n: {**s.doc("x"), **{f"f{k}/package": b"text" for k in range(n)}}, 400),
            "Word": ole(lambda n: s.doc("text\r" * n), 10),
            "Word's fields": ole(lambda n: s.doc('\x13HYPERLINK "/x"\x14y\x15' * n), 38),
            "Word's fields in each other": ole(lambda n: s.doc("\x13a\x14b" * n + "x" * n + "\x15" * n), 12),
            "Word's fields in codes": ole(lambda n: s.doc("\x13a\x13b\x14" * n + "x" * n + "\x15" * n), 12),
            "Word's links in each other": ole(
                lambda n: s.doc('\x13HYPERLINK "/x"\x14' * n + "x\x13\x15" * n * 4 + "\x15" * n), 56
            ),
            "Word's lists": ole(
                lambda n: s.doc_with_lists("x\r" * n, dict.fromkeys(range(n), s.in_list(1, 0)), LISTS), 40
            ),
            "Word's numbers in one page of properties": ole(
                lambda n: s.doc_with_lists("x" * n + "\r", {0: s.in_list(1, 0)}, LISTS), 4
            ),
            "Word's paragraphs of one number": ole(
                lambda n: s.doc_with_lists("\x0c" * n + "\r", {0: s.in_list(1, 0)}, LISTS), 2
            ),
            "Word's definitions of lists": ole(
                lambda n: s.doc_with_lists("x\r", {0: s.in_list(1, 0)}, [[s.list_level("%1")]] * n, [(1, b"")] * n), 80
            ),
            "Word's styles of lists": ole(
                lambda n: s.doc_with_lists(
                    "x\r" * n,
                    {k: s.in_list(style=k % 4000) for k in range(n)},
                    [[s.list_level("%1")]],
                    styles=[(max(k - 1, 0), b"" if k else s.in_list(1)) for k in range(min(n, 4000))],
                ),
                60,
            ),
            "Excel": ole(lambda n: s.xls(b"".join(s.label(k % 60000, "text") for k in range(n))), 17),
            "Excel's row": ole(lambda n: s.xls(s.label(1, "text") * n), 17),
            "Excel's strings": ole(lambda n: s.xls(s.shared_strings(*["text"] * min(n, 1000)) * (n // 1000 + 1)), 7),
            "Excel's string in many cells": halves(
                lambda n, k: s.compound(
                    s.xls(s.shared_strings("x" * min(n, 8000)) + s.record(0xFD, struct.pack("<HHHI", 1, 0, 0, 0)) * k)
                ),
                14,
            ),
            "Excel under a password": ole(
                lambda n: s.xls(s.record(0x2F, xls_password.basic("VelvetSweatshop")[0]) + s.label(1, "text") * n), 17
            ),
            "Excel under Excel 95's": ole(
                lambda n: s.xls(s.record(0x2F, xls_password.xor("VelvetSweatshop")[0]) + s.record(1, b"") * n), 4
            ),
            "Excel's continuations": ole(lambda n: s.xls(s.record(0xFC, bytes(8)) + s.record(0x3C, b"a") * n), 5),
            "PowerPoint": ole(
                lambda n: s.ppt(b"".join(s.atom(0x0FA8, b"text %d" % k) for k in range(n))), 18
            ),
            "PowerPoint in each other": ole(lambda n: s.ppt(bytes.fromhex("0f00f00300ffff00") * n), 8),
            "PowerPoint's objects": ole(
                lambda n: s.ppt(b"".join(s.atom(0x1011, bytes(4) + PACKED, 16) for _ in range(n))), len(PACKED) + 12
            ),
        },
    ),
}  # fmt: skip


CASES = [(format_name, shape) for format_name, (_, shapes) in SHAPES.items() for shape in shapes]


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch, conf: Configuration) -> None:
    """Small limits show how work grows below them."""
    conf.set("parser.document.max.characters", "20000")
    monkeypatch.setattr(pdf, "MAX_LINK_SCAN_CHARS", 100_000)
    monkeypatch.setattr(archive, "MAX_PAX_HEADERS", 20)


def hold(format_name: str, shape: str, conf: Configuration, longest: int) -> None:
    kind, shapes = SHAPES[format_name]
    parser: Any = kind(conf)

    def parse(body: bytes) -> None:
        parser.parse("http://h.test/d/file", fetched(body, "application/x"))

    assert_linear(parse, {shape: shapes[shape]}, longest)


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize(("format_name", "shape"), CASES, ids=[f"{name}: {shape}" for name, shape in CASES])
def test_format_parser_time_is_linear(format_name: str, shape: str, conf: Configuration) -> None:
    hold(format_name, shape, conf, 32_768)


@pytest.mark.usefixtures("small_bounds")
def test_format_parser_time_is_linear_at_half_megabyte(conf: Configuration) -> None:
    for format_name, shape in CASES:
        hold(format_name, shape, conf, 524_288)
