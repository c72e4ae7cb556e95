"""Office documents and books made here, part by part."""

from __future__ import annotations

import io
import zipfile

import pytest

from nutch2py.conf import Configuration
from nutch2py.contracts import Outlink, Parse
from nutch2py.parser.formats.epub import EpubParser
from nutch2py.parser.formats.ooxml import OoxmlParser
from nutch2py.parser.formats.opendocument import OpenDocumentParser
from nutch2py.parser.formats.xlsx import shown_number
from nutch2py.webpage import ParseStatusCode
from tests.parser.pages import fetched

URL = "http://h.test/d/file"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def package(**files: str) -> bytes:
    """Pack files; in names ``__`` stands for ``/`` and ``_`` for a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_", ".").replace("/.rels", "/_rels"), content)
    return out.getvalue()


def links(**targets: str) -> str:
    """Give a ``.rels`` file of hyperlinks."""
    entries = "".join(
        f"<Relationship Id='{key}' Type='{RELATIONS}/hyperlink' Target='{target}'/>" for key, target in targets.items()
    )
    return f"<Relationships>{entries}</Relationships>"


def parse(kind: type, body: bytes, conf: Configuration) -> Parse:
    found: Parse = kind(conf).parse(URL, fetched(body, "application/x", URL))
    return found


def test_word(conf: Configuration) -> None:
    body = (
        f"<w:document xmlns:w='w' xmlns:r='{RELATIONS}'><w:p><w:r><w:t>One</w:t><w:tab/><w:t>two</w:t></w:r></w:p>"
        "<w:p><w:hyperlink r:id='rId1'><w:r><w:t>a </w:t></w:r><w:r><w:t>link</w:t></w:r></w:hyperlink></w:p>"
        "<w:p><w:r><w:instrText>FIELD</w:instrText><w:delText>gone</w:delText></w:r></w:p>"
        "<mc:AlternateContent xmlns:mc='m'><mc:Choice><w:t>box</w:t></mc:Choice><mc:Fallback><w:t>box</w:t>"
        "</mc:Fallback></mc:AlternateContent></w:document>"
    )
    file = package(
        word__document_xml=body, word___rels__document_xml_rels=links(rId1="../x", rId2="http://o.test/"),
        word__footnotes_xml="<x><t>note</t></x>", word__header1_xml="<x><t>head</t></x>",
        docProps__core_xml="<p><title> The  title </title><creator>Me</creator><created>2020-01-01</created></p>",
    )  # fmt: skip
    found = parse(OoxmlParser, file, conf)
    assert (found.title, found.text) == ("The title", "One two\na link\nbox\nnote\nhead")
    assert found.outlinks == [Outlink("http://h.test/x", "a link"), Outlink("http://o.test/", "")]
    assert dict(found.metadata) == {"dc:creator": b"Me", "dcterms:created": b"2020-01-01"}


def test_excel(conf: Configuration) -> None:
    sheet = (
        f"<worksheet xmlns:r='{RELATIONS}'><sheetData><row><c t='s'><v>1</v></c><c t='s'><v>0</v></c></row>"
        "<row><c><v>0.1</v></c><c s='1'><v>45000</v></c><c t='b'><v>1</v></c><c t='inlineStr'><is><t>in</t></is></c>"
        "<c t='str'><f>A1</f><v>formula</v></c><c t='s'><v>99</v></c></row></sheetData>"
        "<hyperlinks><hyperlink r:id='a' display='shown'/></hyperlinks></worksheet>"
    )
    file = package(
        xl__workbook_xml=f"<w xmlns:r='{RELATIONS}'><sheets><sheet name='First' r:id='r1'/></sheets></w>",
        xl___rels__workbook_xml_rels=(
            "<R><Relationship Id='r1' Type='x/worksheet' Target='worksheets/sheet1.xml'/></R>"
        ),
        xl__worksheets__sheet1_xml=sheet, xl__worksheets___rels__sheet1_xml_rels=links(a="http://o.test/"),
        xl__sharedStrings_xml="<sst><si><t>zero</t></si><si><r><t>o</t></r><r><t>ne</t></r><rPh><t>x</t></rPh></si></sst>",
        xl__styles_xml="<s><cellXfs><xf numFmtId='0'/><xf numFmtId='14'/></cellXfs></s>",
    )  # fmt: skip
    found = parse(OoxmlParser, file, conf)
    assert found.text == "First\none zero\n0.1 2023-03-15 TRUE in formula"
    assert found.outlinks == [Outlink("http://o.test/", "shown")]


def test_powerpoint_slides_come_in_their_order(conf: Configuration) -> None:
    slides = {f"ppt__slides__slide{n}_xml": f"<s><a:p xmlns:a='a'><a:t>slide {n}</a:t></a:p></s>" for n in (10, 2, 1)}
    found = parse(OoxmlParser, package(**slides, ppt__notesSlides__notesSlide1_xml="<s><t>note</t></s>"), conf)
    assert found.text == "slide 1\nslide 2\nslide 10\nnote"


def test_open_document(conf: Configuration) -> None:
    body = (
        "<d xmlns:t='t' xmlns:x='x'><t:h>Head</t:h><t:tracked-changes><t:p>gone</t:p></t:tracked-changes>"
        "<t:p>see <t:a x:href='/x'>a <t:span>link</t:span></t:a>,<t:s t:c='3'/>tail<t:line-break/>end</t:p></d>"
    )
    file = package(
        mimetype="application/vnd.oasis.opendocument.text", content_xml=body, meta_xml="<m><title>T</title></m>",
        styles_xml="<s xmlns:t='t'><t:p>footer</t:p></s>",
    )  # fmt: skip
    found = parse(OpenDocumentParser, file, conf)
    assert (found.title, found.text) == ("T", "Head\nsee a link, tail\nend\nfooter")
    assert found.outlinks == [Outlink("http://h.test/x", "a link")]
    assert parse(OpenDocumentParser, body.encode(), conf).text == "Head\nsee a link, tail\nend"  # the flat form


def test_an_encrypted_document_is_told(conf: Configuration) -> None:
    file = package(content_xml="noise", **{"META-INF__manifest_xml": "<m><encryption-data/></m>"})
    found = parse(OpenDocumentParser, file, conf)
    assert found.args == ("OpenDocumentParser: encrypted: the manifest names a key",)


def test_a_book_is_read_in_the_order_of_its_spine(conf: Configuration) -> None:
    chapter = "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>{}</p><a href='http://o.test/{}'>l</a></body></html>"
    file = package(
        **{"META-INF__container_xml": "<c><rootfiles><rootfile full-path='OPS/book.opf'/></rootfiles></c>"},
        OPS__book_opf=(
            "<p xmlns:dc='d'><metadata><dc:title>Book</dc:title><dc:creator>Me</dc:creator></metadata><manifest>"
            "<item id='1' href='one.xhtml'/><item id='2' href='two%20.xhtml'/></manifest>"
            "<spine><itemref idref='2'/><itemref idref='1'/></spine></p>"
        ),
        OPS__one_xhtml=chapter.format("one", 1), **{"OPS__two _xhtml": chapter.format("two", 2)},
    )  # fmt: skip
    found = parse(EpubParser, file, conf)
    assert (found.title, found.text, found.metadata["dc:creator"]) == ("Book", "two l\none l", b"Me")
    assert [link.url for link in found.outlinks] == ["http://o.test/2", "http://o.test/1"]


@pytest.mark.parametrize("body", [b"PK\3\4 cut off", b"nonsense", package(other_xml="<x/>"), package()])
@pytest.mark.parametrize("kind", [OoxmlParser, OpenDocumentParser, EpubParser])
def test_what_is_none_of_them_is_of_invalid_format(kind: type, body: bytes, conf: Configuration) -> None:
    found = parse(kind, body, conf)
    assert (found.major, found.minor) == (ParseStatusCode.FAILED, ParseStatusCode.INVALID_FORMAT)


def test_no_content_is_told(conf: Configuration) -> None:
    assert parse(OoxmlParser, b"", conf).minor == ParseStatusCode.MISSING_CONTENT


@pytest.mark.parametrize(("value", "is_date", "shown"), [
    ("1e3", False, "1000"), ("-0.5", False, "-0.5"), ("x", False, "x"), ("1e400", False, "inf"),
    ("60.25", True, "1900-02-28 06:00"), ("-1", True, "-1"), ("9e9", True, "9000000000"),
])  # fmt: skip
def test_numbers_of_cells(value: str, is_date: bool, shown: str) -> None:
    assert shown_number(value, is_date) == shown
