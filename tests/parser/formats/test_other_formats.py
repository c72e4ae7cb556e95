"""RTF, feeds, XML, archives, images and mail."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from base64 import b85decode
from binascii import b2a_base64, b2a_qp
from email.message import EmailMessage

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Outlink, Parse
from nutch2py.parser.formats.archive import ArchiveParser, decompress_chunks
from nutch2py.parser.formats.feed import FeedParser, XmlParser
from nutch2py.parser.formats.image import ImageParser
from nutch2py.parser.formats.mail import MailParser
from nutch2py.parser.formats.word.rtf import RtfParser
from nutch2py.parser.mime.mime_types import detect_content_type
from nutch2py.records.webpage import ParseStatusCode
from tests.parser.formats import samples
from tests.parser.pages import fetched


def parse(kind: type, body: bytes, conf: Configuration, url: str = "http://h.test/d/file") -> Parse:
    found: Parse = kind(conf).parse(url, fetched(body, "application/x", url))
    return found


@pytest.mark.parametrize(("body", "text"), [
    (rb"{\rtf1\ansi one\par two\tab three\line four}", "one\ntwo three\nfour"),
    (rb"{\rtf1\ansicpg1251 \'cf\'f0\'e8}", "При"),
    (rb"{\rtf1{\fonttbl{\f0 A;}{\f1\fcharset128 B;}}\f1\'93\'fa\'96\'7b\f0 x}", "日本x"),
    (rb"{\rtf1\uc1 \u20013?\u-10179?\u-8704?}", "中😀"),
    (rb"{\rtf1\uc2 a\u8364??b{\uc0\u8364 c}}", "a€b€c"),
    (rb"{\rtf1 a{\*\unknown hidden}{\pict 010203}{\stylesheet{x;}}b \{c\}\\}", "ab {c}\\"),
    (rb"{\rtf1 a{\footnote note}b}", "a\nnoteb"),
    (b"{\\rtf1 a\\bin3 }{\\b}", "ab"),
    (rb"{\rtf1 a\*\b b}", "ab"),
    (rb"{\rtf1 {\loch x}}}}}{{{", "x"),
])  # fmt: skip
def test_rtf_text_is_extracted(body: bytes, text: str, conf: Configuration) -> None:
    assert parse(RtfParser, body, conf).text == text


def test_rtf_links_and_properties_are_extracted(conf: Configuration) -> None:
    found = parse(
        RtfParser,
        rb"{\rtf1{\info{\title T}{\author A}}see {\field{\*\fldinst HYPERLINK "
        rb'"http://o.test/x"}{\fldrslt the \b link}} end}',
        conf,
    )
    assert (found.title, found.text, found.metadata["dc:creator"]) == ("T", "see the link end", b"A")
    assert found.outlinks == [Outlink("http://o.test/x", "the link")]


RSS = b"""<?xml version='1.0'?><rss version='2.0' xmlns:content='c'><channel>
<title>Feed</title><link>http://h.test/</link>
<image><title>logo</title><link>http://h.test/logo</link></image>
<item><title>One &amp;amp; all</title><link>/1</link>
<description>&lt;p&gt;first &lt;b&gt;text&lt;/b&gt;</description></item>
<item><guid>http://h.test/2</guid><title><![CDATA[Two]]></title></item></channel></rss>"""
ATOM = b"""<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://o.test/b/'>
<title>Feed</title>
<link rel='self' href='self.atom'/><link href='/'/><entry><link href='1' rel='alternate'/><title>One &amp; all</title>
<summary type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>first <b>text</b></div></summary>
<link rel='edit' href='edit'/></entry><entry><title>Two</title><link href='2'/></entry></feed>"""
RDF = b"""<rdf:RDF xmlns:rdf='r' xmlns='http://purl.org/rss/1.0/'>
<channel><title>Feed</title><link>http://h.test/</link></channel>
<item><title>One &amp; all</title><link>http://h.test/1</link><description>first text</description></item>
<item><title>Two</title><link>http://h.test/2</link></item></rdf:RDF>"""


