from hashlib import md5

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.signatures.digest_signatures import (
    MD5Signature,
    TextMD5Signature,
    TextProfileSignature,
    java_hash_map_capacity,
    java_spread_hash,
)
from nutch2py.plugins.loading import create_named_plugin
from nutch2py.records.webpage import WebPage


def page(content: bytes | None = None, text: str | None = None, url: str | None = "http://h/") -> WebPage:
    made = WebPage()
    made.content, made.text, made.base_url = content, text, url
    return made


def profile(text: str, **properties: str) -> str:
    conf = Configuration({f"db.signature.text_profile.{name}": value for name, value in properties.items()})
    return TextProfileSignature(conf).profile(text).replace("\n", "|")


def test_md5_uses_content_or_url() -> None:
    signature = MD5Signature()
    assert signature.calculate("", page(b"x")) == md5(b"x").digest()
    assert signature.calculate("", page(b"", url="http://h/é")) == md5("http://h/é".encode()).digest()
    assert signature.calculate("http://u/", page(url=None)) == md5(b"http://u/").digest()


def test_text_md5_ignores_markup() -> None:
    signature = TextMD5Signature()
    assert signature.calculate("", page(b"<p>a", "a")) == signature.calculate("", page(b"<b>a", "a"))
    assert signature.calculate("", page(b"x", "")) == md5(b"x").digest()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a bb ccc dddd", "ccc 1|dddd 1"),
        ("crawl crawl the the page", "the 2|crawl 2"),
        ("Ärger ÄRGER ärger x²y once", "ärger 2"),
        ("中文字 中文字 中文字", "中文字 2"),
        ("", ""),
        ("a😀abc😀abc", "abc 2"),
        ("İST İST ΣΣΣ", "ist 2"),
    ],
)
def test_text_profile_contains_frequent_words(text: str, expected: str) -> None:
    assert profile(text) == expected


def test_equal_counts_are_ordered_like_java_hash_map() -> None:
    # the order that java.util.HashMap (OpenJDK 17) gives for these words put in one by one
    words = "table family cell page link anchor score batch marker fetch parse update host index robots agent queue"
    java = "agent link batch update index parse cell score marker anchor fetch host page robots family table queue"
    assert [entry.split()[0] for entry in profile(words).split("|")] == java.split()


def test_counts_are_rounded_down() -> None:
    words = "common " * 450 + "rare " * 7 + "single"
    assert profile(words) == "common 450|rare 5"
    assert profile(words, quant_rate="0.5", min_token_len="4") == "common 450"


def test_numbers_are_parsed_like_java() -> None:
    assert [java_hash_map_capacity(n) for n in (0, 12, 13, 24, 25, 49)] == [16, 16, 32, 32, 64, 128]
    assert java_spread_hash("polygenelubricants") == 0x80000000 ^ 0x8000  # hashCode is Integer.MIN_VALUE


def test_signature_class_accepts_java_and_short_names(conf: Configuration) -> None:
    for name in ("org.apache.nutch.crawl.TextProfileSignature", "TextProfileSignature"):
        assert isinstance(create_named_plugin(conf, "signature", name), TextProfileSignature)
