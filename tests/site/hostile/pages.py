"""HTML, XML and feeds that are slow, large or deep to parse."""

from __future__ import annotations

from tests.site.hostile.trick import Tricks

tricks = Tricks()


_page = tricks.document
_page(
    "html-attributes", "150,000 attributes of one element", lambda: "<p " + "".join(f"a{n:x} " for n in range(150_000))
)
_page(
    "html-root-attributes",
    "60,000 times <html> with an attribute",
    lambda: "".join(f"<html b{n}=1>" for n in range(60_000)),
)
_page(
    "html-formatting",
    "1,000 open formatting elements, then 10,000 paragraphs",
    lambda: "".join(f"<b id={n}>" for n in range(1000)) + "<p>x" * 10_000,
)
_page(
    "html-formatting-fonts",
    "open <font> and <a> by turns",
    lambda: "".join(f"<font size={n}><a href=/{n}><p>" for n in range(20_000)),
)
_page("html-deep", "200,000 elements in each other", lambda: "<div>" * 200_000)
_page("html-deep-tables", "tables in tables", lambda: "<table><tr><td>" * 60_000)
_page("html-deep-forms", "lists, buttons and fieldsets in each other", lambda: "<ul><li><fieldset><button>" * 30_000)
_page("html-deep-svg", "svg and math in each other", lambda: "<svg><foreignObject><math><annotation-xml>" * 20_000)
_page("html-deep-templates", "templates in templates", lambda: "<template><select>" * 50_000)
_page("html-end-tags", "500,000 end tags of nothing", lambda: "<p>" + "</b></i></p>" * 80_000)
_page("html-adoption", "misnested formatting 60,000 times", lambda: "<b><p></b><i></p>" * 60_000)
_page("html-lt", "a million times <", lambda: "<" * 1_000_000)
_page("html-comment", "a comment that never ends", lambda: "<!--" + "<!-- --!" * 120_000)
_page("html-comments", "300,000 unclosed comments", lambda: "<!-" * 300_000)
_page("html-script", "a script that never ends, with escapes", lambda: "<script><!--<script>" * 50_000)
_page("html-scripts", "100,000 empty scripts", lambda: "<script></script>" * 60_000)
_page("html-cdata", "CDATA that never ends", lambda: "<svg><![CDATA[" * 70_000)
_page("html-entities", "500,000 entities that almost are", lambda: "&notit;&#x110000;&amp" * 45_000)
_page("html-number-entity", "a character number of a million digits", lambda: "&#" + "9" * 1_000_000 + ";")
_page("html-quotes", "an attribute with an unclosed quote", lambda: '<a href="' * 110_000)
_page("html-iframes", "130,000 unclosed <iframe after <br/>", lambda: "<br/>" + "<iframe " * 130_000)
_page("html-title", "a title of a megabyte", lambda: "<title>" + "word " * 209_000)
_page("html-word", "one word of a megabyte", lambda: "<p>" + "w" * 1_000_000)
_page("html-blanks", "a megabyte of blanks between two words", lambda: "<p>a" + " \n\t\u00a0" * 200_000 + "b")
_page(
    "html-combining",
    "a letter with 400,000 accents",
    lambda: "<title>a" + "\u0301" * 20_000 + "</title>a" + "\u0301" * 400_000,
)
_page("html-emoji", "300,000 emojis joined to one", lambda: "<p>" + "\U0001f468\u200d" * 140_000)
_page("html-nul", "a megabyte of NUL", lambda: b"<p>a" + bytes(1_000_000) + b"b")
_page("html-controls", "every control character", lambda: b"<p>" + bytes(range(32)) * 30_000)
_page("html-surrogates", "halves of surrogate pairs", lambda: b"<p>" + b"\xed\xa0\x80" * 300_000)
_page("html-meta", "50,000 <meta>", lambda: "<meta name=keywords content='a,b'>" * 29_000)
_page("html-meta-long", "keywords of a megabyte", lambda: "<meta name=keywords content='" + "a," * 500_000 + "'><p>x")
_page(
    "html-base",
    "10,000 <base>, one of 60 dots",
    lambda: "<base href='a" + "." * 60 + "!:x'>" + "<base href=/x>" * 10_000 + "<a href=y>y</a>",
)
_page(
    "html-base-long",
    "a base of 100,000 characters and 10,000 links",
    lambda: "<base href='/" + "b/" * 50_000 + "'>" + "<a href=x>y</a>" * 10_000,
)
_page(
    "html-base-near",
    "a base of 8,000 characters and 50,000 links",
    lambda: "<base href='/" + "b/" * 4000 + "'>" + "".join(f"<a href={n}>" for n in range(50_000)),
)
_page(
    "html-refresh",
    "a refresh of 500,000 semicolons",
    lambda: "<meta http-equiv=refresh content='0" + ";" * 500_000 + "url=x'>",
    parsed="success|failed|redirect",
)
_page(
    "html-refresh-itself",
    "a refresh to the page itself",
    lambda: "<meta http-equiv=refresh content='0;url=/html-refresh-itself'><p>x",
    parsed="success|redirect",
)
_page("html-links", "60,000 links", lambda: "".join(f"<a href=/{n:x}>x" for n in range(60_000)))
_page("html-link-dots", "30 links of 60 dots", lambda: "".join(f"<a href='a{'.' * 60}!:{n}'>x</a>" for n in range(30)))
_page("html-link-long", "a link of a megabyte", lambda: "<a href='/" + "x" * 1_000_000 + "'>x</a>")
_page(
    "html-link-sids",
    "400 links of 1,000 session ids",
    lambda: "".join(f"<a href='/{n}?{'sid=a&' * 1000}'>x</a>" for n in range(160)),
)
_page(
    "html-link-segments",
    "300 links of 2,000 times ../",
    lambda: "".join(f"<a href='/{n}/{'a/../' * 1000}'>x</a>" for n in range(190)),
)
_page(
    "html-link-escapes",
    "1,000 links of nothing but escapes",
    lambda: "".join(f"<a href='/{n}/{'%2525' * 180}'>x</a>" for n in range(1000)),
)
_page(
    "html-link-hosts",
    "30,000 links to 30,000 hosts",
    lambda: "".join(f"<a href=http://h{n}.test/>" for n in range(30_000)),
)
_page(
    "html-link-schemes",
    "links of every scheme",
    lambda: (
        "".join(
            f"<a href='{scheme}'>x</a>"
            for scheme in (
                "javascript:x()",
                "data:text/html,x",
                "file:///etc/passwd",
                "mailto:a@b",
                "jar:http://a!/b",
                "view-source:x",
                "http:",
                "http:/",
                "http://",
                "//",
                "///",
                "?",
                "#",
                ":",
                "http://[",
                "http://[::1",
                "http://a:b@c:d/e",
                "\\\\a\\b",
                "http://%",
                "http://a%00b/",
                "ht\ntp://a/",
                " \x01http://a/ ",
                "blob:http://a/1",
                "about:blank",
                "urn:a:b",
            )
        )
        + "<a href='"
        + "a:" * 5000
        + "'>"
    ),
)
_page("html-anchors", "one link with a text of a megabyte", lambda: "<a href=/x>" + "word " * 200_000 + "</a>")
_page(
    "html-same-link",
    "one link 50,000 times, with a text of its own each",
    lambda: "".join(f"<a href=/x>t{n}</a>" for n in range(50_000)),
)
_page("html-nested-anchors", "links in links", lambda: "<a href=/x><div>" * 60_000)
_page("html-srcset", "a srcset of 100,000 images", lambda: "<img srcset='" + "a.png 1x, " * 100_000 + "'>")
_page("html-frames", "60,000 frames", lambda: "<frameset>" + "<frame src=/x>" * 60_000)
_page(
    "html-licenses",
    "creative commons in 20,000 forms",
    lambda: (
        "<rdf:RDF " * 40_000
        + "<!-- <rdf:RDF" * 20_000
        + "<a rel=license href=http://creativecommons.org/licenses/"
        + "by/" * 50_000
        + ">"
    ),
)
_page(
    "html-microformats",
    "rel=tag in 30,000 links",
    lambda: "".join(f"<a rel=tag href=/t/{n}>x</a>" for n in range(30_000)),
)
_page("html-words", "a page of 150,000 different words", lambda: "<p>" + " ".join(f"w{n:x}" for n in range(150_000)))
_page("html-cjk", "a megabyte of Chinese without a space", lambda: "<p>" + "\u4e2d\u6587\u8bcd" * 110_000)
_page("html-thai", "a megabyte of Thai without a space", lambda: "<p>" + "\u0e01\u0e32\u0e23" * 110_000)

