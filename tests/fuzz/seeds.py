"""Seeds of fuzzing: small inputs of each target; NUL separates the parts of an input."""
# ruff: noqa: E501, ISC004, RUF005

from __future__ import annotations

from tests.parser.formats import samples as s

_URLS = (
    b"http://a.b.test:80/c/../d;e?f=g&h#i\0../x?y", b"https://[::1]:8080/%41\0//h/z", b"ftp://u:p@h/\0mailto:a",
    "http://bücher.example/ä?ö\0?q".encode(), b"http://1.2.3.4/#!a=b\0#", b"file:/a\0",
    b"http://h/?_escaped_fragment_=a\0",
)  # fmt: skip

_SITEMAP = (
    b"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:i='http://www.google.com/"
    b"schemas/sitemap-image/1.1'><url><loc>http://h.test/a</loc><lastmod>2026-01-01T00:00:00+01:00</lastmod><changefreq>"
    b"daily</changefreq><priority>0.5</priority><i:image><i:loc>http://h.test/i</i:loc></i:image></url></urlset>"
)

_ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\n folded\r\n\r\n<p>body",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    b"HTTP/1.1 200 Trouv\xe9\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n\x0b\x01\x80a\x03", b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 404 N\n\nx",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n\r\n\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00a",
    b"-rw-r--r--   1 o g  1024 Jan 01 12:00 name\n01-02-20  03:04PM   <DIR>   d\n",
)  # fmt: skip

_PAGES = (
    b"text/html; charset=utf-8\0<!doctype html><html lang=en><head><title>T</title><base href='/b/'><meta name=robots content="
    b"'noindex, nofollow'><meta http-equiv=refresh content='1; url=/x'><link rel=canonical href=/c></head><body><h1>H</h1>"
    b"<p class=nav>a <a href='x?y' rel='tag nofollow'>link</a><script>var u='/a/b.html'</script><b>b<i>i</b></i>",
    b"\0<meta charset=gbk><table><a href=1><tr><td><a href=2>x</table><svg><title>t</title></svg><template><p>y",
    b"\0<!-- <rdf:RDF><License rdf:about='http://creativecommons.org/l'></rdf:RDF> --><iframe src=x/><frameset><frame src=f>",
    b'\0<script type=\'application/ld+json\'>{"@type":["A"],"a":{"b":1}}</script><div itemscope itemtype=\'http://schema.org/B\' '
    b"itemref=i><p itemprop=c>x<div id=i typeof=D property=e>",
    b"\0<svg xml:lang=de><a rel='tag license' xlink:href=x>t</a><image xlink:href=i><base xlink:href=/><meta xlink:title=t content=c>",
    b"noindex\0<select><option>a<textarea><b></textarea><math><mi><object><a href=q onclick=\"go('/a.b')\">&amp;&#x41;",
)

_STRUCTURED = (
    b"<div itemscope itemtype='http://schema.org/A http://schema.org/B' itemid=/i itemref='r s'><p itemprop='a b'>x<b itemscope itemprop=c>"
    b"<time itemprop=t datetime=2026-01-01>y</time></div><i id=r itemprop=d content=z><input itemprop=q name=n required>",
    b"<div vocab=http://schema.org/ typeof='D e:F' resource=/r><a property='g h' href=x>l</a><span property=k typeof=M about=i>",
    b"<script type='application/ld+json'><!-- [{\"@type\":[\"A\"],\"a\":{\"b\":1,},}, 2] /* c */ // d\n--></script>",
    b"<meta property='og:title twitter:x' content=c><link rel='alternate next' hreflang=de href=/d><link rel=canonical href=c>",
)  # fmt: skip

_ARTICLES = tuple(
    b"<html><head><title>T</title></head><body><nav><a href=/>n</a></nav><article><h1>H</h1>"
    + inner
    + b"</article><footer>f</footer>"
    for inner in (
        b"<p>" + b"A sentence with several words in it. " * 8 + b"</p><ul><li>one<li>two<ol><li>three</ol></ul>",
        b"<table><tr><th>a<td>b<tr><td colspan=2>c<table><tr><td>d</table></table><p>" + b"More words, and more. " * 12,
        b"<blockquote><pre>code</pre><p><em>e<strong>s</em></strong><a href='http://[x'>l</a><br><img src=i alt=t></blockquote>",
        b"<div class='comments post-content'><h2>h</h2><dl><dt>d<dd>e</dl><graphic/><del>x</del><hi rend='#b'>y</hi>"
        + b"word " * 60,
    )
)