@pytest.mark.parametrize(("body", "base"), [(RSS, "http://h.test/"), (ATOM, "http://o.test/"), (RDF, "http://h.test/")])
def test_feed_entries_are_outlinks(body: bytes, base: str, conf: Configuration) -> None:
    found = parse(FeedParser, body, conf)
    place = f"{base}b/" if body is ATOM else base
    assert found.title == "Feed"
    assert found.outlinks == [Outlink(base, "Feed"), Outlink(f"{place}1", "One & all"), Outlink(f"{place}2", "Two")]
    assert "first text" in found.text
    assert "logo" not in found.text


def test_feed_link_over_two_lines_is_joined(conf: Configuration) -> None:
    body = b"<rss version='2.0'><channel><item><title>t</title><link>http://h.test/a\n/b</link></item></channel></rss>"
    assert parse(FeedParser, body, conf).outlinks == [Outlink("http://h.test/a/b", "t")]


@pytest.mark.parametrize(
    ("body", "title", "text"),
    [
        (b"<rss><channel><title>Feed</title><item><title>Open ti", "Feed", "Feed\nOpen ti"),
        (
            b"<rss><channel><title>Feed</title><item><description>The sentence that is c",
            "Feed",
            "Feed\nThe sentence that is c",
        ),
        (b"<feed><title>Feed</title><entry><content type='xhtml'><div><p>One <b>wo", "Feed", "Feed\nOne wo"),
        (b"<feed><title>The feed", "The feed", "The feed"),
    ],
)
def test_open_element_of_cut_feed_is_kept(body: bytes, title: str, text: str, conf: Configuration) -> None:
    found = parse(FeedParser, body, conf)
    assert (found.title, found.text) == (title, text)


def test_cut_link_of_feed_is_not_followed(conf: Configuration) -> None:
    found = parse(FeedParser, b"<rss><channel><item><title>One</title><link>http://o.test/pa", conf)
    assert (found.text, found.outlinks) == ("One", [])


@pytest.mark.parametrize("dash", [b"&#146;", b"&#x92;", b"\xc2\x92", b"<![CDATA[\xc2\x92]]>"])
def test_windows_characters_of_feeds_are_restored(dash: bytes, conf: Configuration) -> None:
    found = parse(FeedParser, b"<rss><channel><title>It" + dash + b"s &#128; 5</title></channel></rss>", conf)
    assert found.title == "It\u2019s \u20ac 5"


@pytest.mark.parametrize(
    ("entry", "target"),
    [
        ("<id>http://o.test/1</id>", "http://o.test/1"),
        ("<id>http://o.test/1</id><link href='/2'/>", "http://h.test/2"),
        ("<link href='/2'/><id>http://o.test/1</id>", "http://h.test/2"),
        ("<id>https://o.test/1</id><link rel='edit' href='/2'/>", "https://o.test/1"),
    ],
)
def test_id_of_atom_entry_without_link_is_its_link(entry: str, target: str, conf: Configuration) -> None:
    found = parse(
        FeedParser, f"<feed><id>http://o.test/</id><entry><title>T</title>{entry}</entry></feed>".encode(), conf
    )
    assert found.outlinks == [Outlink(target, "T")]


def test_outlines_of_opml_are_outlinks(conf: Configuration) -> None:
    body = b"""<!-- exported --><opml version='2.0'><head><title>My feeds</title></head><body><outline text='News'>
<outline text='One' type='rss' xmlUrl='http://o.test/feed' htmlUrl='http://o.test/'/><outline title='Two' url='/two'/>
</outline></body></opml>"""
    found = parse(FeedParser, body, conf)
    assert (found.title, found.text) == ("My feeds", "My feeds\nNews\nOne\nTwo")
    assert found.outlinks == [
        Outlink("http://o.test/feed", "One"), Outlink("http://o.test/", "One"), Outlink("http://h.test/two", "Two"),
    ]  # fmt: skip


def test_broken_feed_is_read_partially(conf: Configuration) -> None:
    assert len(parse(FeedParser, RSS[:-80], conf).outlinks) >= 2
    assert parse(FeedParser, b"no feed", conf).minor == ParseStatusCode.INVALID_FORMAT


def test_xml_text_is_extracted(conf: Configuration) -> None:
    found = parse(XmlParser, b"<x><title>T</title><y a='b'>one <z>two</z></y><!-- no --></x>", conf)
    assert (found.title, found.text) == ("T", "T\none two")


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return out.getvalue()