_page("charset-lie", "UTF-8 that is called UTF-16", lambda: "<p>" + "words " * 150_000, "text/html; charset=utf-16")
_page("charset-utf7", "UTF-7", lambda: "+ADw-script+AD4-" * 50_000, "text/html; charset=utf-7")
_page(
    "charset-unknown",
    "an unknown charset of 5,000 letters",
    lambda: "<p>x",
    "text/html; charset=" + "x" * 5000,
)
_page("charset-codec", "a charset that is a codec of Python", lambda: b"<p>x" * 1000, "text/html; charset=zlib_codec")
_page("charset-idna", "a charset with a quadratic decoder", lambda: b"a." * 400_000, "text/html; charset=idna")
_page("charset-punycode", "the same", lambda: b"a" * 500_000 + b"-" + b"a" * 400_000, "text/html; charset=punycode")
_page("charset-iso-2022", "escapes without end", lambda: b"\x1b$B\x1b(B" * 150_000, "text/html; charset=iso-2022-jp")
_page("charset-hz", "~{ without end", lambda: b"~{" * 400_000, "text/html; charset=hz-gb-2312")
_page(
    "charset-metas",
    "20,000 <meta charset> of unknown names",
    lambda: "".join(f"<meta charset=x{n}>" for n in range(40_000)),
)
_page(
    "charset-prescan",
    "a megabyte in which the charset is looked for",
    lambda: "<meta " + "http-equiv=content-type " * 40_000,
)
_page(
    "charset-mixed",
    "UTF-8, UTF-16 and windows-1251 by turns",
    lambda: ("\u0436" * 99).encode("cp1251") + ("\u0436" * 99).encode("utf-16") + ("\u0436" * 99).encode() * 1000,
)

