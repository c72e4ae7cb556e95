"""Odd pages: combinations of markup errors for which a standard defines the handling.

Each page has one oddity. A browser shows its meaning (:mod:`tests.suites.browser`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

HOST = "HOST"
"""Placeholder of the server's address in a page, without a slash."""
_TEXTS = {
    "utf-8": "编码 é ß 文字", "gbk": "编码文字", "big5": "編碼文字", "shift_jis": "文字コード", "euc-kr": "문자",
    "windows-1252": "é ß ü", "koi8-r": "Текст", "utf-16-le": "编码 é", "utf-16-be": "编码 é",
}  # fmt: skip
_HEADERS = (
    "text/html; charset=gbk", 'text/html;charset="utf-8"', "text/html; charset='big5'", "text/html; Charset = koi8-r",
    "text/html; charset=utf8", "text/html; charset=x-none", "text/html; charset=", "text/html; charset=latin1",
    "text/html; charset=gb2312; x=y", "text/html; x=y; charset=shift_jis", "text/html;charset=unicode",
    "text/html; charset=utf-16", "text/html; charset=utf-7", "text/html; charset=iso-8859-1, text/html",
    "text/html; charset=gbk; charset=utf-8", 'text/html; charset="gbk', "text/html; charset=hz-gb-2312",
    "TEXT/HTML; CHARSET=EUC-KR", "text/html; charset=x-user-defined", "text/html; charset=x-sjis",
)  # fmt: skip
_METAS = (
    "<meta charset=gbk>", "<meta charset='big5'>", '<META CHARSET = "koi8-r" >', "<meta charset=utf8/>",
    "<meta charset=x-none><meta charset=gbk>", "<meta charset=><meta charset=gbk>", "<!-- <meta charset=gbk> -->",
    "<!--> <meta charset=gbk> -->", "<!---> <meta charset=gbk>", "<!-- --!> <meta charset=gbk> -->",
    "<meta http-equiv=content-type content='text/html; charset=gbk'>",
    "<meta content='text/html; charset=gbk' http-equiv=Content-Type>",
    "<meta http-equiv=content-type content='charset=gbk'>", "<meta content='text/html; charset=gbk'>",
    "<meta http-equiv=content-type content='text/html; charset=\"gbk\"'>",
    "<meta http-equiv=content-type content='text/html; charset = gbk ; x'>",
    "<meta http-equiv=content-type content='text/html; charsetx charset=gbk'>",
    "<meta http-equiv=content-type content='text/html; charset=\"gbk'>",
    "<meta charset=utf-16>", "<meta charset=utf-16le>", "<meta charset=x-user-defined>", "<meta charset=iso-8859-1>",
    "<meta name=x charset=gbk>", "<meta x='>' charset=gbk>", "<meta charset=gbk charset=utf-8>",
    "<script>'<meta charset=gbk>'</script>", "<title><meta charset=gbk></title>", "<style><meta charset=gbk></style>",
    "<noscript><meta charset=gbk></noscript>", "<template><meta charset=gbk></template>",
    "<x y='<meta charset=gbk>'>", "<?x <meta charset=gbk> ?>", "<!x '>' <meta charset=gbk>>",
    "<body><meta charset=gbk>", "</x y='<meta charset=gbk>'>", "<meta/charset=gbk>", "<meta\fcharset=gbk>",
    "<metacharset=gbk>", "<meta charset=\tgbk\n>", "<meta charset=' gbk '>", "<meta charset=&quot;gbk&quot;>",
    "<meta charset=g&#98;k>", "<?xml version='1.0' encoding='gbk'?><html>",
    "<meta http-equiv='refresh' content='text/html; charset=gbk'>", "<p><meta charset=gbk>",
    "<meta http-equiv=content-type content='text/html;charset=gbk' charset=utf-8>",
)  # fmt: skip
_HREFS = (
    "x", "'x'", " = x ", '"x\ny"', '" x "', "x/", "x>y", '"x>y"', "//OTHER/x", "'\\\\OTHER\\x'", "'\\x\\y'", "http:x",
    "'http:/x'", "'http:////OTHER/x'", "///OTHER/x", "'?q=1&copy=2'", "'?q=1&copy2'", "?a&amp;b", "'?a&ampb'",
    "'?a&amp=b'", "'?x&lt=1'", "'?x&lt'", "'?x&notit=1'", "'?x&notin;=1'", "#f", "''", "?", ".", "..", "./a/../b",
    "/../../x", "'a b  c'", "'ä?ä=ö#ü'", "%zz", "%7Efoo", "%e4%bd", "'javascript:x'", "' JavaScript:x'", "data:x",
    "mailto:x@y", "HTTP://OTHER/", "http://OTHER:80/x", "http://OTHER:0080/x", "x:y", "'a\tb'", "/x/./y/%2e%2e/z",
    "&#x2f;x", "'&#47;x&#0;y'", "'x&#10;y'", "'x&#9;y'", "'x\0y'", 'x"y', "x'y", "'x\"y'", "`x`", "'x' href=y",
    "x name=y", "x/y=z", "'x'title='y'", "/x?y=/../z", "'x;y=1/../z'", "'x|y'", "'x^y'", "'x{y}'", "'x[y]'", "'x<y'",
    "'x`y'", "//OTHER:/x", "'//OTHER/x y'", "//OTHER?x", "//OTHER#x", "http:///OTHER/x", "https:x", "'http:\\\\OTHER'",
    "'//OTHER\\@y/'", "'x%20y'", "'%C3%A4'", "'?%E4'", "'x\u00a0'", "'\u3000x'", "'x\u200b'", "'\u4e2d\u6587/\u6587'",
    "'..\\x'", "'x\\..\\y'", "'//OTHER/%2E/x'", "'x//y///z'", "'?x#y?z'", "'?x y'", "'?x\"y'", "'?<>'",
    "&period;/x", "'x&sol;y'", "'x&nbsp;y'", "'&amp;#47;x'", "'x&Tab;y'", "'&NewLine;x'", "'x&hellip;'",
)  # fmt: skip
_AROUND = (
    "<A HREF={}>t</A>", "<a\nhref={}>t</a>", "<a/href={}>t</a>", "<a x href={}>t</a>", "<a href={}>t<a href=z>u",
    "<a href={}>t", "<table><a href={}>t</a><tr><td>u</table>", "<table><tr><a href={}>t</a></table>",
    "<p><a href={}><p>t</a>u", "<b><a href={}><i>t</b>u</i></a>", "<svg><a href={}><text>t</text></a></svg>",
    "<svg><a xlink:href={}>t</a></svg>", "<svg><a XLINK:HREF={}>t</a></svg>",
    "<svg><foreignObject><a href={}>t</a></foreignObject></svg>",
    "<math><mi><a href={}>t</a></mi></math>", "<math><mtext href={}>t</mtext></math>",
    "<template><a href={}>t</a></template>",
    "<textarea><a href={}>t</a></textarea>", "<title><a href={}>t</a></title>",
    "<!-- <a href={}>t</a> -->", "<!--> <a href={}>t</a> -->", "<!-- --!> <a href={}>t</a> -->",
    "<!---!> <a href={}>t</a> -->", "<! <a href={}>t</a> -->", "<![CDATA[<a href={}>t</a>]]>",
    "<svg><![CDATA[<a href={}>t</a>]]></svg>", "<script><a href={}>t</a></script>",
    "<script><!--<script></script><a href={}>t</a>--></script>", "<style><a href={}>t</a></style>",
    "<xmp><a href={}>t</a></xmp>", "<plaintext><a href={}>t</a>", "<iframe><a href={}>t</a></iframe>",
    "<noembed><a href={}>t</a></noembed>", "<noframes><a href={}>t</a></noframes>",
    "<select><option><a href={}>t</a></select>", "<button><a href={}>t</a></button>",
    "<map><area href={}></map>", "<area href={}>", "<object><a href={}>t</a></object>",
    "<video><a href={}>t</a></video>",
    "<form><form><a href={}>t</a></form></form>", "<frameset><frame></frameset><a href={}>t</a>",
    "<details><a href={}>t</a></details>", "<dialog><a href={}>t</a></dialog>", "<p hidden><a href={}>t</a>",
    "<a href={}><img src=x></a>", "</body></html><a href={}>t</a>", "<head><a href={}>t</a></head>",
    "<h1><a href={}>t</h1></a>", "<a href={}><table><tr><td>t</table></a>", "<a href={} ping=p>t</a>",
    "<label><a href={}>t</a></label>", "<ul><li><a href={}>t<li>u</ul>", "<a\0 href={}>t</a>", "<ax href={}>t</ax>",
    "<x:a href={}>t</x:a>", "<a href={}<b>t</a>", "<a href={}>t</ a >", "< a href={}>t</a>", "<font><a href={}></font>",
    "<nobr><nobr><a href={}>t</a>", "<marquee><a href={}>t</a></marquee>", "<applet><a href={}>t</a></applet>",
    "<p title='<a href={}>t</a>'>", "<p title=\"'<a href={}>t</a>", "<a target=_blank rel=noopener href={}>t</a>",
)  # fmt: skip
_BASES = (
    "<base href=/b/>", "<base href='b/'>", "<base href=' /b/ '>", "<base><base href=/b/>", "<base href=''>",
    "<base href=/b/><base href=/c/>", "<base href='//OTHER/b/'>", "<base href='http://OTHER/b'>", "<base href='?x'>",
    "<base href='#x'>", "<base href='data:x'>", "<base href='javascript:x'>", "<base href='x:y'>",
    "<base href='http://[/'>", "<body><base href=/b/>", "<p><base href=/b/>", "<noscript><base href=/b/></noscript>",
    "<template><base href=/b/></template>", "<svg><base href=/b/></svg>", "<!-- <base href=/b/> -->",
    "<base target=x><base href=/b/>", "<BASE HREF=/b/>", "<base href=\\b\\>", "<base href='b\n/'>",
    "<title><base href=/b/></title>", "<base href='mailto:x'>", "<base href='../'>", "<base href='/b/%zz/'>",
    "<base href='data:x'><base href=/b/>", "<a href=early>t</a><base href=/b/>", "<base href='http:b/'>",
    "<base href='/b ä/'>",
)  # fmt: skip
_REFRESHES = (
    "0;url=x", "0; URL='x'", '0;URL="x', "0,x", "0 x", "0;x", " 0 ; url = x", "0.9;url=x", ".5;url=x", "0;url='x'y",
    "0;;url=x", "0;url==x", "0;urlx", "0;url=", "0; u", "0;ur=x", "0;url\n=\nx", "url=x", ";url=x", "0x;url=x",
    "00;url=x", "+0;url=x", "-1;url=x", "0;url=/x?a=1;b=2", "0;url=x ", "0;url=' x '", "0; URL = 'x", "0;url=x#f",
    "0;'x'", '0;"x', "0:url=x", "0;url=javascript:x", "0;url=data:x", "0\tx", "0;url=&#x2f;x",
    "0.;url=x", "..;url=x", "0..0;url=x", "0;url =x", "0,url=x", "0,,x",
)  # fmt: skip
_TITLES = (
    "<title>a  b\n c</title>", "<title>a &amp; b &lt;i></title>", "<title><b>a</b></title>", "<title>a</title><title>b",
    "<title>a", "<svg><title>a</title></svg><title>b</title>", "<body><title>a</title>", "<title></title><title>b",
    "<TITLE\n>a</TITLE >", "<title/>a</title>", "<title>a<!-- b --></title>", "<title>&nbsp;a&nbsp;</title>",
    "<title>\u3000a</title>", "<noscript><title>a</title></noscript>", "<template><title>a</title></template><title>b",
    "<!-- <title>a</title> --><title>b", "<title>a\0b</title>", "<title>a&#0;b&#x80;</title>", "<title>a\fb</title>",
    "<textarea><title>a</title></textarea><title>b", "<math><title>a</title></math>", "<title>a&copyb&notit;</title>",
    "<svg><foreignObject><title>a</title></foreignObject></svg>", "<p><title>a</title>", "<title>a\rb\r\nc</title>",
    "<frameset><title>a</title>", "<title>&#55296;&#x110000;&#1;</title>", "<xmp><title>a</title></xmp>",
    "<iframe><title>a</title></iframe><title>b", "<select><title>a</title></select><title>b", "<title>a&#10;b&Tab;c",
)  # fmt: skip