def tarred(**files: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_", "."))
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


PAGE = b"<html><title>Page</title><body><a href='http://o.test/'>out</a></body></html>"


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_archive_documents_are_extracted(pack: object, conf: Configuration) -> None:
    body = pack(a_txt=b"plain", in__b_html=PAGE, c_bin=b"\0\1\2\3")  # type: ignore[operator]
    found = parse(ArchiveParser, body, conf)
    assert found.text == "a.txt\nplain\nin/b.html\nPage out\nc.bin"
    assert found.outlinks == [Outlink("http://o.test/", "out")]


@pytest.mark.parametrize(
    ("name", "pack"), [("x.txt.gz", gzip.compress), ("x.txt.bz2", bz2.compress), ("x.txt.xz", lzma.compress)]
)
def test_compressed_files_are_extracted(name: str, pack: object, conf: Configuration) -> None:
    found = parse(ArchiveParser, pack(b"the text"), conf, f"http://h.test/{name}")  # type: ignore[operator]
    assert found.text == "x.txt\nthe text"


def test_multi_member_gzip_is_extracted(conf: Configuration) -> None:
    content = b"".join(gzip.compress(f"line {number}\n".encode()) for number in range(50)) + b"\0" * 512
    found = parse(ArchiveParser, content, conf, "http://h.test/x.txt.gz")
    assert found.text.split("\n") == ["x.txt", *(f"line {number}" for number in range(50))]


def test_compressed_tar_and_nested_archive_are_extracted(conf: Configuration) -> None:
    inner = gzip.compress(tarred(a_txt=b"plain"))
    assert parse(ArchiveParser, inner, conf, "http://h.test/x.tgz").text == "x.tar\na.txt\nplain"
    assert "plain" in parse(ArchiveParser, zipped(x_tar_gz=inner), conf).text


def test_office_document_declared_as_zip_is_parsed(conf: Configuration) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", "<T/>")
        archive.writestr("word/document.xml", "<d><t>words</t></d>")
    body = out.getvalue()
    assert parse(ArchiveParser, body, conf).text == "words"


def test_archive_names_in_code_page_are_decoded(conf: Configuration) -> None:
    name = "中文文档名称测试.txt"
    raw = name.encode("gb18030")
    body = zipped(**{"x" * len(raw): b""}).replace(b"x" * len(raw), raw)
    assert parse(ArchiveParser, body, conf).text == name


def test_archive_unpacking_can_be_disabled(conf: Configuration) -> None:
    conf.set("tika.parse.embedded", False)
    assert parse(ArchiveParser, zipped(a_txt=b"plain"), conf).text == ""


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    out = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", struct.pack(">II", 640, 480) + b"\x08\x06\0\0\0"), *chunks):
        out += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return out


def exif(order: str) -> bytes:
    text, place = b"A view\0", struct.pack(f"{order}6I", 47, 1, 30, 1, 0, 1)
    gps = struct.pack(f"{order}H", 2) + struct.pack(f"{order}HHI4s", 1, 2, 2, b"S\0\0\0")
    gps += struct.pack(f"{order}HHII", 2, 5, 3, 200) + bytes(4)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", 8)
    head += struct.pack(f"{order}H", 2) + struct.pack(f"{order}HHII", 0x10E, 2, 7, 100)
    head += struct.pack(f"{order}HHII", 0x8825, 4, 1, 120) + bytes(4)
    return (head.ljust(100, b"\0") + text).ljust(120, b"\0") + gps.ljust(80, b"\0") + place


JPEG = b"\xff\xd8\xff\xe1%b%b\xff\xc0\0\x11\x08" + struct.pack(">HH", 480, 640) + b"\x03" + bytes(9) + b"\xff\xd9"


@pytest.mark.parametrize("body", [
    png(), b"GIF89a" + struct.pack("<HH", 640, 480), b"BM" + bytes(16) + struct.pack("<ii", 640, -480),
    JPEG % (b"\0\x08", b"Exif\0\0"), b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x7f\x02\0\xdf\x01\0",
    b"RIFF\0\0\0\0WEBPVP8L" + bytes(5) + struct.pack("<I", 639 | 479 << 14),
    b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 640, 480),
])  # fmt: skip
def test_image_sizes_are_extracted(body: bytes, conf: Configuration) -> None:
    metadata = parse(ImageParser, body, conf).metadata
    assert (metadata["tiff:ImageWidth"], metadata["tiff:ImageLength"]) == (b"640", b"480")


