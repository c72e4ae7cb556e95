import random
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.charset import prescan
from nutch2py.parser.charset.encoding_detector import (
    GUESSED_CHARSET_KEY,
    EncodingDetector,
    decode_unlabeled,
    guess_encoding,
    header_charset,
)
from nutch2py.parser.charset.encoding_names import decode, escape_query, resolve_label
from nutch2py.parser.charset.mac_encodings import refine_guess
from nutch2py.parser.charset.prescan import sniff_label, xml_label
from nutch2py.parser.html.html_parser import HtmlParser
from nutch2py.records.webpage import MetadataKey, WebPage


def detector(**properties: str) -> EncodingDetector:
    return EncodingDetector(Configuration({"parser.character.encoding.default": "windows-1252", **properties}))


def test_encoding_detector_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    passed = 0
    for case in (found := cases("encoding_detector")):
        args = case["args"]
        key = "encodingdetector.charset.min.confidence"
        conf = Configuration({key: str(args[key]), "parser.character.encoding.default": args["default"]})
        conf.set("encodingdetector.charset.fallback", "false")
        body = case["input"]["text"].encode(case["input"]["encode_bytes_with"])
        for label, _ in args["extra_clues"]:
            body = f"<meta charset={label}>".encode() + body
        kind = "text/html" if args["extra_clues"] else "text/plain"
        assert EncodingDetector(conf).choose(body, kind, args["http_content_type"]).name == case["expect"], case
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
def test_labels_map_to_nutch_names(label: str, name: str | None) -> None:
    assert resolve_label(label) == name


def test_every_stored_name_is_decodable() -> None:
    for name in {resolve_label(label) for label in _WHATWG}:
        assert name is not None
        assert resolve_label(name) == name
    assert all(resolve_label(label.upper()) for label in _WHATWG)


_WHATWG = [
    "unicode-1-1-utf-8", "unicode11utf8", "x-unicode20utf8", "utf8", "866", "csibm866", "iso88592", "l2", "latin2",
    "iso88593", "iso88594", "cyrillic", "iso88595", "asmo-708", "csiso88596e", "iso-8859-6-i", "sun_eu_greek",
    "elot_928", "visual", "logical", "csiso88598i", "iso-8859-8-e", "latin6", "iso885910", "iso885913",
    "iso-8859-14", "iso885915", "csisolatin9", "iso-8859-16", "koi", "koi8", "koi8-ru", "mac", "csmacintosh",
    "x-mac-roman", "dos-874", "iso885911", "x-cp1250", "x-cp1251", "x-cp1252", "ansi_x3.4-1968", "iso88591",
    "x-cp1253", "x-cp1254", "iso88599", "x-cp1255", "x-cp1256", "x-cp1257", "x-cp1258", "x-mac-cyrillic",
    "x-mac-ukrainian", "csgb2312", "gb_2312", "gb_2312-80", "iso-ir-58", "chinese", "x-gbk", "gb18030", "cn-big5",
    "x-x-big5", "cseucpkdfmtjapanese", "csiso2022jp", "ms_kanji", "x-sjis", "windows-31j", "cseuckr",
    "csksc56011987", "iso-ir-149", "ks_c_5601-1989", "ksc_5601", "windows-949", "hz-gb-2312", "iso-2022-cn",
    "iso-2022-cn-ext", "csiso2022kr", "replacement", "unicodefffe", "csunicode", "iso-10646-ucs-2", "ucs-2",
    "unicodefeff", "utf-16", "x-user-defined",
]  # fmt: skip


def chosen(body: bytes, header: str | None = None, kind: str = "text/html", **properties: str) -> tuple[str, str]:
    return tuple(detector(**properties).choose(body, kind, header, "http://www.example.org/"))  # type: ignore[return-value]


def test_byte_order_mark_precedes_header_and_meta() -> None:
    body = "\ufeff<meta charset=gbk>é".encode()
    assert chosen(body, "text/html; charset=latin1") == ("utf-8", "mark")
    assert decode(body, "utf-8").startswith("<meta")
    assert chosen("\ufeffx".encode("utf-16-be")) == ("utf-16be", "mark")
    assert chosen("\ufeffx".encode("utf-32-le")) == ("utf-32le", "mark")


def test_header_then_meta_then_bytes_then_default() -> None:
    page = b"<meta charset=utf-8>"
    assert chosen(page, 'text/html; charset="gbk"; q=1') == ("gb18030", "label")
    assert chosen(page, "text/html; charset=no-such") == ("utf-8", "label")
    assert chosen("<p>日本語".encode(), "text/html") == ("utf-8", "bytes")
    assert chosen(b"<p>plain", "text/html") == ("windows-1252", "default")
    off = {"encodingdetector.charset.fallback": "false"}
    assert chosen("<p>日本語".encode(), "text/html", **off) == ("windows-1252", "default")