class OddPage(NamedTuple):
    """A page: the kind of its oddity, which it is, the Content-Type it is sent with, and its bytes."""

    kind: str
    name: str
    content_type: str
    body: bytes


def odd_pages() -> Iterator[OddPage]:
    """Yield all pages. ``OTHER`` in them is the name of another host."""
    for header in _HEADERS:
        for meta in ("", "<meta charset=euc-jp>"):
            yield OddPage("charset", f"{header} {meta}", header, f"{meta}<title>t</title>".encode() + b"\xc4\xe3 \xe9")
    for meta in _METAS:
        yield OddPage("charset", meta, "text/html", f"{meta}<title>t</title>".encode() + b"\xc4\xe3 \xe9")
        yield OddPage("charset", f"after 800: {meta}", "text/html", b"<!--" + b"x" * 800 + b"-->" + meta.encode())
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        for header in ("text/html", "text/html; charset=gbk"):
            body = mark + f"<meta charset=big5><title>t</title>{_TEXTS[encoding]}".encode(encoding)
            yield OddPage("charset", f"mark of {encoding}, {header}", header, body)
    for encoding, text in _TEXTS.items():
        label = encoding.replace("utf-16-", "utf-16")
        body = f"<title>{text}</title><a href='?{text}'>t</a><a href='/{text}'>u</a>".encode(encoding)
        yield OddPage("links", f"in {label}", f"text/html; charset={label}", body)
    for href in _HREFS:
        yield _html("links", f"href={href}", f"<title>t</title><p><a href={href}>t</a></p>")
    for around in _AROUND:
        yield _html("links", around, f"<title>t</title>{around.format('x')}<p>v")
    for base in _BASES:
        yield _html("base", base, f"<title>t</title>{base}<a href=x>t</a><a href='#f'>u</a><a href='?q'>v</a>")
    for content in _REFRESHES:
        yield _html("refresh", content, f'<meta http-equiv=refresh content="{content.replace(chr(34), "&quot;")}">t')
    refresh = "<meta http-equiv=refresh content='0;url=x'>"
    for around in (
        "{}", "<noscript>{}</noscript>", "<body>{}", "<template>{}</template>", "<svg>{}</svg>", "<!--{}-->",
        "<base href=/b/>{}", "{}<base href=/b/>", "<title>{}</title>", "<p>{}",
        "{}<meta http-equiv=refresh content=0;y>",
        "<meta http-equiv=refresh content=z>{}", "<script>{}</script>", "<textarea>{}</textarea>",
    ):  # fmt: skip
        yield _html("refresh", around, around.format(refresh))
    for title in _TITLES:
        yield _html("title", title, title)


def _html(kind: str, name: str, html: str) -> OddPage:
    return OddPage(kind, name, "text/html; charset=utf-8", f"<!DOCTYPE html>{html}".encode())
