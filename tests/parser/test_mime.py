import gzip
import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.parser.mime.mime_table import DEFAULT_MIME_TYPES_FILE, MimeTable, unescape_magic
from nutch2py.parser.mime.mime_types import detect_content_type, get_mime_resolver, is_text

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def test_mimeutil_cases(cases: Callable[[str], list[dict[str, Any]]]) -> None:
    passed = 0
    for case in (found := cases("mimeutil")):
        args = case["args"]
        conf = Configuration.load(overrides={"mime.type.magic": str(args["mime.type.magic"]).lower()})
        assert detect_content_type(args["content_type"], args["url"], case["input"].encode(), conf) == case["expect"], (
            case
        )
        passed += 1
    print(f"mimeutil: {passed}/{len(found)}")


def test_recorded_types_are_reproduced(recording: Path, conf: Configuration) -> None:
    compared = 0
    for number in range(1, 5):
        with gzip.open(recording / "dumps" / f"round{number}-fetch.jsonl.gz", "rt") as lines:
            for line in lines:
                cells = {name: b64decode(value) for name, (value, _) in json.loads(line)["cells"].items()}
                if not {"f:typ", "f:cnt", "f:bas", "h:Date"} <= cells.keys():
                    continue
                declared = cells.get("h:Content-Type", b"").decode() or None
                found = detect_content_type(declared, cells["f:bas"].decode(), cells["f:cnt"], conf)
                if found != cells["f:typ"].decode():
                    # the row's headers are of a later answer (404) than its content
                    assert cells["f:st"][-1] in (3, 34), (line[:80], found, cells["f:typ"])
                compared += 1
    assert compared > 600
    print(f"recorded types: {compared}")


