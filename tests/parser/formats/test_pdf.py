"""PDF: word separation by positions, right-to-left text, outlines, notes and form fields."""

from __future__ import annotations

import struct
import zlib

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Outlink, Parse
from nutch2py.parser.formats import pdf, pdf_limits
from nutch2py.parser.formats.pdf import PdfParser
from nutch2py.parser.formats.pdf_fonts import characters_of_codes, read_glyph_characters
from nutch2py.parser.formats.pdf_text import PdfCharacter, insert_spaces, order_glyphs, split_by_height, split_lines
from nutch2py.support.invariants import not_none
from tests.parser.formats import samples
from tests.parser.pages import fetched

ALEPH, DAGESH, ALEF, LAM = "\u05d0", "\u05bc", "\u0627", "\u0644"


def parse(body: bytes, conf: Configuration) -> Parse:
    found: Parse = PdfParser(conf).parse("http://h.test/a.pdf", fetched(body, "application/pdf"))
    return found


def at(text: str, left: float, width: float = 5, *, bottom: float = 0, made: bool = False) -> PdfCharacter:
    return PdfCharacter(text, made, left, left + width, bottom, bottom + 10)


def words(*places: tuple[str, float]) -> str:
    return "".join(char.text for char in insert_spaces([at(text, left) for text, left in places]))


def test_gap_of_quarter_character_is_space() -> None:
    assert words(("a", 0), ("b", 5.2), ("c", 12), ("d", 17)) == "ab cd"
    assert words(("d", 17), ("c", 12), ("b", 5.2), ("a", 0)) == "dc ba"  # from right to left
    assert words(("1", 0), ("1", 7), ("2", 15)) == "11 2"  # digits are equally wide, whatever is drawn of them
    assert words((".", 0), (".", 9), (".", 18), ("7", 27)) == "... 7"


def test_spaces_of_file_are_kept_and_inferred_removed() -> None:
    line = [at("a", 0), at(" ", 5, made=True), at("b", 5), at(" ", 8), at("c", 9)]
    assert "".join(char.text for char in insert_spaces(line)) == "ab c"


def test_continued_line_at_same_height_is_one_line() -> None:
    end = at("\n", 5, made=True)
    lines = [at("a", 0), end, at("b", 6), end, at("c", 0), end, at("d", 40), end, at("e", 46, bottom=20)]
    found = ["".join(char.text for char in line) for line in split_lines(iter(lines), joins_lines=True)]
    assert found == ["ab", "c", "d", "e"]
    assert len([*split_lines(iter(lines), joins_lines=False)]) == 5


def test_letter_precedes_marks_and_lam_precedes_alef() -> None:
    def turned(*glyphs: str) -> str:
        line = [at(letter, 10.0 * place) for place, glyph in enumerate(glyphs) for letter in glyph]
        return "".join(order_glyphs(line))

    assert turned(DAGESH + ALEPH, ALEF + LAM) == ALEPH + DAGESH + LAM + ALEF
    assert turned(ALEPH + DAGESH, LAM + ALEF) == ALEPH + DAGESH + LAM + ALEF
    assert turned("\u064e\u0651") == "\u064e\u0651"  # two marks of a letter before them
    assert turned(ALEF, LAM) == ALEF + LAM  # two letters, not one glyph
    assert turned("fi", "\u0301e") == "fi\u0301e"


def test_lines_are_ordered_from_top() -> None:
    line = [at("a", 0), at("b", 0, bottom=50), at("c", 5, bottom=52), at("d", 0, bottom=20)]
    assert ["".join(char.text for char in part) for part in split_by_height(line)] == ["bc", "d", "a"]


def test_letter_by_letter_words_are_joined(conf: Configuration) -> None:
    """A font for vertical writing, in which a line is drawn letter by letter: PDFium sees a space after each."""
    said = "TORN WORDS OF A WHOLE LINE OF WRITING"
    drawn = b"".join(b"1 0 0 1 %d 700 Tm <00%02x> Tj " % (20 + 9 * place, ord(letter))
                     for place, letter in enumerate(said) if letter != " ")  # fmt: skip
    assert parse(samples.pdf([b"BT /G 14 Tf " + drawn + b"ET"], **samples.VERTICAL), conf).text == said


