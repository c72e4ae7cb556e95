import doctest

import pytest

from nutch2py.backends.analysis.analyzer import Analyzer
from nutch2py.backends.document_weights import DocumentWeights
from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.filters.index_basic import BasicIndexingFilter
from nutch2py.indexer.search_fields import build_search_fields
from nutch2py.records.document import NutchDocument
from nutch2py.url import display_url as display_module
from nutch2py.url.display_url import display_host, display_url, host_forms
from nutch2py.url.idn import host_to_ascii
from tests.indexer.pages import page

SHOWN_IN_UNICODE = (
    "münchen.de", "straße.de", "россия.рф", "пример.com", "例え.jp", "ひらがな.jp", "日本語カナabc.jp", "中文.tw",
    "ㄅㄆ中.tw",
    "한국어abc.kr", "ελλάδα.gr", "مثال.إختبار", "עברית.co.il", "กขค.th", "हिन्दी.भारत", "தமிழ்.இந்தியா", "ქართული.ge",
    "հայաստան.am", "አማርኛ.et", "ខ្មែរ.kh", "ລາວ.la", "ಕನ್ನಡ.in", "മലയാളം.in", "తెలుగు.in", "বাংলা.bd", "ગુજરાતી.in",
    "ਪੰਜਾਬੀ.in", "සිංහල.lk", "ཨོཾ.cn", "ދިވެހި.mv", "မြန်မာ.mm", "col·legi.cat", "əli.az", "日本・語.jp", "аррӏе.рф",
)  # fmt: skip
SHOWN_IN_ASCII = {
    "Cyrillic and Latin": ("аpple.com", "pаypal.com", "кириллицаlat.ru", "gооgle.com"),
    "Greek and Latin": ("gοogle.com", "αlpha.gr"),
    "Greek and Cyrillic": ("αб.com",),
    "Hangul and Kana": ("한か.kr",),
    "Bopomofo and Kana": ("ㄅか.tw",),
    "looks like Latin as a whole": ("аррӏе.com", "сос.com", "αικα.com", "օս.com"),
    "phonetic letters": ("ɑpple.com", "ᴀbc.com", "aǃb.com"),
    "symbols": ("☃.net", "i❤.ws", "a→b.com"),
    "digits of two scripts": ("१2३.in", "g००gle.com"),
    "historic scripts": ("ᚠᚢ.com", "ⲁⲃ.com", "𐌰𐌱.com"),
    "punctuation elsewhere": ("a·b.com", "googleノcom.jp", "wwwー.jp"),
    "repeated marks": ("e\u0301\u0301.com", "д\u0301\u0301.com"),
    "invisible": ("گچ\u200cپژ.ir",),
}


def test_docstring_examples_hold() -> None:
    results = doctest.testmod(display_module)
    assert results.attempted == 3
    assert results.failed == 0


@pytest.mark.parametrize("host", SHOWN_IN_UNICODE)
def test_host_of_one_language_is_shown_in_unicode(host: str) -> None:
    assert display_host(host_to_ascii(host)) == host
    assert display_host(host) == host


@pytest.mark.parametrize("host", [host for hosts in SHOWN_IN_ASCII.values() for host in hosts])
def test_host_that_could_deceive_is_shown_in_ascii(host: str) -> None:
    ascii_host = host_to_ascii(host)
    assert ascii_host.startswith("xn--") or ".xn--" in ascii_host
    assert display_host(ascii_host) == ascii_host
    assert display_host(host) == ascii_host


@pytest.mark.parametrize(
    "host", ["", "a", "www.example.org", "192.0.2.1", "xn--", "xn--zzzz\x00", "XN--.a", "a..xn--b"]
)
def test_other_host_is_unchanged(host: str) -> None:
    assert display_host(host) == host


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user@xn--mnchen-3ya.de:8443/a?b#c", "https://user@münchen.de:8443/a?b#c"),
        ("http://xn--mnchen-3ya.de@xn--pple-43d.com/", "http://xn--mnchen-3ya.de@xn--pple-43d.com/"),
        ("http://a.test/http://xn--mnchen-3ya.de/", "http://a.test/http://xn--mnchen-3ya.de/"),
        ("http://xn--mgbh0fb.xn--kgbechtv/a", "http://مثال.إختبار/a"),
        ("http://xn--mgbh0fb.xn--kgbechtv/1", "http://xn--mgbh0fb.xn--kgbechtv/1"),
        ("http://xn--mgbh0fb.xn--kgbechtv:80/a", "http://xn--mgbh0fb.xn--kgbechtv:80/a"),
        ("http://مثال.إختبار/1", "http://xn--mgbh0fb.xn--kgbechtv/1"),
        ("http://[::1]/xn--mnchen-3ya.de", "http://[::1]/xn--mnchen-3ya.de"),
        ("mailto:a@xn--mnchen-3ya.de", "mailto:a@xn--mnchen-3ya.de"),
    ],
)
def test_url_is_shown_with_host_for_people(url: str, shown: str) -> None:
    assert display_url(url) == shown


@pytest.mark.parametrize(("unicode", "host"), [("false", "www.xn--mnchen-3ya.de"), ("true", "www.münchen.de")])
def test_index_has_hosts_in_unicode_by_option_and_site_finds_both(conf: Configuration, unicode: str, host: str) -> None:
    conf.set("indexer.host.unicode", unicode)
    conf.set("indexer.add.domain", "true")
    url = "http://www.xn--mnchen-3ya.de/"
    document = BasicIndexingFilter(conf).filter(NutchDocument(), url, page())
    assert document is not None
    assert document.get("host") == host
    assert document.get("domain") == host.removeprefix("www.")
    assert document.get("url") == url
    fields = build_search_fields(document, Analyzer.from_conf(conf), DocumentWeights(conf))
    for form in ("xn--mnchen-3ya.de", "münchen.de"):
        assert {f"site={form}", f"domain={form}", f"site=www.{form}"} <= set(fields.exact)
    assert len(fields.exact) == len(set(fields.exact))


def test_forms_of_deceiving_host_are_its_own() -> None:
    assert host_forms("xn--pple-43d.com") == ("xn--pple-43d.com",)
    assert host_forms("аpple.com") == ("аpple.com", "xn--pple-43d.com")
