"""Lists of Word 97 to 2003: numbers as Word shows them, from definitions, lists, paragraphs and styles."""

from __future__ import annotations

import struct

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.formats.office.ole import OleParser
from nutch2py.parser.formats.word import msword_lists
from tests.parser.formats.samples import compound, doc_with_lists, in_list, list_level
from tests.parser.pages import fetched

NO_RESTART, LEGAL = 0x08, 0x04
LOWER_LETTER, UPPER_ROMAN, BULLET = 4, 1, 23
NINE = [list_level("%1."), list_level("%1.%2", LOWER_LETTER), *[list_level("")] * 7]


def parsed(streams: dict[str, bytes], conf: Configuration) -> Parse:
    found: Parse = OleParser(conf).parse("http://h.test/a.doc", fetched(compound(streams), "application/msword"))
    return found


def text_of(streams: dict[str, bytes], conf: Configuration) -> list[str]:
    return parsed(streams, conf).text.split("\n")


def test_list_items_are_numbered_and_paragraphs_not(conf: Configuration) -> None:
    items = {0: in_list(1, 0), 1: in_list(1, 1), 3: in_list(1, 1), 4: in_list(1, 0), 5: in_list(1, 1), 6: in_list(0)}
    found = text_of(doc_with_lists("one\rtwo\rno\rthree\rfour\rfive\rsix\r", items, [NINE]), conf)
    assert found == ["1. one", "1.a two", "no", "1.b three", "2. four", "2.a five", "six"]


def test_many_paragraph_property_pages_are_read(conf: Configuration) -> None:
    found = text_of(doc_with_lists("x\r" * 50, dict.fromkeys(range(50), in_list(1, 0)), [NINE]), conf)
    assert found == [f"{n}. x" for n in range(1, 51)]


def test_characters_outside_bmp_keep_numbering(conf: Configuration) -> None:
    streams = doc_with_lists("ab\rab\rab\r", {2: in_list(1, 0)}, [NINE])
    streams["WordDocument"] = streams["WordDocument"].replace("ab".encode("utf-16-le"), "😀".encode("utf-16-le"))
    assert text_of(streams, conf) == ["😀", "😀", "1. 😀"]


def test_level_continues_after_higher_levels(conf: Configuration) -> None:
    levels = [list_level("%1"), list_level("%2", LOWER_LETTER), list_level("%3", flags=NO_RESTART, limit=1)]
    levels += [list_level("")] * 6
    items = {n: in_list(1, level) for n, level in enumerate((0, 1, 2, 1, 2, 0, 2))}
    assert text_of(doc_with_lists("x\r" * 7, items, [levels]), conf) == [
        "1 x",
        "a x",
        "1 x",
        "b x",
        "2 x",
        "2 x",
        "1 x",
    ]


def test_legal_numbers_are_digits_and_bullets_have_none(conf: Configuration) -> None:
    levels = [list_level("%1", UPPER_ROMAN), list_level("o", BULLET), list_level("(%1.%2.%3)", flags=LEGAL)]
    levels += [list_level("")] * 6
    items = {n: in_list(1, level) for n, level in enumerate((0, 1, 2))}
    assert text_of(doc_with_lists("x\r" * 3, items, [levels]), conf) == ["I x", "x", "(1..1) x"]


def test_list_overrides_levels_of_definition(conf: Configuration) -> None:
    start = struct.pack("<II", 7, 0x10)
    whole = struct.pack("<II", 0, 0x30) + list_level("%1)", LOWER_LETTER, start=3)
    items = {0: in_list(1, 0), 1: in_list(2, 0), 2: in_list(3, 0), 3: in_list(1, 0)}
    streams = doc_with_lists("x\r" * 4, items, [NINE], [(0, b""), (0, start), (0, whole)])
    assert text_of(streams, conf) == ["1. x", "7. x", "c) x", "4. x"]


def test_style_names_list_and_list_names_level(conf: Configuration) -> None:
    items = {0: in_list(style=1), 1: in_list(style=2), 2: in_list(style=3), 3: in_list(0, style=1)}
    styles = [(0, b""), (0, in_list(1)), (0, in_list(1)), (2, in_list())]
    # the definition says: paragraphs of style 1 are its first level, those of style 2 its second
    assert text_of(doc_with_lists("x\r" * 4, items, [NINE], styles=styles), conf) == ["1. x", "1.a x", "1.b x", "x"]


def test_page_break_in_paragraph_is_no_item(conf: Configuration) -> None:
    assert text_of(doc_with_lists("a\x0cb\rc\r", {0: in_list(1, 0), 1: in_list(1, 0)}, [NINE]), conf) == [
        "1. a", "b", "2. c",
    ]  # fmt: skip


def test_broken_lists_affect_nothing_else(conf: Configuration) -> None:
    streams = doc_with_lists("one\r", {0: in_list(1, 0)}, [NINE])
    whole = streams["1Table"]
    for end in range(30, len(whole), 7):
        assert parsed({**streams, "1Table": whole[:end]}, conf).text in ("one", "1. one")


def test_numbers_are_bounded(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msword_lists, "MAX_NUMBERS", 2)
    found = text_of(doc_with_lists("x\r" * 4, dict.fromkeys(range(4), in_list(1, 0)), [NINE]), conf)
    assert found == ["1. x", "2. x", "x", "x"]