@pytest.mark.parametrize(
    ("declared", "url", "body", "expected"),
    [
        ("text/html; charset=x", "http://h/", b"<p>hi", "text/html"),
        ("TEXT/HTML", "http://h/", b"", "text/html"),
        ("text/plain", "http://h/x", b"<html><body>", "text/html"),
        ("application/octet-stream", "http://h/x", PNG, "image/png"),
        ("image/png", "http://h/x.gif", PNG, "image/png"),
        (None, "http://h/a.pdf?x=1#y", b"", "application/pdf"),
        (None, "http://example.com", b"\x00\x01", "application/octet-stream"),
        (None, "http://example.com/", b"plain words", "text/plain"),
        ("application/json", "http://h/x", b'{"a": 1}', "application/json"),
        ("application/x-javascript", "http://h/x", b"var a", "application/javascript"),
        ("text/xml", "http://h/x", b'<?xml version="1.0"?><rss version="2.0"/>', "application/rss+xml"),
        ("text/xml", "http://h/x", b"<?xml version='1.0'?><!-- c --><r/>", "application/xml"),
        ("text/xml", "http://h/x.xml", b"<section id='a'><title>Book</title></section>", "application/xml"),
        ("text/html", "http://h/x.xml", b"<html><title>Page</title>", "text/html"),
        ("text/xml", "http://h/x", b"\n<html><title>Page</title>", "text/html"),
        (None, "http://h/x", b"<title>Page</title>", "text/html"),
        ("x", "http://h/x.svg", b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (None, "http://h/a.docx", b"PK\x03\x04....",
         "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("application/zip", "http://h/a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/msword"),
        (None, "http://h/a", b"RIFF\x00\x00\x00\x00WEBPVP8", "image/webp"),
        ("foo/bar/baz", "http://h/a%2Epng", b"", "image/png"),
        # XML that begins with comments, white space or a byte order mark
        ("text/xml", "http://h/x.opml", b"<!-- c -->\n<opml version='2.0'><head><title>x", "text/x-opml"),
        (None, "http://h/x", b"<!-- c -->\n<opml version='2.0'><head><title>x", "text/x-opml"),
        ("application/xml", "http://h/x", b"<!-- c --><note><title>x</title></note>", "application/xml"),
        (None, "http://h/x.xml", b" \n<!-- c -->\n<!-- d --><note><title>x</title></note>", "application/xml"),
        ("text/html", "http://h/x", b"<!-- c --><div><title>x</title></div>", "text/html"),
        ("text/xml", "http://h/x", b"<!-- c --><!-- d -->\n<html><title>x</title>", "text/html"),
        ("text/xml", "http://h/x", b"\xef\xbb\xbf\n<!-- c --><rss version='2.0'/>", "application/rss+xml"),
        ("text/xml", "http://h/x", b"<Channel xmlns='http://purl.org/net/rss1.1#'><title>x", "application/rss+xml"),
        ("text/xml", "http://h/x", b"<!DOCTYPE rss [<!ENTITY a ']>'>]><rss/>", "application/rss+xml"),
        ("text/xml", "http://h/x", b"<!-- c --><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>",
         "application/xml"),
        (None, "http://h/x.ndjson", b'{"a": 1}\n{"a": 2}\n', "application/x-ndjson"),
        ("application/jsonl", "http://h/x", b'{"a": 1}\n{"a": 2}\n', "application/x-ndjson"),
        (None, "http://h/x", b"\0\0\0\x18ftypmsf1\0\0\0\0", "application/octet-stream"),
        # what nothing declares: an unknown root element, a namespace, UTF-16, a comment longer than the sample
        (None, "http://h/x", b"<!-- c --><order><title>x</title></order>", "application/xml"),
        ("text/html", "http://h/x", b"<Envelope xmlns='urn:x'><title>x</title></Envelope>", "application/xml"),
        (None, "http://h/x", b"<!DOCTYPE order SYSTEM 'o.dtd'>\n<order/>", "application/xml"),
        (None, "http://h/x", b" " * 60 + b"<?xml version='1.0'?><r/>", "application/xml"),
        (None, "http://h/x", b"<!--" + b"licence " * 1500 + b"--><rss version='2.0'/>", "application/rss+xml"),
        (None, "http://h/x", "\ufeff<svg xmlns='http://www.w3.org/2000/svg'/>".encode("utf-16-le"), "image/svg+xml"),
        (None, "http://h/x", "\ufeff<!-- c --><html>".encode("utf-16-be"), "text/html"),
        (None, "http://h/x", "<?xml version='1.0'?><r/>".encode("utf-16-le"), "application/xml"),
        (None, "http://h/x", b"<!-- c --><my-element>x", "text/html"),
        (None, "http://h/x", b"<!DOCTYPE html><svelte>x", "text/html"),
        (None, "http://h/x", b"<placeholder> is text", "text/plain"),
        # tags that browsers know a page by, unless it is declared as text
        (None, "http://h/x", b"\n<iframe src=x>", "text/html"),
        (None, "http://h/x", b"<STYLE>x", "text/html"),
        ("text/plain", "http://h/x", b"<b>x", "text/plain"),
        ("text/xml", "http://h/x", b"<font>x</font>", "application/xml"),
        # JSON whatever the header says; what only looks like it is not JSON
        (None, "http://h/x", b'{"a": [1, 2.5e3, null], "b": {}}', "application/json"),
        ("text/html", "http://h/x", b'\xef\xbb\xbf[{"a": "<html>"}]', "application/json"),
        ("text/html", "http://h/x", b'{"a": "' + b"x" * 9000, "application/json"),
        ("application/geo+json", "http://h/x", b'{"a": 1}', "application/geo+json"),
        (None, "http://h/x", b'{"a": 1}\n{"a": 2}\n', "application/x-ndjson"),
        (None, "http://h/x", b'{"a": 1} {"a": 2}', "text/plain"),
        (None, "http://h/x", b"[1] Smith, J.", "text/plain"),
        (None, "http://h/x", b"{color: red}", "text/plain"),
        (None, "http://h/x", b'{"a": 1,}', "text/plain"),
        (None, "http://h/x", b'["a"].map(f)', "text/plain"),
        (None, "http://h/x.js", b'{"use strict"; f()}', "application/javascript"),
        # brands of media files
        (None, "http://h/x", b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "image/heic"),
        (None, "http://h/x", b"\0\0\0\x10ftypmif1\0\0\0\0", "image/heif"),
        (None, "http://h/x", b"\0\0\0\x18ftypXXXX\0\0\0\0mp42\0\0\0\0", "video/mp4"),
        (None, "http://h/x", b"\x1aE\xdf\xa3\x81\x42\x82\x84webm", "video/webm"),
        # containers that start with their content
        (None, "http://h/a", b"PK\x03\x04" + bytes(26) + b"a.htm<html><title>x", "application/zip"),
        ("text/html", "http://h/a", b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/x-ibooks+zip<html>",
         "application/x-ibooks+zip"),
        (None, "http://h/a", b"\x89PNG\r\n\x1a\n<html>", "image/png"),
        (None, "http://h/a", b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml", "application/x-tika-ooxml"),
        # feeds and others without an XML declaration
        ("text/html", "http://h/a", b"<rss version='2.0'><channel><title>x", "application/rss+xml"),
        ("text/plain", "http://h/a", b"\n <!-- c --><rss><channel><title>x", "application/rss+xml"),
        (None, "http://h/a", b"\xef\xbb\xbf<feed xmlns='http://www.w3.org/2005/Atom'><title>", "application/atom+xml"),
        (None, "http://h/a", b"<feed><title>x", "application/atom+xml"),
        (None, "", b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>", "application/rdf+xml"),
        (None, "http://h/a", b"<html><body><rss>", "text/html"),
        (None, "http://h/a", b"<html xmlns='http://www.w3.org/1999/xhtml'><head>", "application/xhtml+xml"),
        # text that speaks of HTML is what its name says
        (None, "http://h/a.py", b"# writes <html>\n", "text/x-python"),
        ("text/plain", "http://h/notes", b"Pages begin with <html>.\n", "text/plain"),
        ("text/plain", "http://h/notes", b"  <html><p>x", "text/html"),
        # a single field may start any text
        (None, "http://h/a", b"Subject: x\nFrom: a@b.test\n\n", "message/rfc822"),
        (None, "http://h/a", b"Subject: to be\nor not\n\n", "text/plain"),
        (None, "http://h/a", b"\xef\xbb\xbf%PDF-1.4\n", "application/pdf"),
    ],
)  # fmt: skip
def test_types_are_detected(conf: Configuration, declared: str | None, url: str, body: bytes, expected: str) -> None:
    assert detect_content_type(declared, url, body, conf) == expected


def test_without_magic_header_type_is_used(conf: Configuration) -> None:
    conf.set("mime.type.magic", False)
    assert detect_content_type("text/plain", "http://h/x", b"<html>", conf) == "text/plain"


def test_text_in_any_encoding_is_text() -> None:
    assert is_text("中文".encode("gb18030"))
    assert is_text("日本".encode("iso2022_jp"))
    assert not is_text(bytes(range(32)))


def test_custom_mime_table_is_used(tmp_path: Path) -> None:
    (tmp_path / "mine.xml").write_text(
        '<mime-info><mime-type type="x/Y"><glob pattern="*.yy"/><glob pattern="^READ.*$" isregex="true"/>'
        '<magic priority="50"><match value="0xcafe" type="big16" offset="2"/>'
        '<match value="a.c" type="regex" offset="0"/><match value="(?&lt;!a{1,2})b" type="regex" offset="0"/>'
        '<match value="070707" type="little16" offset="9"/><match value="zz" type="unicodeLE" offset="0"/></magic>'
        '<sub-class-of type="x/y"/></mime-type></mime-info>'
    )
    conf = Configuration({"mime.types.file": "mine.xml"}, [tmp_path])
    assert detect_content_type(None, "http://h/READ.ME", b"", conf) == "x/y"
    assert detect_content_type(None, "http://h/", b"..\xca\xfe", conf) == "x/y"
    assert detect_content_type(None, "http://h/", b"abc", conf) == "x/y"
    assert not get_mime_resolver(conf).table.is_instance_of("x/y", "a/b")


def test_missing_or_broken_table_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no configuration folder"):
        detect_content_type(None, "http://h/", b"", Configuration({"mime.types.file": "none.xml"}, [tmp_path]))
    (tmp_path / "bad.xml").write_text("<mime-info>")
    with pytest.raises(ConfigurationError, match="cannot read"):
        detect_content_type(None, "http://h/", b"", Configuration({"mime.types.file": "bad.xml"}, [tmp_path]))


def test_first_byte_index_excludes_no_match(conf: Configuration) -> None:
    table = MimeTable.load(conf)
    root = conf.resource_xml(DEFAULT_MIME_TYPES_FILE)
    assert root is not None
    values = {unescape_magic(match.get("value", "")) for match in root.iter("match")}
    heads = [bytes([first]) + b" more" for first in range(256)]
    heads += [head for value in values if value for head in (value, value.lower(), value.upper(), b"x" + value)]
    assert len(heads) > 400
    for head in heads:
        assert [each for each in table.magic if each[2](head)] == [
            each for each in table.magic_for_first_byte(head[0]) if each[2](head)
        ]
    assert len(table.magic_for_first_byte(ord("<"))) < len(table.magic)