def test_lines_without_spaces_next_to_others_are_split(conf: Configuration) -> None:
    """PDFium takes the narrow gaps between the words of justified lines for none."""
    words = b"".join(b"[(%s)-170] TJ " % word for word in b"these words of a line have narrow gaps".split())
    lines = b"1 0 0 1 20 700 Tm (a line with spaces as most files have them, and more) Tj 1 0 0 1 20 650 Tm "
    wide = b"1 0 0 1 20 600 Tm " + b"".join(
        b"[(%s)-400] TJ " % word
        for word in b"and these words of a line have wide gaps as they should have them".split()
    )
    found = parse(samples.pdf([b"BT /F 14 Tf " + lines + words + wide + b"ET"]), conf)
    assert found.text.split("\n")[1:] == [
        "these words of a line have narrow gaps",
        "and these words of a line have wide gaps as they should have them",
    ]


def test_page_with_spaces_keeps_words(conf: Configuration) -> None:
    assert parse(samples.pdf([b"BT /F 9 Tf 20 700 Td (a b c d e f g h) Tj ET"]), conf).text == "a b c d e f g h"


def test_right_to_left_text_is_in_reading_order(conf: Configuration) -> None:
    """A glyph of a letter with its mark; its ToUnicode has the mark first, as Word writes it."""
    cmap = b"1 begincodespacerange <00> <ff> endcodespacerange 2 beginbfchar <41> <05bc05d0> <42> <05d1> endbfchar"
    body = b"begincmap " + cmap + b" endcmap"
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 12 0 R>>"
    more = [b"<<>>", font, b"<</Length %d>>stream\n" % len(body) + body + b"\nendstream"]
    page = b"BT /G 20 Tf 1 0 0 1 100 300 Tm <41> Tj 1 0 0 1 88 300 Tm <42> Tj 1 0 0 1 100 600 Tm <42> Tj ET"
    found = parse(samples.pdf([page], fonts="/G 11 0 R", more=more), conf)
    assert found.text == "\u05d1\n\u05d0\u05bc\u05d1"


def composite(base: bytes, extra: bytes = b"", *, descriptor: bytes = b"") -> list[bytes]:
    """Return a composite font of glyph numbers without ToUnicode; it is object 11."""
    flags = b"/FontDescriptor<</Type/FontDescriptor/FontName/%s/Flags 4%s>>" % (base, descriptor)
    glyphs = b"<</Type/Font/Subtype/CIDFontType2/BaseFont/%s/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)" % base
    return [
        b"<<>>",
        b"<</Type/Font/Subtype/Type0/BaseFont/%s/Encoding/Identity-H/DescendantFonts[12 0 R]>>" % base,
        glyphs + b"/Supplement 0>>/DW 600/CIDToGIDMap/Identity" + flags + b">>",
        *([extra] if extra else []),
    ]


def drawn(codes: bytes) -> bytes:
    return b"BT /G 14 Tf 20 700 Td <" + codes.hex().encode() + b"> Tj ET"


def truetype(cmap: bytes, glyphs: int) -> bytes:
    """Return a TrueType font of empty glyphs."""
    tables = {
        b"cmap": cmap,
        b"glyf": b"",
        b"head": struct.pack(">4I2H16x4h2H3h", 0x10000, 0, 0, 0x5F0F3CF5, 0, 1000, 0, 0, 1000, 1000, 0, 8, 2, 0, 0),
        b"hhea": struct.pack(">I3hH22xH", 0x10000, 800, -200, 0, 600, 1),
        b"hmtx": struct.pack(">Hh", 600, 0) + bytes(2 * glyphs - 2),
        b"loca": bytes(2 * glyphs + 2),
        b"maxp": struct.pack(">IH26x", 0x10000, glyphs),
    }
    head, body = b"\0\1\0\0" + struct.pack(">H6x", len(tables)), b""
    for tag, table in tables.items():
        head += tag + struct.pack(">3I", 0, 12 + 16 * len(tables) + len(body), len(table))
        body += table + bytes(-len(table) % 4)
    return head + body


def cmap(kind: tuple[int, int], table: bytes) -> bytes:
    return struct.pack(">HHHHI", 0, 1, *kind, 12) + table


