from __future__ import annotations

import struct
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.row_output.row_renderer import MarkdownRenderer
from nutch2py.jobs.row_output.row_text import (
    format_bytes,
    format_float,
    format_page,
    format_parse_status,
    format_protocol_status,
    format_status,
    page_fields,
)
from nutch2py.records.cells import ParseStatus, ProtocolStatus, float32
from nutch2py.records.record import Cells
from nutch2py.records.webpage import WebPage

INJECTED: Cells = {
    b"f": {b"ts": struct.pack(">q", 1600000000000), b"fi": struct.pack(">i", 2592000)},
    b"s": {b"s": struct.pack(">f", 1.0)},
    b"mk": {b"dist": b"0", b"_injmrk_": b"y"},
    b"mtdt": {b"_csh_": struct.pack(">f", 1.0), b"k1": "v1 é".encode()},
}


def fetched() -> WebPage:
    page = WebPage()
    page.base_url, page.status = "http://a.com/", 2
    page.fetch_time, page.prev_fetch_time, page.fetch_interval = 3, 2, 10
    page.retries_since_fetch, page.modified_time, page.prev_modified_time = 1, 5, 4
    page.protocol_status = ProtocolStatus(12, ("http://a.com/b", "x"))
    page.prev_signature, page.signature = b"\x00\xff", b"\x10\xab"
    page.parse_status = ParseStatus(1, 100, ("http://a.com/c", "0"))
    page.title, page.score, page.repr_url, page.batch_id = "Title", 0.5, "http://a.com/r", "1-2"
    page.outlinks = {"http://b.com/": "to b", "http://a.com/z": ""}
    page.inlinks = {"http://c.com/": "from c"}
    page.headers = {"Content-Type": "text/html"}
    page.content, page.content_type, page.text = b"<p>\xff</p>", "text/html", "words"
    return page


def test_injected_row_is_printed() -> None:
    assert format_page("http://a.com/", WebPage(INJECTED)) == (
        "key:\thttp://a.com/\n"
        "baseUrl:\tnull\n"
        "status:\t0 (null)\n"
        "fetchTime:\t1600000000000\n"
        "prevFetchTime:\t0\n"
        "fetchInterval:\t2592000\n"
        "retriesSinceFetch:\t0\n"
        "modifiedTime:\t0\n"
        "prevModifiedTime:\t0\n"
        "protocolStatus:\t(null)\n"
        "parseStatus:\t(null)\n"
        "title:\tnull\n"
        "score:\t1.0\n"
        "marker _injmrk_ : \ty\n"
        "marker dist : \t0\n"
        "reprUrl:\tnull\n"
        "metadata _csh_ : \t?\\x80\\x00\\x00\n"
        "metadata k1 : \tv1 é\n"
    )


def test_full_row_is_printed() -> None:
    text = format_page("com.a:http/", fetched(), content=True, headers=True, links=True, text=True)
    assert text == (
        "key:\tcom.a:http/\n"
        "baseUrl:\thttp://a.com/\n"
        "status:\t2 (status_fetched)\n"
        "fetchTime:\t3\n"
        "prevFetchTime:\t2\n"
        "fetchInterval:\t10\n"
        "retriesSinceFetch:\t1\n"
        "modifiedTime:\t5\n"
        "prevModifiedTime:\t4\n"
        "protocolStatus:\tMOVED, args=[http://a.com/b,x]\n"
        "prevSignature:\t00ff\n"
        "signature:\t10ab\n"
        "parseStatus:\tsuccess/redirect (1/100), args=[http://a.com/c,0]\n"
        "title:\tTitle\n"
        "score:\t0.5\n"
        "reprUrl:\thttp://a.com/r\n"
        "batchId:\t1-2\n"
        "outlink:\thttp://a.com/z\t\n"
        "outlink:\thttp://b.com/\tto b\n"
        "inlink:\thttp://c.com/\tfrom c\n"
        "header:\tContent-Type\ttext/html\n"
        "contentType:\ttext/html\n"
        "content:start:\n"
        "<p>\ufffd</p>\n"
        "content:end:\n"
        "text:start:\n"
        "words\n"
        "text:end:\n"
    )


@pytest.mark.parametrize("option", ["content", "headers", "links", "text"])
def test_each_option_reads_only_its_fields(option: str) -> None:
    base = format_page("k", fetched())
    shown = format_page("k", fetched(), **{option: True})
    assert shown.startswith(base)
    assert len(shown) > len(base)
    format_page("k", WebPage(INJECTED, page_fields(**{option: True})), **{option: True})


def test_content_is_read_only_when_shown() -> None:
    assert WebPage.content not in page_fields(headers=True, links=True, text=True)
    format_page("k", WebPage(INJECTED, page_fields()))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (-2.5, "-2.5"),
        (1 / 3, "0.33333334"),
        (0.001, "0.001"),
        (0.00025, "2.5E-4"),
        (1234567.0, "1234567.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (100.25, "100.25"),
        (3.4028235e38, "3.4028235E38"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_floats_are_printed_like_java(value: float, text: str) -> None:
    assert format_float(value) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_printed_float_round_trips(value: float) -> None:
    assert float32(float(format_float(value))) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"", ""),
        (b"plain\ttext", "plain\ttext"),
        ("日本".encode(), "日本"),
        (struct.pack(">i", 120), "\\x00\\x00\\x00x"),
        (b"\x1b[31m", "\\x1B[31m"),
        (b"\xc2\x9b", "\\xC2\\x9B"),
        (b"caf\xe9", "caf\\xE9"),
    ],
)
def test_control_characters_are_escaped(value: bytes, text: str) -> None:
    assert format_bytes(value) == text


def test_unknown_codes_are_printed() -> None:
    assert format_status(99) == "99 (null)"
    assert format_protocol_status(ProtocolStatus(77)) == "UNKNOWN_CODE_77, args=[]"
    assert format_parse_status(ParseStatus(9, 9)) == "null/null (9/9), args=[]"


def test_main_text_is_printed_as_markdown(conf: Configuration) -> None:
    page = WebPage()
    said = "Ein Satz über die Größe der Dinge, der lang genug ist, um als Text zu gelten. " * 4
    html = f"<nav><a href=/a>Menü</a></nav><article><h2>Größe</h2><p>{said}<b>Fett</b> <a href=b>mehr</a></p></article>"
    with closing(MarkdownRenderer(conf)) as reader:
        assert reader.render("http://h/d/", page) is None
        page.text = "All of the text"
        assert reader.render("http://h/d/", page) == "All of the text"
        page.content, page.content_type = html.encode("latin-1"), "text/html"
        cells = page.current_cells(reader.fields)
        shown = reader.render("http://h/d/", page) or ""
        assert page.current_cells(reader.fields) == cells
    assert shown.startswith("## Größe\n\nEin Satz über die Größe")
    assert "**Fett** [mehr](http://h/d/b)" in shown
    assert "Menü" not in shown
    assert format_page("k", page, markdown=shown).endswith(f"markdown:start:\n{shown}\nmarkdown:end:\n")
