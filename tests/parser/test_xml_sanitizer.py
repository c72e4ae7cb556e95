"""XML sanitizer: declared entities, stray ampersands, encodings."""

from __future__ import annotations

import pytest

from nutch2py.parser.formats.containers.zip_package import xml_events
from nutch2py.parser.xml_sanitizer import sanitize_xml


def text_of(content: bytes) -> str:
    return "".join(event.text for event in xml_events(content))


@pytest.mark.parametrize(("content", "text"), [
    ("<x>a &amp; b &lt; &gt; &quot; &apos; &#65; &#x42;</x>", "a & b < > \" ' A B"),
    ("<x>?a=1&b=2 Tom &amp; Jerry</x>", "?a=1&b=2 Tom & Jerry"),
    ("<x>caf&eacute;&nbsp;&hellip; Tom &amp; Jerry</x>", "café\xa0… Tom & Jerry"),
    ("<x>&unknown; & &; &#0; &#xD800; &#x110000; &#99999999; &amp;</x>",
     "&unknown; & &; \ufffd \ufffd \ufffd &#99999999; &"),
    ("<x><![CDATA[a & b &amp; c]]> &amp; d<!-- & --></x>", "a & b &amp; c & d"),
    ("<!DOCTYPE x [<!ENTITY e 'boo'>]><x y='&e;'>&e;</x>", "&e;"),
    ("<!DOCTYPE x [<!ENTITY c '<![CDATA['><!ENTITY e 'boo'>]><x>&e;</x>", "&e;"),
    ("<!DOCTYPE x [<!ENTITY c \"]>\"><!-- ]> --><?p ]> ?><!ENTITY e 'boo'>]><x>&e;</x>", "&e;"),
    ("<?p <![CDATA[ ?><!--<!DOCTYPE--><!DOCTYPE x [<!ENTITY e 'boo'>]><x>&e;</x>", "&e;"),
    ("<!DOCTYPE x SYSTEM '[>' [<!ATTLIST x y CDATA 'boo'>] ><x>a</x>", "a"),
    ("<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0//EN' \"a\"><x>a</x>", "a"),
    ("<!DOCTYPE x [", ""),
])  # fmt: skip
def test_text_entities_are_resolved(content: str, text: str) -> None:
    assert text_of(content.encode()) == text


def test_attribute_entities_are_resolved() -> None:
    written = "&amp; &#38; &amp;#38; &amp;amp; &lt; &eacute; & &e; x&y"
    (start,) = [event for event in xml_events(f"<x y='{written}'/>".encode()) if event.kind == "start"]
    assert start.attributes["y"] == "& & &#38; &amp; < é & &e; x&y"


@pytest.mark.parametrize(
    ("content", "header", "text"),
    [
        ("<x>中文</x>".encode("gbk"), "text/xml; charset=gb2312", "中文"),
        ("<?xml version='1.0' encoding='latin1'?><x>中文</x>".encode("gbk"), "text/xml; charset=gbk", "中文"),
        ("<?xml version='1.0' encoding='gb_2312-80'?><x>中文</x>".encode("gbk"), None, "中文"),
        ("<?xml version='1.0' encoding='no-such'?><x>é中</x>".encode(), None, "é中"),
        ("\n <?xml version='1.0' encoding='koi8-r'?><x>Привет</x>".encode("koi8-r"), None, "Привет"),
        ("<x>Поисковая машина читает страницы</x>".encode("cp1251"), None, "Поисковая машина читает страницы"),
        (b"<x>one\x0b two\x00 \xff three</x>", None, "one two ÿ three"),
        (b"<p:x>prefix</p:x>", None, "prefix"),
    ],
)
def test_invalid_entities_are_tolerated(content: bytes, header: str | None, text: str) -> None:
    assert "".join(event.text for event in xml_events(content, header)) == text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "iso2022_jp", "shift_jis"])
def test_encodings_are_respected(encoding: str) -> None:
    name = {"iso2022_jp": "ISO-2022-JP", "shift_jis": "Shift_JIS", "utf-8-sig": "UTF-8"}.get(encoding, "UTF-16")
    content = f"<?xml version='1.0' encoding='{name}'?><x>日本語 &amp; 学 & &e;</x>".encode(encoding)
    assert text_of(content) == "日本語 & 学 & &e;"


def test_input_without_ampersand_is_unchanged() -> None:
    content = b"<x>text</x>"
    assert sanitize_xml(content) is content