@pytest.mark.parametrize("order", ["<", ">"])
def test_exif_fields_are_extracted(order: str, conf: Configuration) -> None:
    data = exif(order)
    body = JPEG % (struct.pack(">H", len(data) + 8), b"Exif\0\0" + data)
    found = parse(ImageParser, body, conf)
    assert (found.text, found.metadata["dc:description"], found.metadata["geo:lat"]) == ("A view", b"A view", b"-47.5")


def test_png_texts_are_extracted(conf: Configuration) -> None:
    found = parse(ImageParser, png(
        (b"tEXt", b"Title\0A title"), (b"zTXt", b"Description\0\0" + zlib.compress(b"packed")),
        (b"iTXt", b"Author\0\0\0\0\0" + "Größe".encode()), (b"zTXt", b"bad\0\0bad"),
    ), conf)  # fmt: skip
    assert (found.title, found.text, found.metadata["dc:creator"].decode()) == ("A title", "packed", "Größe")


def iptc(*values: tuple[int, bytes], name: bytes = b"") -> bytes:
    data = b"".join(struct.pack(">BBBH", 0x1C, 2, number, len(value)) + value for number, value in values)
    named = bytes([len(name)]) + name + bytes((len(name) + 1) % 2)
    return b"8BIM" + struct.pack(">H", 0x0404) + named + struct.pack(">I", len(data)) + data + bytes(len(data) % 2)


def test_iptc_keywords_and_captions_are_extracted(conf: Configuration) -> None:
    other = b"8BIM" + struct.pack(">HH", 0x03ED, 0) + struct.pack(">I", 3) + b"abc\0"
    segment = iptc(
        (5, b"A title"), (25, b"coast"), (25, "Vögel".encode()), (120, b"The caption"), (0, b"\0\2"), name=b"n"
    )
    found = parse(ImageParser, samples.jpeg((0xED, b"Photoshop 3.0\0" + other + segment)), conf)
    assert (found.title, found.text) == ("A title", "The caption\ncoast, Vögel")
    assert found.metadata["dc:subject"].decode() == "coast, Vögel"
    for end in range(14, len(segment)):
        cut = parse(ImageParser, samples.jpeg((0xED, b"Photoshop 3.0\0" + segment[:end])), conf)
        assert cut.major == ParseStatusCode.SUCCESS


# 64 × 48 pixels with EXIF, as libheif writes them
HEIC = zlib.decompress(
    b85decode(
        "c-mc2ze~eV5Wd&gl0mDWLj8fXi<V9;I20VLKNoTGA27bW*n^~bq@h+P1wq`LoCU#EM|BYWLv#?QP8}7Mc$Y?z9=Y6i-+k{cxd#B#PPnh@3MG(v"
        "=u{YcXgL7l!Be3HJuB30H%KsOlp*xlJi30|WVHq<5RAlYFOp3V$IRy+vrb+`Y&dbo)p1HxPX<tL$qM`<1xwc27|XL7Lk|)qe4`FD#b?ygr`V#i"
        "E5cyvEEdgl;p_YT9bnklrW3iE7!*;&0)rI>KQs5KnnlIZvJichi~Ldgyz_Q-cWc(md7=z{L1BmFnN{)Bd_1KgqtbVShIHG+4ngLSs4;A6mHcik"
        "@uGAsonZd>auVYuL{ZdDmNBBSjZ7M*X;R3c_I~d|fJh&ujPx<#Neq;e@L6d$WxRauxa-*#-_m$dTo2?vHg3Y|<ziv(<)m}4H^pN!y>)JGLWwdH"
        "QX(6V&XUiHg&6bbdG5WG-wl*%<Q-J54O_ma{Dy)b&$?uL"
    )
)
AVIF = zlib.decompress(
    b85decode(
        "c-muNU{FXasVqn=%S>Yc0uY^>nP!-qnV9D5Xz0Yiz^Id(T9U{B0g4$ZIYm%5LqTS82?HA7E66O#1+y4|SSK?lKN-YvVPIeaivTg>EFi55<U@EN"
        "K-vw69WyiYz)k?mNC7#iOi*(Y%M1*i^K<gSHcP@~fP`yBW*P`HfVC8*roo(%oKl<&wi0A%R%Ss_0g(32EJ)4=(ju9~1*uS#4nS-G!~zAG6`3Fb"
        "W)2PxAjOkdX6W3=zylHzPR`FM%1h3v0Gh_jz}5g163;Big#`-G5*9|LW)>i`IyWT|6eesCNBR0PXaRW~3`~rCU~lmOu^OW_m<_VU1f<_lA-yOy"
        "HBTWeGc_lLAvixbH9s$vL5P8iQ$n<U?;<8CUJfHUx#R7vk@x@qe{?{P;ruC=sAEOJuaztnZ*Tgj<)A140L2ti0s"
    )
)