def test_glyph_numbers_of_fonts_that_are_not_embedded_are_letters(conf: Configuration) -> None:
    """Glyph numbers in the order of older fonts; where that gives no words, the codes stay."""
    codes = "".join(f"{ord(letter) - 29:04x}" for letter in "Order Code 106") + "00b300cf"
    fonts = composite(b"Arial")
    assert (
        parse(samples.pdf([drawn(bytes.fromhex(codes))], fonts="/G 11 0 R", more=fonts), conf).text
        == "Order Code 106“Ó"
    )
    kept = parse(samples.pdf([drawn(b"\0\x21\0\x1d\0\x07\0\x46")], fonts="/G 11 0 R", more=fonts), conf).text
    assert kept == "!F"  # without the control characters


def test_glyph_numbers_of_embedded_fonts_are_read_by_their_table(conf: Configuration) -> None:
    table = cmap((3, 1), struct.pack(">HHIII3I", 12, 0, 28, 0, 1, ord("а"), ord("я"), 5))
    fonts = composite(b"F", stream(b"", truetype(table, 40)), descriptor=b"/FontFile2 13 0 R")
    codes = b"".join(struct.pack(">H", ord(letter) - ord("а") + 5) for letter in "река")
    assert parse(samples.pdf([drawn(codes)], fonts="/G 11 0 R", more=fonts), conf).text == "река"


@pytest.mark.parametrize(
    ("kind", "table", "expected"),
    [
        ((1, 0), struct.pack(">HHH", 0, 262, 0) + bytes(65) + b"\3" + bytes(76) + b"\4" + bytes(113), {3: "A", 4: "é"}),
        ((3, 0), struct.pack(">5H2H", 6, 14, 0, 0xF041, 2, 7, 8), {7: "A", 8: "B"}),
        ((3, 1), struct.pack(">7H 2H H 2H 2H 2H", 4, 32, 0, 4, 0, 0, 0, 0x42, 0xFFFF, 0, 0x41, 0xFFFF, 0xFFC9, 1, 0, 0),
         {10: "A", 11: "B"}),
        ((3, 1), struct.pack(">17H", 4, 36, 0, 4, 0, 0, 0, 0x42, 0xFFFF, 0, 0x41, 0xFFFF, 0, 1, 4, 0, 9) + b"\0\6",
         {9: "A", 6: "B"}),
        ((3, 10), struct.pack(">HHIII3I", 12, 0, 28, 0, 1, 0x20000, 0x20001, 2), {2: "\U00020000", 3: "\U00020001"}),
        ((3, 1), struct.pack(">HHIII3I", 12, 0, 28, 0, 1, 0xD800, 0xFFFFFFFF, 2), None),  # bounded
        ((3, 1), struct.pack(">HH", 4, 2), {}), ((3, 1), b"", {}), ((9, 9), b"", {}),
    ],
)  # fmt: skip
def test_tables_of_fonts_are_inverted(kind: tuple[int, int], table: bytes, expected: dict[int, str] | None) -> None:
    found = read_glyph_characters(cmap(kind, table))
    assert found == expected if expected is not None else len(found) < 70_000


def test_codes_in_utf8_are_read() -> None:
    assert "".join(characters_of_codes([0xD09C, 0xD0B0, 0x35, 0xF0A8A780], {})) == "Ма5\U000289c0"
    assert characters_of_codes([0xFFFFFFFF, 0xD09C], {}) == ["", "М"]


@pytest.mark.parametrize("codes", ["Checkliste", "Arial", "KEY INVESTOR INFORMATION", "2014", "Uvolnění"])
def test_codes_that_are_words_are_kept(codes: str) -> None:
    assert "".join(characters_of_codes([ord(letter) for letter in codes], {})) == codes


@pytest.mark.parametrize("text", ["DESCRIPTION", "Summa", "LINE UP", "Volumes", "2017"])
def test_glyph_numbers_of_words_are_guessed(text: str) -> None:
    assert "".join(characters_of_codes([ord(letter) - 29 for letter in text], {})) == text


