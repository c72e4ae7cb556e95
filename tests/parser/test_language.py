"""Language identification: declared and detected languages."""

import sys

import pytest

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError
from nutch2py.indexer.filters.index_language import LanguageIndexingFilter
from nutch2py.parser.filters import language_identifier
from nutch2py.parser.filters.language_identifier import LanguagePolicy, identify_language, language_code
from nutch2py.parser.row_parser import RowParser
from nutch2py.records.document import NutchDocument
from nutch2py.url.keys import reverse_url
from tests.indexer.pages import page

URL = "http://www.example.com/"
CHINESE = "北京奥运会的开幕式在国家体育场举行，来自世界各地的运动员参加了比赛。"
TEXTS = {
    "en": "The committee decided yesterday that the new library will be opened to the public next year.",
    "de": "Die Stadt hat gestern beschlossen, dass die neue Bibliothek im nächsten Jahr eröffnet werden soll.",
    "fr": "La ville a décidé hier que la nouvelle bibliothèque sera ouverte au public l'année prochaine.",
    "ru": "Городской совет вчера решил, что новая библиотека будет открыта в следующем году.",
    "ja": "市は昨日、新しい図書館を来年から一般に公開することを決めました。",
    "ko": "시는 어제 새로운 도서관을 내년에 일반에 공개하기로 결정했습니다.",
    "zh": CHINESE,
}


def settings(**properties):
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return Configuration(
        {"plugin.includes": "parse-html|language-identifier", "http.agent.name": "t", **given}, [data_dir("conf")]
    )


@pytest.mark.parametrize(("code", "text"), TEXTS.items())
def test_language_is_detected_offline(code, text):
    assert identify_language(text) == code


def test_traditional_chinese_is_chinese():
    assert identify_language("這是一個關於電腦網路與圖書館的網站，歡迎大家來參觀我們的首頁並且給我們意見。") == "zh"


@pytest.mark.parametrize("text", ["", " \x00\x07 ", "12345", "\ud800\ufffe"])
def test_non_text_has_no_language(text):
    assert identify_language(text) is None


def test_control_characters_are_tolerated():
    assert identify_language("\x00\x01\x0b".join(TEXTS["de"].split())) == "de"


@pytest.mark.parametrize(
    ("said", "code"),
    [("en", "en"), ("EN-us", "en"), ("zh_CN", "zh"), ("ger", "de"), ("fr;q=0.5", "fr"), ("", None), ("klingon", None),
     (None, None), ("x, de", "de"), ("jp", "ja")],
)  # fmt: skip
def test_language_codes_are_normalized(said, code):
    assert language_code(said) == code


def lang(html, headers=None, **properties):
    conf = settings(**properties)
    html = "<meta charset=utf-8>" + html
    row = page(content=html.encode(), content_type="text/html", base_url=URL, headers=headers or {})
    assert RowParser(conf).parse_row(reverse_url(URL), row).label == "success"
    made = LanguageIndexingFilter(conf).filter(NutchDocument(), URL, row)
    return None if made is None else made.values("lang")


def test_html_lang_precedes_meta_and_header():
    meta = '<meta name="dc.language" content="fr"><meta http-equiv="Content-Language" content="it">'
    headers = {"content-language": "es"}
    text = f"<body>{TEXTS['de']}"
    assert lang(f"<html lang=pl><head>{meta}</head>{text}", headers) == ["pl"]
    assert lang(f"<html><head>{meta}</head>{text}", headers) == ["fr"]
    assert lang(f"<html>{text}", headers) == ["es"]
    assert lang(f"<html>{text}") == ["de"]


def test_policy_order_is_configurable():
    html = f"<html lang=en><body>{CHINESE}"
    assert lang(html) == ["en"]
    assert lang(html, lang_extraction_policy="identify,detect") == ["zh"]
    assert lang(f"<html><body>{CHINESE}", lang_extraction_policy="detect") == ["unknown"]
    with pytest.raises(ConfigurationError, match=r"lang\.extraction\.policy"):
        LanguagePolicy(settings(lang_extraction_policy="guess"))


def test_other_languages_can_be_dropped():
    assert lang(f"<html><body>{CHINESE}", lang_index_languages="zh,en") == ["zh"]
    assert lang(f"<html><body>{TEXTS['de']}", lang_index_languages="zh,en") is None


def test_page_parsed_without_plugin_is_tolerated():
    row = page(text=TEXTS["fr"], title="T")
    made = LanguageIndexingFilter(settings()).filter(NutchDocument(), URL, row)
    assert made.values("lang") == ["fr"]


def test_missing_package_is_named_in_error(monkeypatch):
    for name in ("pycld2", "py3langid.langid"):
        monkeypatch.setitem(sys.modules, name, None)
    language_identifier.load_detector.cache_clear()
    with pytest.raises(ConfigurationError, match="pycld2"):
        identify_language("some words")
    language_identifier.load_detector.cache_clear()


def test_py3langid_replaces_pycld2(monkeypatch):
    """Python 3.14 and later have py3langid only."""
    pytest.importorskip("py3langid")
    monkeypatch.setitem(sys.modules, "pycld2", None)
    language_identifier.load_detector.cache_clear()
    try:
        assert {code: identify_language(text) for code, text in TEXTS.items()} == {code: code for code in TEXTS}
        assert identify_language(TEXTS["de"], only_certain=True) == "de"
        assert [identify_language(text) for text in ("", "12345", "\ud800\ufffe", "a text")] == [None] * 4
    finally:
        language_identifier.load_detector.cache_clear()


def test_without_package_declared_language_is_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pycld2", "py3langid.langid"):
        monkeypatch.setitem(sys.modules, name, None)
    for cached in (language_identifier.load_detector, language_identifier.is_detector_available):
        cached.cache_clear()
    try:
        for _ in range(2):
            rules = LanguagePolicy(Configuration({"lang.extraction.policy": "identify,detect"}))
            assert rules.choose_language("de", "an English text") == "de"
            assert rules.choose_language(None, "an English text") is None
        assert capsys.readouterr().err.count("pycld2") == 1
        with pytest.raises(ConfigurationError, match="pycld2"):
            LanguagePolicy(Configuration({"lang.extraction.policy": "identify"})).choose_language(None, "a text")
    finally:
        for cached in (language_identifier.load_detector, language_identifier.is_detector_available):
            cached.cache_clear()