_page("type-lie", "HTML that is called a PDF", lambda: "<html><p>x", "application/pdf")
_page("type-lie-html", "a ZIP that is called HTML", lambda: b"PK\x03\x04" + bytes(900_000))
_page("type-none", "no content type at all, and bytes of nothing", lambda: bytes(range(256)) * 3000, "")
_page("type-odd", "a content type that is no type", lambda: "<p>x", "../../../../etc/passwd")
_page("binary", "a megabyte of random bytes as HTML", lambda: bytes(n * n * 7 % 251 for n in range(1_000_000)))
_page("text-line", "a text of one line", lambda: "x " * 500_000, "text/plain")

_LOLS = (
    '<!DOCTYPE x [<!ENTITY e0 "ha">' + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12)) + "]>"
)
_BLOWUP = "<!DOCTYPE x [<!ENTITY e '" + "a" * 100_000 + "'>]>"
_FILE = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd"><!ENTITY % p SYSTEM "http://127.0.0.1:1/x"> %p;]>'


def _feed(inside: str, before: str = "") -> str:
    return f"<?xml version='1.0'?>{before}<rss version='2.0'><channel><title>t</title>{inside}</channel></rss>"


for _name, _what, _before, _use in (
    ("entities", "10^11 entities in each other", _LOLS, "&e11;"),
    ("blowup", "one long entity 10,000 times", _BLOWUP, "&e;" * 10_000),
    ("files", "an entity that is a file of the crawler's machine", _FILE, "&e;"),
):
    _item = f"<item><title>{_use}</title><link>http://127.0.0.1:1/x</link></item>"
    _page(f"feed-{_name}", f"a feed of {_what}", lambda a=_item, b=_before: _feed(a, b), "application/rss+xml")  # type: ignore[misc]
    _page(f"xml-{_name}", f"XML of {_what}", lambda a=_use, b=_before: f"{b}<x>{a}</x>", "application/xml")  # type: ignore[misc]
    _page(
        f"xhtml-{_name}",
        f"XHTML of {_what}",
        lambda a=_use, b=_before: (
            f"<?xml version='1.0'?>{b}<html xmlns='http://www.w3.org/1999/xhtml'><p>{a}</p></html>"
        ),  # type: ignore[misc]
        "application/xhtml+xml",
    )
_page(
    "feed-items",
    "a feed of 30,000 items",
    lambda: _feed("<item><link>/x</link></item>" * 34_000),
    "application/rss+xml",
)
_page("feed-deep", "a feed 200,000 elements deep", lambda: _feed("<a>" * 200_000), "application/rss+xml")
_page(
    "feed-base64",
    "a feed of content in base64 of markup",
    lambda: _feed("<item><content mode='base64'>" + "PHA+" * 200_000 + "</content></item>"),
    "application/rss+xml",
)
_page(
    "feed-dates",
    "a feed of 10,000 dates of 60 digits",
    lambda: _feed(f"<item><link>/x</link><pubDate>{'9' * 60}</pubDate></item>" * 9000),
    "application/rss+xml",
)
_page(
    "xml-attributes",
    "XML of 100,000 attributes",
    lambda: "<x " + "".join(f"a{n}='' " for n in range(90_000)) + "/>",
    "application/xml",
)
_page(
    "xml-namespaces",
    "XML of 40,000 namespaces",
    lambda: "<x " + "".join(f"xmlns:a{n}='u{n}' " for n in range(45_000)) + "/>",
    "application/xml",
)
_page(
    "svg-uses",
    "SVG that uses itself",
    lambda: "<svg xmlns='http://www.w3.org/2000/svg'><use href='#a' id='a'/></svg>",
    "image/svg+xml",
)
_page(
    "script-strings",
    "a script of 60,000 strings that look like paths",
    lambda: "x='/a/b.html';" * 60_000,
    "application/javascript",
)
_page("script-escapes", "a script of a million backslashes", lambda: "x='" + "\\" * 999_999, "application/javascript")
_page("script-quotes", "a script of quotes", lambda: "'\"`" * 330_000, "application/javascript")
_page("json-deep", "JSON 500,000 deep", lambda: "[" * 500_000, "application/json")