def test_declared_encoding_precedes_detection() -> None:
    russian = "Привет, мир! Это страница на русском языке, и она длинная."
    assert chosen(b"<meta charset=latin1>" + russian.encode("koi8_r")) == ("windows-1252", "label")
    assert chosen(russian.encode("koi8_r"))[1] == "bytes"
    assert decode(russian.encode("koi8_r"), chosen(russian.encode("koi8_r"))[0]) == russian


def test_detection_precedes_labels_when_configured() -> None:
    body = b"<meta charset=latin1>" + "Привет, мир! Это страница на русском языке, и она длинная.".encode("koi8_r")
    on = {"encodingdetector.charset.min.confidence": "50"}
    assert chosen(body, None, **on) == ("koi8-u", "bytes")
    assert chosen(body, None, "application/pdf", **on)[1] == "bytes"


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        ("Der Fluss fließt durch die schöne Stadt, und die Bäume blühen. ", "mac-roman", "macintosh"),
        ("Le café où l'élève a mangé, à côté de la forêt près du château. ", "mac-roman", "macintosh"),
        ("Река течёт через город и впадает в море у старой крепости моя. ", "mac-cyrillic", "x-mac-cyrillic"),
        ("РЕКА Течёт Через Город И ВПАДАЕТ в Море у старой КРЕПОСТИ. ", "mac-cyrillic", "x-mac-cyrillic"),
        ("Le cœur coûte 5 €. ", "iso8859-15", "iso-8859-15"),
        ("Une œuvre créée à l'époque, très appréciée. ", "iso8859-15", "iso-8859-15"),
        # of these encodings, whatever stands next to their letters
        ("Der Fluss fließt — “schön” – durch die Stadt… Nestlé® §3 ½ Pfund, 1½ m², 5 € ", "cp1252", "windows-1252"),
        ("ÉTÉ, Čeština? à côté de l´été·d´août ", "cp1252", "windows-1252"),
        ("Für mich", "utf-8", "utf-8"),
        ("РЕКА течёт через Город «Москва» — №5… ", "cp1251", "windows-1251"),
    ],
)
def test_encodings_that_browsers_do_not_guess(text: str, encoding: str, name: str) -> None:
    assert guess_encoding((text * 9).encode(encoding, "ignore")) == name


@pytest.mark.parametrize("sample", ["Für Ünique früh".encode(), "RÉSUMÉ McÉwan ¤ Punkt, 1¼in ¾ ¤".encode("latin-1")])
def test_decoded_twice_or_fractions_are_not_latin_9(sample: bytes) -> None:
    assert refine_guess("windows-1252", sample) == "windows-1252"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("<html><p>搜索引擎从网页中提取文字，然后建立索引，供人查询。", "gb18030"),
        ("<html><p>搜尋引擎從網頁中擷取文字，然後建立索引，供人查詢。", "big5"),
        ("<p>検索エンジンはウェブページから文字を取り出します。", "shift_jis"),
        ("<p>検索エンジンはウェブページから文字を取り出します。", "euc_jp"),
        ("<p>検索エンジンはウェブページから文字を取り出します。", "iso2022_jp"),
        ("<p>검색 엔진은 웹 페이지에서 글자를 뽑아 색인을 만듭니다.", "cp949"),
        ("<p>Поисковая машина извлекает слова из страниц.", "cp1251"),
        ("<p>Μια μηχανή αναζήτησης διαβάζει τις σελίδες.", "cp1253"),
        ("<p>Größe und Übergröße, schöne Grüße aus München", "cp1252"),
        ("<p>Größe und Übergröße", "utf-8"),
        ("<p>搜索引擎", "utf-8"),
        ("<html><p>wide <b>text</b> without a mark", "utf-16-le"),
        ("<html><p>wide <b>text</b> without a mark", "utf-16-be"),
        ("<html><p>wide <b>text</b> without a mark", "utf-32-be"),
    ],
)
def test_undeclared_page_uses_detection(text: str, encoding: str) -> None:
    body = text.encode(encoding)
    assert decode(body, guess_encoding(body) or "") == text
    assert decode_unlabeled(body) == text


def test_detection_near_threshold_is_stable() -> None:
    assert guess_encoding(b"") is None
    assert guess_encoding(b"\x1b[0mplain") is None
    assert guess_encoding(b"template ~{ not Chinese ~}") is None
    assert guess_encoding(b"\x1b[0m" + "日本語".encode()) == "utf-8"
    assert guess_encoding("日本語".encode()[:-1]) == "utf-8"  # cut by a limit
    assert guess_encoding("é".encode() * 200 + b"\xe9 " + "é".encode() * 200) == "utf-8"  # one damaged byte
    assert guess_encoding(b"\0" * 1000) is None


