"""Outlook messages: encodings, bodies, attachments and embedded messages."""

from __future__ import annotations

import struct

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.formats.office.ole import OleParser
from tests.parser.formats import samples
from tests.parser.pages import fetched

CODE_PAGE, LOCALE = 0x3FFD0003, 0x3FF10003


def numbers(**values: int) -> bytes:
    """Return the stream of properties that are numbers."""
    names = {"code_page": CODE_PAGE, "locale": LOCALE}
    return bytes(32) + b"".join(struct.pack("<IIII", names[name], 6, value, 0) for name, value in values.items())


def parse(streams: dict[str, bytes], conf: Configuration) -> Parse:
    body = fetched(samples.compound(streams), "application/vnd.ms-outlook")
    found: Parse = OleParser(conf).parse("http://h.test/a.msg", body)
    return found


def test_msg_subject_body_and_attachment_are_extracted(conf: Configuration) -> None:
    found = parse(samples.msg(), conf)
    assert (found.title, found.text) == ("Subject", "Subject\nThe body\na.txt\nattached")


@pytest.mark.parametrize(("properties", "text", "encoding"), [
    ({"code_page": 1251}, "Кратко", "cp1251"),
    ({"code_page": 932, "locale": 0x0419}, "日本語の件名", "cp932"),
    ({"locale": 0x0419}, "Тема", "cp1251"),
    ({"locale": 0x0404}, "測試郵件", "cp950"),
    ({"locale": 0x0804}, "测试邮件", "gb18030"),
    ({"locale": 0x0C1A}, "Наслов", "cp1251"),
    ({"locale": 0x081A}, "Šta je", "cp1250"),
    ({"locale": 0x0408}, "Θέμα", "cp1253"),
    ({"locale": 0x040C}, "Pièce jointe", "cp1252"),
])  # fmt: skip
def test_msg_code_page_or_language_sets_encoding(
    properties: dict[str, int], text: str, encoding: str, conf: Configuration
) -> None:
    streams = {
        "__properties_version1.0": numbers(**properties),
        "__substg1.0_0037001E": text.encode(encoding),
        "__substg1.0_1000001E": f"{text}.".encode(encoding),
        "__attach_version1.0_#00000000/__substg1.0_3707001E": f"{text}.txt".encode(encoding),
        "__attach_version1.0_#00000000/__substg1.0_37010102": b"attached",
    }
    found = parse(streams, conf)
    assert (found.title, found.text) == (text, f"{text}\n{text}.\n{text}.txt\nattached")


def test_msg_html_body_is_used_without_other_body(conf: Configuration) -> None:
    streams = samples.msg(**{"__substg1.0_10130102": b"<p>of the page <a href='http://h.test/x'>x</a>"})
    assert "of the page" not in parse(streams, conf).text
    del streams["__substg1.0_1000001E"]
    found = parse(streams, conf)
    assert "of the page x" in found.text
    assert [link.url for link in found.outlinks] == ["http://h.test/x"]