def test_flattened_page_keeps_inherited_fonts(conf: Configuration) -> None:
    """PDFium flattens annotations into a page whose inherited resources it then does not find."""
    notes = "<</Type/Annot/Subtype/Stamp/Rect[9 49 209 69]/Contents(Approved)/AP<</N 12 0 R>>>>"
    codes = b"".join(struct.pack(">H", ord(letter)) for letter in "ABC")
    mapping = b"begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange"
    mapping += b" 1 beginbfrange <0041> <0043> <0430> endbfrange endcmap"
    font = b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[13 0 R]/ToUnicode 14 0 R>>"
    glyphs = composite(b"X")[2]
    pages = b"<</Type/Pages/Count 1/Kids[4 0 R]/Resources<</Font<</G 11 0 R>>>>>>"
    more = [b"<<>>", font, appearance("Approved"), glyphs, stream(b"", mapping), pages]
    content = samples.pdf([drawn(codes)], notes, more=more)
    for own, inherited in (  # of equal length, as the file has a table of places
        (b"/Pages 2 0 R/Outlines 10 0 R", b"/Pages 15 0 R"),
        (b"/Parent 2 0 R/MediaBox[0 0 600 800]", b"/Parent 15 0 R/MediaBox[0 0 99 800]"),
        (b"/Resources<</Font<</F 3 0 R>>>>", b""),
    ):
        content = content.replace(own, inherited.ljust(len(own)))
    assert parse(content, conf).text.split() == ["абв", "Approved"]


@pytest.mark.parametrize(("actual", "text"), [("a drawn logo", "text\na drawn logo"), ("te xt", "text"), ("-", "text")])
def test_replacement_text_of_tagged_page_is_text(actual: str, text: str, conf: Configuration) -> None:
    tree = [
        b"<</Type/StructTreeRoot/K 11 0 R/ParentTree 12 0 R>>",
        b"<</Type/StructElem/S/Figure/P 10 0 R/Pg 4 0 R/K 0/ActualText(%s)>>" % actual.encode(),
        b"<</Nums[0[11 0 R]]>>",
    ]
    content = samples.pdf([b"/Figure<</MCID 0>>BDC BT /F 9 Tf 20 700 Td (text) Tj ET EMC"], more=tree)
    content = content.replace(b"/Outlines 10 0 R", b"/StructTreeRoot 10 0 R/MarkInfo<</Marked true>>")
    content = content.replace(b"/Type/Page/", b"/Type/Page/StructParents 0/")
    assert parse(content, conf).text == text


def outline(*items: bytes) -> list[bytes]:
    return [b"<</Type/Outlines/First 11 0 R/Last 11 0 R>>", *items]


def test_outline_titles_and_links_are_extracted(conf: Configuration) -> None:
    items = outline(
        b"<</Title(One)/Parent 10 0 R/Next 13 0 R/First 12 0 R/Last 12 0 R>>",
        b"<</Title(Within)/Parent 11 0 R/A<</S/URI/URI(http://o.test/x)>>>>",
        b"<</Title<feff00dc>/Parent 10 0 R/Dest[4 0 R/Fit]/Next 11 0 R>>",  # and again from the start
    )
    found = parse(samples.pdf([b"BT /F 9 Tf 20 700 Td (text) Tj ET"], more=items), conf)
    assert found.text == "text\nOne\nWithin\nÜ"
    assert found.outlinks == [Outlink("http://o.test/x", "Within")]


