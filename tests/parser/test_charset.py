from collections.abc import Callable
from typing import Any

import pytest

from nutch2py.conf import Configuration
from nutch2py.parser.charset import EncodingDetector, decode, header_charset, resolve_label, sniff_label


def detector(**properties: str) -> EncodingDetector:
    return EncodingDetector(Configuration({"parser.character.encoding.default": "windows-1252", **properties}))


def test_encoding_detector_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    passed = 0
    for case in (found := cases("encoding_detector")):
        args = case["args"]
        key = "encodingdetector.charset.min.confidence"
        conf = Configuration({key: str(args[key]), "parser.character.encoding.default": args["default"]})
        body = case["input"]["text"].encode(case["input"]["encode_bytes_with"])
        clues = tuple(label for label, _ in args["extra_clues"])
        guessed = EncodingDetector(conf).guess(body, "text/plain", args["http_content_type"], clues)
        assert guessed == case["expect"], case
        passed += 1
    print(f"encoding_detector: {passed}/{len(found)}")


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("UTF8", "utf-8"), ("ISO-8859-1", "windows-1252"), ("latin1", "windows-1252"), ("GBK", "gb18030"),
        ("gb2312", "gb2312"), ("EUC-KR", "x-windows-949"), ("ks_c_5601-1987", "x-windows-949"),
        ("x-sjis", "shift_jis"), ("KOI8-R", "koi8-r"), ("big5", "big5"), ("us-ascii", "us-ascii"),
        ("windows-1251", "windows-1251"), ("cp866", "ibm866"), ("iso-8859-15", "iso-8859-15"),
        ("rot13", None), ("base64", None), ("utf-7", None), ("nonsense", None), ("", None), ("ü", None), ("a\0b", None),
    ],
)  # fmt: skip
def test_labels_become_the_names_that_nutch_stores(label: str, name: str | None) -> None:
    assert resolve_label(label) == name


def test_a_byte_order_mark_outranks_header_and_meta() -> None:
    body = "\ufeff<meta charset=gbk>é".encode()
    assert detector().guess(body, "text/html", "text/html; charset=latin1", ("gbk",)) == "utf-8"
    assert decode(body, "utf-8").startswith("<meta")
    assert detector().guess("\ufeffx".encode("utf-16-be")) == "utf-16be"


def test_header_then_page_then_default() -> None:
    assert detector().guess(b"x", "text/html", 'text/html; charset="gbk"; q=1', ("utf-8",)) == "gb18030"
    assert detector().guess(b"x", "text/html", "text/html; charset=no-such", ("utf-8",)) == "utf-8"
    assert detector().guess(b"x", "text/html", "text/html", (None,)) == "windows-1252"


def test_statistics_only_when_asked_for() -> None:
    body = "Привет, мир! Это страница на русском языке, и она длинная.".encode("koi8_r")
    on = detector(**{"encodingdetector.charset.min.confidence": "50"})
    assert on.guess(body, "text/html", None, ("latin1",)) == "koi8-u"
    assert on.guess(body, "application/pdf", None, ("latin1",)) == "windows-1252"
    assert detector().guess(body, "text/html") == "windows-1252"
    assert on.guess(b"plain ascii, nothing to see", "text/html", None, ("utf-8",)) == "utf-8"


@pytest.mark.parametrize(
    ("html", "label"),
    [
        (b"<meta http-equiv=Content-Type content='text/html; charset=big5'>", "big5"),
        (b'<META content="text/html; charset=GBK" HTTP-EQUIV="content-type">', "gbk"),
        (b"<meta charset = 'utf-8' >", "utf-8"),
        (b"<meta charset=utf-16>", "utf-8"),
        (b"<meta name=x content='charset=gbk'>", None),
        (b" " * 8200 + b"<meta charset=gbk>", None),
        (b"\xff\xfe", None),
    ],
)
def test_sniffing(html: bytes, label: str | None) -> None:
    assert sniff_label(html) == label


def test_a_larger_character_set_is_read_under_the_smaller_name() -> None:
    assert decode("镕".encode("gb18030"), "gb2312") == "镕"
    assert decode("①".encode("cp932"), "shift_jis") == "①"
    assert decode(b"\x93x\x94", "us-ascii") == "“x”"
    assert decode(b"\x93", "no-such-default") == "“"
    assert decode(b"\xff", "utf-8") == "\ufffd"


def test_header_charset() -> None:
    assert header_charset(None) is None
    assert header_charset("text/html") is None
    assert header_charset("text/html; charset= x ;y") == "x"