@pytest.mark.parametrize("body", [HEIC, AVIF, AVIF.replace(b"ftypavif", b"ftypmif1")])
def test_heif_size_and_exif_are_extracted(body: bytes, conf: Configuration) -> None:
    assert detect_content_type(None, "http://h.test/a", body, conf) in ("image/heic", "image/avif")
    found = parse(ImageParser, body, conf)
    assert (found.text, found.metadata["dc:creator"]) == ("A green field", b"Someone")
    assert (found.metadata["tiff:ImageWidth"], found.metadata["tiff:ImageLength"]) == (b"64", b"48")


def test_damaged_heif_never_fails(conf: Configuration) -> None:
    for body in (HEIC, AVIF):
        for at in range(12, len(body)):
            for changed in (body[:at], body[:at] + b"\xff" + body[at + 1 :], body[:at] + b"\0" + body[at + 1 :]):
                parse(ImageParser, changed, conf)


@pytest.mark.parametrize("body", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"BM", b"RIFF", b"II*\0", b"none"])
def test_broken_images_are_tolerated(body: bytes, conf: Configuration) -> None:
    assert parse(ImageParser, body, conf).minor == ParseStatusCode.INVALID_FORMAT


def message(subject: str, text: str) -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"], made["To"] = subject, "Müller <m@h.test>", "you@h.test"
    made["Date"] = "Sat, 21 Nov 2026 09:00:00 +0100"
    made.set_content(text, charset="gb18030")
    return made


def test_mail_with_attachment_is_extracted(conf: Configuration) -> None:
    made = message("Grüße", "plain text")
    made.add_alternative("<p>html 文字 <a href='http://h.test/in'>in</a>", subtype="html", charset="gb18030")
    made.add_attachment(PAGE, maintype="text", subtype="html", filename="b.html")
    found = parse(MailParser, made.as_bytes(), conf)
    assert (found.title, found.metadata["dcterms:created"]) == ("Grüße", b"2026-11-21T09:00:00+01:00")
    assert "html 文字 in\nb.html\nPage out" in found.text
    assert "plain text" not in found.text
    assert "Müller <m@h.test>" in found.text
    assert found.outlinks == [Outlink("http://h.test/in", "in"), Outlink("http://o.test/", "out")]


RUSSIAN = "Сообщение о новой версии программы для чтения писем"


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        # RFC 6532, alone and beside encoded words
        ("Subject: Grüße 你好\n\nx".encode(), "Grüße 你好"),
        ("Subject: =?iso-8859-1?q?Gr=FC=DFe?= 你好 =?utf-8?b?w7w=?=\n\nx".encode(), "Grüße 你好 ü"),
        ("Subject: Grüße\nContent-Type: text/plain; charset=iso-8859-1\n\n".encode() + b"\xfc", "Grüße"),
        # older programs: the encoding of the message, of a part of it, or none that is declared
        (f"Subject: {RUSSIAN}\nContent-Type: text/plain;\n charset=KOI8-R\n\nx".encode("koi8-r"), RUSSIAN),
        (f"Subject: {RUSSIAN}\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
         f"Content-Type: text/plain; charset=windows-1251\n\nx\n--b--".encode("cp1251"), RUSSIAN),
        (f"Subject: {RUSSIAN}\n\n{RUSSIAN}".encode("koi8-r"), RUSSIAN),
        (f"Subject: {RUSSIAN}\nContent-Type: text/plain; charset=us-ascii\n\n{RUSSIAN}".encode("cp1251"), RUSSIAN),
        # encoded words by the tables of the WHATWG; a character may be split, a language may be named
        (b"Subject: =?big5?b?wHXHVah9q34=?=\n\nx", "優の良品"),
        (b"Subject: =?utf-8?q?=E4=BD?= =?utf-8?q?=A0?=\n\nx", "你"),
        (b"Subject: =?utf-8*de?q?=C3=BC?=\n\nx", "ü"),
        (b"Subject: =?none?q?=C3=BC?= =?utf-8?b?!?=\n\nx", "=?none?q?=C3=BC?= =?utf-8?b?!?="),
    ],
)  # fmt: skip
def test_header_of_mail_is_read_in_its_encoding(raw: bytes, title: str, conf: Configuration) -> None:
    found = parse(MailParser, b"From: a@h.test\n" + raw, conf)
    assert found.title == title
    assert title in found.text