_CHARSETS = (
    b"text/html; charset=utf-8\0\xef\xbb\xbf<p>\xc3\xa9", b"x.jp\0\x1b$B%F%9%H\x1b(B", b"text/xml\0<?xml version='1.0' "
    b"encoding='gb2312'?><a>\xd6\xd0&eacute;</a>", b"a;Charset = 'koi8-r'\0<meta http-equiv=content-type content='x;charset=big5'>",
    b"\0\xff\xfea\0b\0", b"\0<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;&amp;&#1;",
)  # fmt: skip

_QUERIES = (
    b'needle -"hay stack" host:a.org', "北京 奥运会 OR (kw* AND NOT x)".encode(), b"+title:evil^2 lang:zh~1\0b.org",
    '“quoted” （x） field:"a b" !c && d || e'.encode(), b"url:http://a.org/evil date:[2020 TO *]",
)  # fmt: skip

_REQUESTS = tuple(
    f"GET {path} HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\n\r\n".encode()
    for path in ("/?q=needle&start=10&host=a.org", "/search.json?q=%E5%8C%97&rows=5", "/explain?q=a&id=org.a:http/zh",
                 "/cached?id=org.a:http/evil", "/cached/view?id=org.a:http/zh", "/style.css", "/x")
) + (b"HEAD / HTTP/1.0\r\n\r\n", b"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 1\r\n\r\nx")  # fmt: skip


def _seed_word(streams: dict[str, bytes]) -> bytes:
    return streams["WordDocument"][:0x800].ljust(0x800, b"\0") + streams["1Table"]


def _seed_lists() -> bytes:
    levels = [s.list_level("%1."), s.list_level("%1.%2", 4, flags=0x0C), *[s.list_level("o", 23)] * 7]
    items = {0: s.in_list(1, 0), 1: s.in_list(style=1), 2: s.in_list(1, 1)}
    return _seed_word(s.doc_with_lists("a\rb\rc\r", items, [levels], styles=[(0, b""), (0, s.in_list(1))]))


def _avro() -> tuple[bytes, ...]:
    from nutch2py.records.cells import ParseStatus, ProtocolStatus, encode_parse_status, encode_protocol_status

    return (encode_parse_status(ParseStatus(1, 0, ("a", "b"))), encode_protocol_status(ProtocolStatus(1, ("c",), 9)))