def test_outline_is_bounded(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MAX_BOOKMARKS", 3)
    items = outline(*[b"<</Title(t%d)/Next %d 0 R>>" % (n, 12 + n) for n in range(9)])
    assert parse(samples.pdf([b""], more=items), conf).text == "t0\nt1\nt2"


def test_annotations_and_form_fields_are_labelled(conf: Configuration) -> None:
    notes = (
        "<</Type/Annot/Subtype/Text/Rect[0 0 9 9]/T(Ann)/Contents(a note)>>"
        "<</Type/Annot/Subtype/Widget/FT/Tx/Rect[0 0 9 9]/T(name)/V(value)>>"
        "<</Type/Annot/Subtype/Widget/FT/Tx/Rect[0 0 9 9]/T(empty)>>"
        "<</Type/Annot/Subtype/Popup/Rect[0 0 9 9]/Contents(a note)>>"
    )
    assert (
        parse(samples.pdf([b"BT /F 9 Tf 20 700 Td (text) Tj ET"], notes), conf).text == "text\nAnn: a note\nname: value"
    )


def test_slanted_lines_keep_words_apart(conf: Configuration) -> None:
    """Labels of a chart at 60 degrees, on a page whose other lines are rebuilt."""
    wide = b"".join(b"[(%s)-400] TJ " % word for word in b"words of a line that have wide gaps between them".split())
    level = b"1 0 0 1 20 700 Tm (a line with spaces as most files have them, and more) Tj 1 0 0 1 20 650 Tm " + wide
    labels = b"".join(b".5 .866 -.866 .5 %d 300 Tm (Feb %d, 2012) Tj " % (60 * n, n + 10) for n in range(1, 9))
    found = parse(samples.pdf([b"BT /F 14 Tf " + level + labels + b"ET"]), conf).text
    assert "words of a line that have wide gaps between them" in found
    assert [f"Feb {n + 10}, 2012" in found for n in range(1, 9)] == [True] * 8


def appearance(text: str, *, height: int = 20) -> bytes:
    """Return a form that draws a text, as the appearance of an annotation."""
    return stream(
        b"/Type/XObject/Subtype/Form/BBox[0 0 200 %d]/Resources<</Font<</F 3 0 R>>>>" % height,
        b"BT /F 9 Tf 2 5 Td (%s) Tj ET" % text.encode(),
    )


def stream(entries: bytes, content: bytes, *, packs: int = 0) -> bytes:
    for _ in range(packs):
        content = zlib.compress(content, 9)
    if packs:
        entries += b"/Filter[%s]" % b" ".join([b"/FlateDecode"] * packs)
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (entries, len(content), content)


def test_shown_annotations_are_text_of_the_page(conf: Configuration) -> None:
    """Buttons and stamps have no other text; a value that is shown is not repeated, a hidden one not shown."""
    notes = (
        "<</Type/Annot/Subtype/Widget/FT/Btn/Rect[9 9 209 29]/T(b)/AP<</N 11 0 R>>>>"
        "<</Type/Annot/Subtype/Stamp/Rect[9 49 209 69]/AP<</N 12 0 R>>>>"
        "<</Type/Annot/Subtype/FreeText/Rect[9 89 209 109]/Contents(shown words)/AP<</N 13 0 R>>>>"
        "<</Type/Annot/Subtype/Stamp/F 2/Rect[9 129 209 149]/AP<</N 14 0 R>>>>"
        "<</Type/Annot/Subtype/Link/Rect[9 700 99 720]/A<</S/URI/URI(http://a.test/)>>>>"
    )
    drawn = [appearance(text) for text in ("Press here", "Approved", "shown words", "hidden")]
    found = parse(samples.pdf([b"BT /F 9 Tf 20 705 Td (text) Tj ET"], notes, more=[b"<<>>", *drawn]), conf)
    assert found.text.split() == ["text", "Press", "here", "Approved", "shown", "words"]
    assert found.outlinks == [Outlink("http://a.test/", "text")]


def test_chosen_options_are_shown_by_label(conf: Configuration) -> None:
    """What is stored is the value for programs; several options are an array, which is no string."""
    colours = b"/Opt[[(x1)(Red)][(x2)(Green)][(x3)(Blue)]]>>"
    lists = (
        b"<</Type/Annot/Subtype/Widget/FT/Ch/Ff 2097152/Rect[0 0 9 9]/T(l)/V[(x1)(x3)]/I[0 2]%s" % colours,
        b"<</Type/Annot/Subtype/Widget/FT/Ch/Ff 131072/Rect[0 0 9 9]/T(c)/Opt[[(y1)(Tea)][(y2)(Milk)]]/V(y2)>>",
    )
    content = samples.pdf([b"BT /F 9 Tf 20 700 Td (text) Tj ET"], "11 0 R 12 0 R", more=[b"<<>>", *lists])
    content = content.replace(b"/Outlines 10 0 R", b"/AcroForm<</Fields[11 0 R 12 0 R]>>")
    lines = parse(content, conf).text.splitlines()
    assert "l: Red, Blue" in lines
    assert {"text", "Milk"} <= set(lines)  # the one choice is drawn
    assert not {"l: x1", "c: y2"} & set(lines)


ENDLESS = {
    "shown": b"(A) Tj " * 1_000_000,
    "one array": b"[" + b"(A) -10 " * 1_000_000 + b"] TJ",
    "moved": b"0 -1 Td (A) Tj " * 500_000,
    "lines": b"0 0 m 9 9 l S " * 500_000,
}


@pytest.mark.parametrize("packs", [1, 2])
@pytest.mark.parametrize("name", ENDLESS)
def test_endless_operators_are_cut_and_what_came_before_is_kept(name: str, packs: int) -> None:
    content = b"BT /F 9 Tf 20 700 Td (Hello) Tj " + ENDLESS[name] + b" ET"
    data = samples.pdf([b""]).replace(b"<</Length 0>>stream\n\nendstream", stream(b"", content, packs=packs))
    limited = pdf_limits.limit_pdf_content(data, 100)
    assert len(limited) == len(data)
    (cut,) = pdf_limits.iter_content_streams(limited)
    kept, is_cut = not_none(pdf_limits.unpack_stream(limited, cut, 0), "content")
    assert not is_cut
    assert content.startswith(kept.removesuffix(b"]TJ"))
    assert 1 << 19 < len(kept) <= max(1 << 20, 100 * (cut.end - cut.start)) + 3
    assert kept.endswith((b"Tj", b"TJ", b"S"))


def test_cut_page_is_read(conf: Configuration) -> None:
    content = b"BT /F 9 Tf 20 700 Td (Hello) Tj ET " + b"q Q " * 400_000
    data = samples.pdf([b""]).replace(b"<</Length 0>>stream\n\nendstream", stream(b"", content, packs=1))
    assert pdf_limits.limit_pdf_content(data, 100) is not data
    assert parse(data, conf).text == "Hello"


def form(number: int, drawn: bytes, content: bytes) -> bytes:
    return stream(
        b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>/XObject<<%s>>>>" % drawn,
        b"BT /F 9 Tf 20 %d Td (form%d) Tj ET " % (700 - 10 * number, number) + content,
        packs=1,
    )


def nested(*forms: bytes) -> bytes:
    page = samples.pdf([b"BT /F 9 Tf 20 750 Td (page) Tj ET /X Do"], more=[b"<<>>", *forms])
    return page.replace(b"/Resources<<", b"/Resources<</XObject<</X 11 0 R>>", 1)


@pytest.mark.parametrize("width", [2, 3, 200])
def test_forms_that_multiply_are_bounded(conf: Configuration, width: int) -> None:
    """Forms that each draw the next one several times: 2 to the 30th power reads."""
    content = nested(*(form(n, b"/X %d 0 R" % (12 + n), b"/X Do " * width) for n in range(30)), form(30, b"", b""))
    words = parse(content, conf).text.split()
    assert words[:2] == ["page", "form0"]
    assert len(words) <= 2 + pdf_limits.MAX_FORM_READS * 30


def test_form_that_draws_itself_is_read_once(conf: Configuration) -> None:
    assert parse(nested(form(0, b"/X 11 0 R", b"/X Do /X Do")), conf).text.split() == ["page", "form0"]
    circle = nested(form(0, b"/X 12 0 R", b"/X Do /X Do"), form(1, b"/X 11 0 R", b"/X Do /X Do"))
    assert parse(circle, conf).text.split()[:3] == ["page", "form0", "form1"]


def test_form_of_ambiguous_names_is_bounded(conf: Configuration) -> None:
    """A name that stands twice, or in no dictionary here: any form may be meant."""
    twice = nested(*(form(n, b"/X 40 0 R>>/XObject<</X %d 0 R" % (12 + n), b"/X Do " * 3) for n in range(30)))
    assert parse(twice, conf).text.split()[:2] == ["page", "form0"]
    away = [form(n, b"", b"/X Do " * 3).replace(b"/XObject<<>>", b"/XObject %d 0 R" % (41 + n)) for n in range(30)]
    tables = [b"<</X %d 0 R>>" % (12 + n) for n in range(30)]
    assert parse(nested(*away, *tables), conf).text.split()[:2] == ["page", "form0"]


def test_usual_forms_are_unchanged() -> None:
    first = form(0, b"/X 12 0 R/Y 13 0 R", b"/X Do /Y Do /X Do")
    content = nested(first, form(1, b"/X 13 0 R", b"/X Do"), form(2, b"", b""))
    assert pdf_limits.limit_pdf_content(content, 100) is content