def test_domain_is_a_detection_hint() -> None:
    body = "<p>Øl på fjellet".encode("cp1252")
    assert guess_encoding(body, "http://www.example.no/x") == "windows-1252"
    hebrew = "<p>שלום".encode("cp1255")
    assert decode(hebrew, guess_encoding(hebrew, "http://example.co.il:8080/") or "") == "<p>שלום"


def test_detected_encoding_is_recorded_in_row() -> None:
    parser, page = HtmlParser(Configuration()), WebPage()
    page.base_url, page.content_type, page.content = "http://h/", "text/html", "<title>搜索引擎</title>".encode()
    page.headers, page.metadata = {}, {}
    assert parser.parse("http://h/", page).title == "搜索引擎"
    assert page.metadata[GUESSED_CHARSET_KEY] == page.metadata[MetadataKey.CHARSET] == b"utf-8"
    page.content = b"<title>plain</title>"
    parser.parse("http://h/", page)
    assert GUESSED_CHARSET_KEY not in page.metadata


@pytest.mark.parametrize(
    ("html", "label"),
    [
        (b"<meta http-equiv=Content-Type content='text/html; charset=big5'>", "big5"),
        (b'<META content="text/html; charset=GBK" HTTP-EQUIV="content-type">', "gbk"),
        (b"<meta charset = 'utf-8' >", "utf-8"),
        (b"<meta charset=utf-16>", "utf-8"),
        (b"<meta charset=x-user-defined>", "windows-1252"),
        (b"<meta name=x content='charset=gbk'>", None),
        (b"<meta name=x charset=gbk>", "gbk"),
        (b"<meta charset=no-such><meta charset=gbk>", "gbk"),
        (b"<!-- <meta charset=gbk> --><meta charset=big5>", "big5"),
        (b"<!--><meta charset=big5>-->", "big5"),
        (b"<p title='<meta charset=gbk>'><meta charset=big5>", "big5"),
        (b"<!doctype html><? x ?><meta/charset=gbk>", "gbk"),
        (b"<metacharset=gbk>", None),
        (b"<meta charset=gbk", None),
        (b"<meta charset='gbk>", None),
        (b"<meta http-equiv=content-type content='charset; charset = \"gbk\"'>", "gbk"),
        (b'<?xml version="1.0" encoding="Big5"?><p>', "big5"),
        (b'<?xml version="1.0" encoding="Big5"?><meta charset=gbk>', "gbk"),
        (b"<\0?\0x\0m\0l\0", "utf-16le"),
        (b" " * 8200 + b"<meta charset=gbk>", "gbk"),
        (b" " * 70000 + b"<meta charset=gbk>", None),
        (b"\xff\xfe", None),
    ],
)
def test_encoding_is_sniffed_from_bytes(html: bytes, label: str | None) -> None:
    assert sniff_label(html, resolve_label) == label


_PIECES = (
    b"<meta charset=gbk>", b"<META CHARSET='big5' >", b"<meta charset=no-such>", b"</p charset>",
    b"<meta name='charset>' charset=koi8-r>", b"<meta http-equiv=content-type content='charset=\"euc-kr\">'>",
    b"<p title='charset>", b"<!-- charset>", b"-->", b"<!", b"<", b">", b"'", b'"', b" ", b"meta", b"charset",
)  # fmt: skip