SEEDS: dict[str, tuple[bytes, ...]] = {
    "url": _URLS,
    "robots": (b"User-agent: *\nDisallow: /a*b$\nAllow: /%41\nCrawl-delay: 1.5\nSitemap: /s\n\0a/b?c",
               b"user-agent: fuzz\nuser-agent: x\nNoindex: /\n\0nofollow, fuzz: none"),
    "sitemap": (_SITEMAP, _SITEMAP.replace(b"url", b"sitemap"), s.RSS.encode(), s.ATOM.encode(),
                b"http://h.test/a\nhttp://h.test/b\n"),
    "answer": _ANSWERS,
    "html": _PAGES,
    "main-text": (*_ARTICLES, b"<?xml version='1.0'?><p>x"),
    "structured": _STRUCTURED,
    "charset": _CHARSETS,
    "feed": (s.RSS.encode(), s.ATOM.encode()),
    "xml": (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a xmlns:p='q'><title>&b;</title><![CDATA[x]]>",),
    "text": (b"see http://h.test/a, x", b"\xff\xfea\0"),
    "script": (b"go('/a/b.html'); x = \"www.h.test/c\"; y = \\'d.e\\'",),
    "archive": (
        s.zipped({"a.txt": b"text", "b.html": b"<p>x"}), s.tarred([("a.txt", b"text")]), b"\x1f\x8b\x08\0",
        s.zipped({"a.zip": s.zipped({"b.txt": b"y"})}), b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00a",
    ),
    "word-xml": (
        b"<w:document xmlns:w='w'><w:p><w:hyperlink r:id='1'><w:t>x</w:t></w:hyperlink><w:tab/><w:fldSimple w:instr='HYPERLINK a'>"
        b"\0" + s.relations([("1", "http://h.test/")]) + b"\0<p><title>T</title></p>\0<t>c</t>",
    ),
    "excel-xml": (
        b"<s><sheet name='S' id='1'/></s>\0" + s.relations([("1", "worksheets/sheet1.xml")]) + b"\0<si><t>s</t></si>\0<numFmt "
        b"numFmtId='170' formatCode='yyyy'/><cellXfs><xf numFmtId='14'/></cellXfs>\0<row><c t='s'><v>0</v></c><c s='0'><v>45000.5"
        b"</v></c><c t='b'><v>1</v></c></row><oddHeader>h</oddHeader>",
    ),
    "opendocument": (
        b"<text:p>a<text:s text:c='3'/><text:a xlink:href='/x'>l</text:a><text:tab/></text:p>\0<title>T</title>\0<p>s</p>\0<m/>",
    ),
    "epub": (
        b"<c><rootfile full-path='book.opf'/></c>\0<p><title>T</title><item id='c' href='c.html'/><itemref idref='c'/></p>"
        b"\0<p>chapter\0<p>d",
    ),
    "rtf": (s.RTF,),
    "mail": (s.MAIL, b"From a\n" + s.MAIL + b"\nFrom b\nSubject: c\n\nd"),
    "image": (
        s.png((b"tEXt", b"Title\0t"), (b"eXIf", s.tiff([(0x010E, 2, 4, b"text")]))),
        s.jpeg((0xFE, b"c"), (0xE1, b"Exif\0\0" + s.tiff([(0x8825, 4, 1, b"\x08\0\0\0")]))),
        s.jpeg((0xED, b"Photoshop 3.0\08BIM\4\4\0\0\0\0\0\6\x1c\2\x19\0\1a")),
        b"GIF89a\1\0\1\0", b"BM" + bytes(40), b"RIFF\0\0\0\0WEBPVP8L" + bytes(20),
        s.tiff([(0x0100, 3, 1, b"\4\0\0\0"), (0x829A, 5, 1, b"\x08\0\0\0")], bytes(8)),
    ),
    "pdf": (
        s.pdf([b"BT /F 9 Tf (text) Tj ET"], s.link("http://h.test/")),
        s.pdf([b"BT /G 9 Tf <00410042> Tj ET"], **s.VERTICAL),
    ),
    "compound": (s.compound(s.doc("text")), s.compound(s.msg())),
    "embedded": (bytes(44) + b"\x30\0\0\0" + bytes(100), s.RTF),
    "word": (_seed_word(s.doc('a\x13HYPERLINK "/x"\x14l\x15')), _seed_lists()),
    "excel": (
        s.xls(s.shared_strings("a", "b") + s.label(1, "c") + s.record(0xFD, bytes(10)) + s.record(0x27E, bytes(10))
              + s.record(0x06, bytes(20)) + s.record(0x85, bytes(6) + b"\1\0S"))["Workbook"],
    ),
    "powerpoint": (
        s.atom(0x03EE, s.atom(0x0FA8, b"text") + s.atom(0x0FA0, b"w\0") + s.atom(0x0FD7, s.atom(0x0FBA, b"u\0"), 15), 15)
        + s.atom(0x1011, bytes(8), 16),
    ),
    "outlook": (b"S\0\0s\0<p>x\0b\0a\0" + bytes(32) + b"\3\0\xfd\x3f\6\0\0\0\xe3\4\0\0\0\0\0\0",),
    "cells": (*_avro(), b"\0\0\0\1", b"\0" * 8, b"text", b'{"row":"a","cells":{"f:a":["YQ==",1]}}'),
    "seeds": (b"http://h.test/\tnutch.score=1.5\tnutch.fetchInterval=60\ta=b\n# c\n",
              b"http://h.test/\tsitemaps: /s.xml /t.xml\thttp://h.test/\t-sitemap\n"),
    "configuration": (
        b"<?xml version='1.0'?><configuration><property><name>a</name><value>${b} 1</value><final>true</final></property>"
        b"<property><name>fetcher.threads.fetch</name><value>5</value></property></configuration>",
    ),
    "search": _QUERIES,
    "server": _REQUESTS,
}  # fmt: skip
