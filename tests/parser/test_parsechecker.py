from hashlib import md5

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.parsechecker import check_parse, create_page

BODY = b"<title>T</title><a href='/x.gif'>an anchor</a>"
URL = "http://h.test/p"


def test_parsechecker_prints_report(conf: Configuration) -> None:
    page = create_page(URL, BODY, "text/html; charset=utf-8", conf)
    assert check_parse(conf, URL, page, dump_text=True) == (
        f"fetching: {URL}\nparsing: {URL}\ncontentType: text/html\nsignature: {md5(BODY).hexdigest()}\n"
        f"---------\nUrl\n---------------\n\n{URL}\n"
        "---------\nMetadata\n---------\n\n"
        "OriginalCharEncoding : \tutf-8\nCharEncodingForConversion : \tutf-8\nlanguage : \ten\n"
        "---------\nOutlinks\n---------\n\n  outlink: toUrl: http://h.test/x.gif anchor: an anchor\n"
        "---------\nHeaders\n---------\n\nContent-Type : \ttext/html; charset=utf-8\n"
        "---------\nParseText\n---------\n\nT an anchor\n"
    )


def test_parsechecker_forced_type_failure_and_truncation_are_reported(conf: Configuration) -> None:
    page = create_page(URL, BODY, None, conf)
    page.headers["Content-Length"] = "999"
    report = check_parse(conf, URL, page, force_as="text/plain")
    assert "contentType: text/plain" in report
    assert "Content is truncated, parse may fail!" in report
    assert "Problem with parse: " in check_parse(conf, URL, create_page(URL, b"\0", None, conf))