def test_prefix_detection_equals_full_detection(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    pages = [b"".join(chance.choices(_PIECES, k=chance.randrange(1, 8))) for _ in range(3000)]
    found = [sniff_label(page, resolve_label) for page in pages]
    monkeypatch.setattr(prescan, "FAST_PRESCAN_BYTES", 0)
    assert found == [sniff_label(page, resolve_label) for page in pages]
    assert {"gbk", "big5", "koi8-r", "euc-kr", None} <= {*found}


def test_xhtml_uses_xml_declaration() -> None:
    body = b'<?xml version="1.0" encoding="Big5"?><meta charset="gbk"/>'
    assert xml_label(body, resolve_label) == "big5"
    assert chosen(body, None, "application/xhtml+xml") == ("big5", "label")


def test_decoder_is_more_lenient_than_python() -> None:
    assert decode(b"\x80", "gbk") == "€"
    assert decode("①㈱".encode("cp932"), "shift_jis") == "①㈱"
    assert decode(b"\xad\xa1\xad\xea", "euc-jp") == "①㈱"
    assert decode("嘅".encode("big5hkscs"), "big5") == "嘅"
    assert decode(b"a\x80\xffb\xe5", "gbk").startswith("a€")
    assert decode(b"\xad", "euc-jp") == decode(b"\xf9", "big5") == "\ufffd"


def test_superset_encoding_is_used_for_smaller_label() -> None:
    assert decode("镕".encode("gb18030"), "gb2312") == "镕"
    assert decode("①".encode("cp932"), "shift_jis") == "①"
    assert decode(b"\x93x\x94", "us-ascii") == "“x”"
    assert decode(b"\x93", "no-such-default") == "“"
    assert decode(b"\xff", "utf-8") == "\ufffd"


def test_header_charset_is_parsed() -> None:
    assert header_charset(None) is None
    assert header_charset("text/html") is None
    assert header_charset("text/html; charset= x ;y") == "x"
    assert header_charset("text/html; Charset=utf-8") == "utf-8"
    assert header_charset("text/html; charset=gbk,text/html") == "gbk"
    assert header_charset('text/html; x="; charset=gbk"; charset=big5') == "big5"
    assert header_charset('text/html; charset=""; charset="big5"') == "big5"
    assert header_charset("text/html; mycharset=gbk") is None
    assert header_charset('text/html; charset="gbk') == "gbk"  # WHATWG, MIME sniffing 4.4


@pytest.mark.parametrize(
    ("target", "name", "escaped"),
    [
        ("/s?q=中文#中", "gb18030", "/s?q=%D6%D0%CE%C4#中"),
        ("/路?q=é&r=中", "windows-1252", "/路?q=%E9&r=%26%2320013%3B"),
        ("/s?q=中", "utf-8", "/s?q=中"),
        ("/s?q=中", "utf-16le", "/s?q=中"),
        ("/中#?中", "gb18030", "/中#?中"),
        ("/s?q=%20 +", "gb18030", "/s?q=%20 +"),
        # the encoders of the WHATWG, where Python's differ
        ("/s?q=の瑌十", "big5", "/s?q=%C7U%26%2329772%3B%A4Q"),
        ("/s?q=€𠀀", "gb2312", "/s?q=%80%26%23131072%3B"),
        ("/s?q=€︐𠀀", "gb18030", "/s?q=%A2%E3%A6%D9%952%826"),
        ("/s?q=¥‾−～丂", "euc-jp", "/s?q=%5C~%A1%DD%A1%C1%26%2319970%3B"),
        ("/s?q=¥−ⅰ\ue000", "shift_jis", "/s?q=%5C%81%7C%FA%40%26%2357344%3B"),
        ("/s?q=日ｶﾞ", "iso-2022-jp", "/s?q=%1B%24BF%7C%25%2B%21%2B%1B%28B"),
        ("/s?q=ў", "koi8-u", "/s?q=%AE"),
        ("/s?q=\x81", "windows-1252", "/s?q=%81"),
        ("/s?q=中", "hz-gb-2312", "/s?q=中"),
    ],
)
def test_query_is_encoded_in_page_encoding(target: str, name: str, escaped: str) -> None:
    assert escape_query(target, name) == escaped


@pytest.mark.parametrize("name", ["big5", "gb18030", "gb2312", "euc-jp", "shift_jis", "iso-2022-jp", "x-windows-949"])
def test_encoded_character_is_read_as_itself(name: str) -> None:
    aliases = {"¥": "\\", "‾": "~", "−": "\uff0d"} if "j" in name else {}
    read = 0
    for start, stop in (
        (0xA0, 0x500),
        (0x2000, 0x3400),
        (0x4E00, 0xA000),
        (0xAC00, 0xD7A4),
        (0xFE30, 0xFE70),
        (0xFF01, 0xFFEF),
    ):
        for char in map(chr, range(start, stop, 3)):
            escaped = escape_query(f"?{char}", name)
            if "%26%23" not in escaped and not (name == "iso-2022-jp" and "\uff61" <= char <= "\uff9f"):
                found = decode(unquote_to_bytes(escaped[1:]), name)
                assert found in (char, aliases.get(char)), (char, escaped)
                read += 1
    assert read > 2000


def test_links_of_gbk_page_are_encoded_in_gbk() -> None:
    conf = Configuration.load()
    page = WebPage()
    page.content, page.content_type = "<meta charset=gbk><a href='/s?q=中文'>中文</a>".encode("gbk"), "text/html"
    parse = HtmlParser(conf).parse("http://h/", page)
    assert [link.url for link in parse.outlinks] == ["http://h/s?q=%D6%D0%CE%C4"]


@pytest.mark.parametrize("name", ["utf-16-be", "utf-16-le", "utf-32-be", "utf-32-le"])
def test_byte_order_unspecified_by_label_is_detected(name: str) -> None:
    header = f"text/html; charset={name[:6]}"
    found = detector().choose("Wide text".encode(name), "text/html", header).name
    assert decode("Wide text".encode(name), found) == "Wide text"


def test_label_with_surrounding_spaces_is_accepted() -> None:
    assert resolve_label(" Latin-1\n") == "windows-1252"
