"""Office documents and books, built part by part."""

from __future__ import annotations

import io
import zipfile

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Outlink, Parse
from nutch2py.parser.formats.archive import ArchiveParser
from nutch2py.parser.formats.epub import EpubParser
from nutch2py.parser.formats.excel.number_format import find_format_code, format_cell
from nutch2py.parser.formats.office.ole import OleParser
from nutch2py.parser.formats.office.ooxml import OoxmlParser
from nutch2py.parser.formats.office.opendocument import OpenDocumentParser
from nutch2py.parser.formats.word.rtf import RtfParser
from nutch2py.parser.parsechecker import create_page
from nutch2py.parser.row_parser import RowParser
from nutch2py.records.webpage import ParseStatusCode
from tests.parser.formats import samples
from tests.parser.pages import fetched

URL = "http://h.test/d/file"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def package(**files: str) -> bytes:
    """Pack files; in names ``__`` means ``/`` and ``_`` a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_", ".").replace("/.rels", "/_rels"), content)
    return out.getvalue()


def links(**targets: str) -> str:
    """Return a ``.rels`` file of hyperlinks."""
    entries = "".join(
        f"<Relationship Id='{key}' Type='{RELATIONS}/hyperlink' Target='{target}'/>" for key, target in targets.items()
    )
    return f"<Relationships>{entries}</Relationships>"


def parse(kind: type, body: bytes, conf: Configuration) -> Parse:
    found: Parse = kind(conf).parse(URL, fetched(body, "application/x", URL))
    return found


def test_docx_text_title_and_links_are_extracted(conf: Configuration) -> None:
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


def test_docx_fields_are_extracted(conf: Configuration) -> None:
    def field(code: str, words: str) -> str:
        kinds = [f"<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>" for kind in ("begin", "separate", "end")]
        return f"{kinds[0]}<w:instrText>{code}</w:instrText>{kinds[1]}<w:r><w:t>{words}</w:t></w:r>{kinds[2]}"

    inner = field('HYPERLINK "http://h.test/in"', "in")
    body = (
        "<w:document xmlns:w='w' xmlns:v='v'><w:p>"
        + field(' HYPERLINK "http://h.test/a" \\o "tip" ', "out")
        + field(' HYPERLINK \\l "_Toc1" ', "here")
        + field(" PAGE ", "7")
        + field(' INCLUDEPICTURE "http://h.test/b.png" \\d', "picture")
        + field(' HYPERLINK "http://h.test/outer"', f"o </w:t></w:r>{inner}<w:r><w:t> r")
        + "<v:shape href='http://h.test/c'/></w:p><w:p><w:fldSimple w:instr='HYPERLINK http://h.test/d'>"
        "<w:r><w:t>simple</w:t></w:r></w:fldSimple></w:p><w:p><w:instrText>lost</w:instrText></w:p></w:document>"
    )
    found = parse(OoxmlParser, package(word__document_xml=body), conf)
    assert found.text == "outhere7pictureo in r\nsimple"
    assert [(link.url.removeprefix("http://h.test/"), link.anchor) for link in found.outlinks] == [
        ("a", "out"), ("b.png", "picture"), ("in", "in"), ("outer", "o in r"), ("c", ""), ("d", "simple"),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["doc", "rtf"])
def test_doc_and_rtf_internal_links_are_ignored(kind: str, conf: Configuration) -> None:
    """Tables of contents are made of such fields."""
    if kind == "doc":
        text = '\x13HYPERLINK \\l "_Toc1"\x14one\x15 \x13 HYPERLINK \\o "x" "/a" \\l "b"\x14two\x15\r'
        found = parse(OleParser, samples.compound(samples.doc(text)), conf)
    else:
        link = r"{\field{\*\fldinst HYPERLINK %s}{\fldrslt %s}} "
        body = link % (r'\\l "_Toc1"', "one") + link % (r'\\o "x" "/a" \\l "b"', "two")
        found = parse(RtfParser, (r"{\rtf1 " + body + "}").encode(), conf)
    assert found.text == "one two"
    assert found.outlinks == [Outlink("http://h.test/a", "two")]


def test_pptx_masters_and_commenters_are_extracted(conf: Configuration) -> None:
    master = "<m><sp><ph type='title'/><p><t>Click to edit</t></p></sp>"
    master += "<sp><p><t>Our</t><t>house</t></p><p><t>2026</t></p></sp></m>"
    file = package(
        ppt__slides__slide1_xml="<s><p><t>One</t></p></s>", ppt__slideMasters__slideMaster1_xml=master,
        ppt__commentAuthors_xml="<a><cmAuthor name='Ann' initials='A'/></a>",
    )  # fmt: skip
    assert parse(OoxmlParser, file, conf).text == "One\nAnn (A)\nOurhouse\n2026"


def test_xlsx_text_is_extracted(conf: Configuration) -> None:
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


def test_pptx_slides_are_in_order(conf: Configuration) -> None:
    slides = {f"ppt__slides__slide{n}_xml": f"<s><a:p xmlns:a='a'><a:t>slide {n}</a:t></a:p></s>" for n in (10, 2, 1)}
    found = parse(OoxmlParser, package(**slides, ppt__notesSlides__notesSlide1_xml="<s><t>note</t></s>"), conf)
    assert found.text == "slide 1\nslide 2\nslide 10\nnote"


def test_opendocument_text_is_extracted(conf: Configuration) -> None:
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


def test_encrypted_document_is_reported(conf: Configuration) -> None:
    file = package(content_xml="noise", **{"META-INF__manifest_xml": "<m><encryption-data/></m>"})
    found = parse(OpenDocumentParser, file, conf)
    assert found.args == ("OpenDocumentParser: encrypted: the manifest contains encryption data",)


def test_epub_is_read_in_spine_order(conf: Configuration) -> None:
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
def test_invalid_package_has_invalid_format_status(kind: type, body: bytes, conf: Configuration) -> None:
    found = parse(kind, body, conf)
    assert (found.major, found.minor) == (ParseStatusCode.FAILED, ParseStatusCode.INVALID_FORMAT)


def test_missing_content_is_reported(conf: Configuration) -> None:
    assert parse(OoxmlParser, b"", conf).minor == ParseStatusCode.MISSING_CONTENT


@pytest.mark.parametrize(("value", "code", "expected"), [
    ("1e3", "General", "1000"), ("-0.5", "General", "-0.5"), ("x", "0", "x"), ("1e400", "0", "1e400"),
    ("0.30000000000000004", "General", "0.3"), ("", "0", ""), ("nan", "0", "nan"),
    ("1234567", "#,##0,", "1,235"), ("5551234", "000-0000", "555-1234"), ("-5", "0;(0);-", "(5)"),
    ("0", "0;(0);-", "-"),
    ("0.5", "#.##", ".5"), ("-0.001", "0.0", "0.0"), ("198000000", "0.00E+00", "1.98E+08"), ("3", "[$€-407] 0", "€ 3"),
    ("19.99", '0 "dollars and" .00 "cents"', "19 dollars and .99 cents"), ("5.25", "0 0/8", "5 1/4"), ("7", "@", "7"),
    ("39219.1806", '"At" h:mm AM/PM "on" dddd mmmm d, yyyy', "At 4:20 AM on Thursday May 17, 2007"),
    ("60.25", "yyyy-mm-dd hh:mm", "1900-02-28 06:00"), ("-1", "yyyy", "-1"), ("9e9", "yyyy", "9000000000"),
    ("0.00001", "mm:ss.0", "00:00.9"), ("1.5", "[mm]:ss", "2160:00"), ("1", "[$", "1"), ("1", "x" * 9999, "x" * 255),
])  # fmt: skip
def test_xlsx_cell_numbers_are_formatted(value: str, code: str, expected: str) -> None:
    assert format_cell(value, code) == expected


def test_xlsx_formats_and_locale_dates_are_applied() -> None:
    assert find_format_code(164, {164: "0.0"}) == "0.0"
    assert find_format_code(14, {14: "m/d/yyyy"}) == "yyyy-mm-dd"
    assert find_format_code(9, {}) == "0%"
    assert find_format_code(999, {}) == "General"


NUMBERING = """<numbering>
<abstractNum abstractNumId="1"><lvl ilvl="0"><start val="2"/><numFmt val="decimal"/><lvlText val="%1."/></lvl>
<lvl ilvl="1"><start val="1"/><numFmt val="lowerLetter"/><lvlText val="%1.%2)"/><pStyle val="Sub"/></lvl></abstractNum>
<abstractNum abstractNumId="2"><lvl ilvl="0">
<start val="1"/><numFmt val="bullet"/><lvlText val="o"/></lvl></abstractNum>
<abstractNum abstractNumId="3"><numStyleLink val="Chinese"/></abstractNum>
<abstractNum abstractNumId="4"><styleLink val="Chinese"/><lvl ilvl="0"><start val="11"/>
<numFmt val="chineseCounting"/><lvlText val="%1、"/></lvl></abstractNum>
<num numId="1"><abstractNumId val="1"/></num><num numId="2"><abstractNumId val="2"/></num>
<num numId="3"><abstractNumId val="1"/><lvlOverride ilvl="0"><startOverride val="7"/></lvlOverride></num>
<num numId="4"><abstractNumId val="3"/></num></numbering>"""


def test_docx_list_numbers_are_shown(conf: Configuration) -> None:
    def item(text: str, num: str = "", level: str = "0", style: str = "") -> str:
        own = f'<numPr><ilvl val="{level}"/><numId val="{num}"/></numPr>' if num else ""
        return f'<p><pPr><pStyle val="{style}"/>{own}</pPr><r><t>{text}</t></r></p>'

    body = [
        item("a", "1"),
        item("b", "1", "1"),
        item("c", style="Below"),
        item("d", "1"),
        item("e", "2"),
        item("f", "3"),
    ]
    body += [item("g", "3"), item("h", "4"), item("i", "0", style="Sub"), item("j", "99"), item("k", "1", "99")]
    old = '<p><pPr><pPrChange><pPr><numPr><numId val="1"/></numPr></pPr></pPrChange></pPr><r><t>l</t></r></p>'
    styles = '<styles><style styleId="Sub"><pPr><numPr><numId val="1"/></numPr></pPr></style>'
    styles += '<style styleId="Below"><basedOn val="Sub"/></style></styles>'
    found = parse(
        OoxmlParser,
        samples.zipped({
            "word/document.xml": f"<document>{''.join(body)}{old}</document>".encode(),
            "word/numbering.xml": NUMBERING.encode(),
            "word/styles.xml": styles.encode(),
        }),
        conf,
    )  # fmt: skip
    assert found.text.split("\n") == [
        "2. a", "2.a) b", "2.b) c", "3. d", "e", "7. f", "8. g", "十一、 h", "i", "j", "k", "l",
    ]  # fmt: skip


def test_docx_list_level_continues_and_bullets_have_no_numbers(conf: Configuration) -> None:
    levels = "".join(
        f'<lvl ilvl="{at}"><start val="1"/>{more}<lvlText val="{text}"/></lvl>'
        for at, (text, more) in enumerate((
            ("%1", ""), ("%2", '<numFmt val="bullet"/>'), ("%1.%2.%3", '<lvlRestart val="1"/>'),
            ("%4", '<lvlRestart val="0"/>')
        ))
    )  # fmt: skip
    numbering = (
        f'<w><abstractNum abstractNumId="1">{levels}</abstractNum><num numId="1"><abstractNumId val="1"/></num></w>'
    )
    items = "".join(
        f'<p><pPr><numPr><ilvl val="{at}"/><numId val="1"/></numPr></pPr><r><t>x</t></r></p>'
        for at in (0, 2, 1, 2, 3, 0, 2, 3)
    )
    files = {"word/document.xml": f"<d>{items}</d>".encode(), "word/numbering.xml": numbering.encode()}
    found = parse(OoxmlParser, samples.zipped(files), conf)
    assert found.text.split("\n") == ["1 x", "1..1 x", "x", "1..2 x", "1 x", "2 x", "2..1 x", "2 x"]


def test_docx_altchunk_text_is_inserted_in_place(conf: Configuration) -> None:
    """altChunk: an HTML or MHT file that Word shows as part of the document."""
    chunk = '<R><Relationship Id="1" Type="x/aFChunk" Target="{}"/></R>'
    document = b'<document><p><t>own</t></p><altChunk id="1"/></document>'
    for target, place, body in (
        ("c.html", "word/c.html", b"<p>of the page"),
        ("/d/c.mht", "d/c.mht", b"MIME-Version: 1.0\nContent-Type: text/html\n\n<p>of the page"),
        ("../c.txt", "c.txt", b"of the page"),
    ):
        links = chunk.format(target).encode()
        files = {"word/document.xml": document, "word/_rels/document.xml.rels": links, place: body}
        assert parse(OoxmlParser, samples.zipped(files), conf).text == "own\nof the page"


def test_broken_part_does_not_affect_others(conf: Configuration) -> None:
    sheets = {f"word/header{n}.xml": f"<t>text of part {n} {'x' * 50}</t>".encode() for n in range(1, 4)}
    whole = samples.zipped({"word/document.xml": b"<document/>", **sheets})
    entry = whole.index(b"word/header2.xml")
    checksum = whole.index(b"word/header2.xml", entry + 1) - 46 + 16
    wrong = bytearray(whole)
    wrong[checksum] ^= 1  # text with a wrong checksum is still read
    assert "text of part 2" in parse(OoxmlParser, bytes(wrong), conf).text
    wrong[entry - 30] ^= 1  # no file at the directory's offset
    found = parse(OoxmlParser, bytes(wrong), conf)
    assert "part 1" in found.text
    assert "part 2" not in found.text
    assert "part 3" in found.text
    for name in ("word/document.xml", *sheets):
        wrong[whole.index(name.encode()) - 30] ^= name != "word/header2.xml"
    found = parse(OoxmlParser, bytes(wrong), conf)
    assert (found.major, found.minor) == (ParseStatusCode.FAILED, ParseStatusCode.INVALID_FORMAT)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Index/Document.iwa", "iWork"), ("index.apxl", "iWork"), ("FixedDocSeq.fdseq", "XPS"),
     ("xl/workbook.bin", "binary"), ("visio/document.xml", "Visio")],
)  # fmt: skip
def test_unsupported_packages_are_rejected_by_name(name: str, kind: str, conf: Configuration) -> None:
    body = samples.zipped({"[Content_Types].xml": b"<Types/>", name: b"<text>words</text>", "preview.pdf": b"%PDF-1.4"})
    for parser in (ArchiveParser, OoxmlParser):
        found = parse(parser, body, conf)
        assert (found.major, found.minor) == (ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION)
        assert kind in found.args[0]


@pytest.mark.parametrize(("name", "inside", "reason"), [
    ("a.pages", "Index/Document.iwa", "vnd.apple.pages"), ("a.key", "index.apxl", "vnd.apple.keynote"),
    ("a.numbers", "Index/Document.iwa", "vnd.apple.numbers"), ("a.xps", "FixedDocSeq.fdseq", "xps"),
    ("a.oxps", "FixedDocumentSequence.fdseq", "xps"), ("a.vsdx", "visio/document.xml", "visio"),
    ("a.zip", "Index/Document.iwa", "iWork"), ("a", "FixedDocSeq.fdseq", "XPS"),
])  # fmt: skip
def test_unsupported_package_markup_is_not_indexed(name: str, inside: str, reason: str, conf: Configuration) -> None:
    """Whatever a package is called, from its bytes to its parse."""
    body = samples.zipped({inside: b"<text>words</text>", "a.xml": b"<text>words</text>"})
    url = f"http://h.test/{name}"
    found = RowParser(conf).parse(url, create_page(url, body, None, conf))
    assert (found.major, found.text) == (ParseStatusCode.FAILED, "")
    assert reason.lower() in " ".join(found.args).lower()


def test_opendocument_notes_and_boxes_are_kept_apart_from_paragraph(conf: Configuration) -> None:
    note = "<text:note><note-citation>1</note-citation><note-body><text:p>the note</text:p></note-body></text:note>"
    said = "<annotation><creator>me</creator><date>2017-01-31</date><text:p>what was said</text:p></annotation>"
    box = "<draw:text-box><text:p>in a box</text:p></draw:text-box>"
    found = parse(
        OpenDocumentParser, samples.odt(f"<text:p>wo{note}rd{said}s {box}end</text:p><text:p>next</text:p>"), conf
    )
    assert found.text.split("\n") == ["the note", "what was said", "in a box", "words end", "next"]


def test_docx_external_references_are_outlinks(conf: Configuration) -> None:
    body = samples.docx("", [("1", "http://h.test/a.png"), ("2", "media/b.png"), ("3", "http://h.test/a.png")], "image")
    assert [link.url for link in parse(OoxmlParser, body, conf).outlinks] == ["http://h.test/a.png"]