@pytest.mark.parametrize(
    "disposition",
    ['filename="имя.txt"'.encode(), b"filename*=koi8-r''%C9%CD%D1.txt", b'filename="=?koi8-r?b?yc3RLnR4dA==?="'],
)
def test_name_of_attachment_is_read_in_its_encoding(disposition: bytes, conf: Configuration) -> None:
    raw = b"From: a@h.test\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment; "
    assert "имя.txt" in parse(MailParser, raw + disposition + b"\n\ntext\n--b--", conf).text


@pytest.mark.parametrize("page", ["<p></p>", ""])
def test_empty_alternatives_fall_back_to_plain_text(page: str, conf: Configuration) -> None:
    made = message("S", "plain 文字 text")
    made.add_alternative(page, subtype="html")
    assert "plain 文字 text" in parse(MailParser, made.as_bytes(), conf).text


def test_multipart_mixed_texts_are_all_read(conf: Configuration) -> None:
    made = message("S", "first")
    made.make_mixed()
    for text, kind in (("<p>second", "html"), ("third", "plain"), ("<p>fourth", "html")):
        part = EmailMessage()
        part.set_content(text, subtype=kind)
        made.attach(part)
    assert parse(MailParser, made.as_bytes(), conf).text.endswith("first\nsecond\nthird\nfourth")


def test_multipart_related_html_is_an_alternative(conf: Configuration) -> None:
    made = message("S", "plain")
    made.add_alternative("<p>html <img src='cid:1'>", subtype="html")
    related = made.get_payload(1)
    assert isinstance(related, EmailMessage)
    related.add_related(b"GIF89a\1\0\1\0", "image", "gif", cid="1", filename="dot.gif")
    text = parse(MailParser, made.as_bytes(), conf).text
    assert text.endswith("html\ndot.gif")
    assert "plain" not in text


@pytest.mark.parametrize("encoding", ["7bit", "base64", "quoted-printable"])
def test_message_in_message_is_extracted(encoding: str, conf: Configuration) -> None:
    """Base64 is forbidden there (RFC 2046, 5.2.1), and is what GroupWise writes."""
    inner = b"Subject: inner\nFrom: other@h.test\n\nthe body within"
    raw = {"base64": b2a_base64(inner), "quoted-printable": b2a_qp(inner)}.get(encoding, inner)
    body = b"Subject: outer\nFrom: me@h.test\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nouter body\n--x\n"
    body += f"Content-Type: message/rfc822\nContent-Transfer-Encoding: {encoding}\n\n".encode() + raw + b"\n--x--\n"
    found = parse(MailParser, body, conf)
    assert (found.title, found.metadata["dc:creator"]) == ("outer", b"me@h.test")
    assert found.text == "me@h.test\nouter\nouter body\nother@h.test\ninner\nthe body within"


def test_mbox_messages_are_extracted(conf: Configuration) -> None:
    box = b"".join(b"From x Sat Nov 21\n" + message(f"S{n}", f"body {n}").as_bytes() + b"\n" for n in range(3))
    text = parse(MailParser, box, conf).text
    assert [f"body {n}" in text for n in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("body", [bz2.compress(bytes(20 << 20)), lzma.compress(bytes(20 << 20))], ids=["bzip2", "xz"])
def test_highly_compressed_data_is_unpacked_in_pieces(body: bytes) -> None:
    assert len(body) < 10_000
    pieces = decompress_chunks(body)
    assert pieces is not None
    sizes = [len(piece) for piece in pieces]
    assert (max(sizes), sum(sizes)) == (1 << 16, 20 << 20)
