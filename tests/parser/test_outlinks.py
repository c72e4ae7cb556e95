import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.parser.html.dom import parse_tree
from nutch2py.parser.html.outlinks import OutlinkCollector

PAGE = """<head><link rel=next href=n.html><script src=s.js></script></head><body>
<a href=a.html>A</a> <area href=ar.html> <form action=f.cgi>go</form> <form action=p.cgi method=POST>go</form>
<iframe src=i.html></iframe> <img src=g.png> <a href=empty.html></a> <a href=c.html><!-- c --></a>
<a href=nf.html rel="noopener NoFollow">nf</a> <a name=x>none</a> <a href="javascript:x()">js</a> <a href="">self</a>"""


def collect(html: str, **properties: str) -> list[tuple[str, str]]:
    conf = Configuration({name.replace("_", "."): value for name, value in properties.items()})
    return [
        (link.url, link.anchor) for link in OutlinkCollector(conf).collect(parse_tree(html), "http://h/d/p.html")[0]
    ]


def test_links_of_every_element_are_in_document_order() -> None:
    assert collect(PAGE) == [
        ("http://h/d/n.html", ""),
        ("http://h/d/s.js", ""),
        ("http://h/d/a.html", "A"),
        ("http://h/d/ar.html", ""),
        ("http://h/d/i.html", ""),
        ("http://h/d/g.png", ""),
        ("http://h/d/c.html", ""),
        ("http://h/d/p.html", "self"),
    ]


def test_get_forms_are_links_when_configured() -> None:
    conf = Configuration({"parser.html.form.use_action": "true"})
    links, _ = OutlinkCollector(conf).collect(parse_tree(PAGE), "http://h/d/p.html")
    assert [link for link in links if "cgi" in link.url] == [("http://h/d/f.cgi", "go")]


def test_ignored_tags_give_no_links() -> None:
    conf = Configuration({"parser.html.outlinks.ignore_tags": "img, script,link,a,area"})
    links, _ = OutlinkCollector(conf).collect(parse_tree(PAGE), "http://h/d/p.html")
    assert [link.url for link in links] == ["http://h/d/i.html"]


def test_frameset_frames_are_links() -> None:
    html = "<frameset><frame src=1.html><frame src=2.html></frameset>"
    assert collect(html) == [("http://h/d/1.html", ""), ("http://h/d/2.html", "")]


def test_script_in_anchor_is_not_its_text() -> None:
    assert collect("<a href=x>a<script>var b</script> c</a>") == [("http://h/d/x", "a c")]


def test_svg_links_are_extracted() -> None:
    drawn = "<svg><a xlink:href=a>A</a><a XLINK:HREF=b href=c>B</a><image xlink:href=i></svg><a xlink:href=no>N</a>"
    assert collect(drawn) == [("http://h/d/a", "A"), ("http://h/d/c", "B")]
    more = {"parser.html.outlinks.more": "image/href"}
    assert [url for url, _ in collect(drawn, **more)] == [f"http://h/d/{each}" for each in "aci"]


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("x\n  y", "http://h/d/x  y"), ("a&#9;b", "http://h/d/ab"), ("\\x\\y?\\", "http://h/x/y?\\"),
        ("http:\\\\i\\x", "http://i/x"), ("..\\x", "http://h/x"),
    ],
)  # fmt: skip
def test_links_are_parsed_like_browsers(written: str, url: str) -> None:
    assert collect(f'<a href="{written}">t</a>') == [(url, "t")]


def test_additional_attributes_are_links_when_configured() -> None:
    html = "<a href=a>a</a><img src=s data-src=d srcset=',x.png 1x, y,z.png 2x, '><source srcset=q>"
    more = {"parser.html.outlinks.more": "img/srcset, img/data-src,source/srcset"}
    assert [url for url, _ in collect(html)] == ["http://h/d/a", "http://h/d/s"]
    expected = ["a", "s", "x.png", "y,z.png", "d", "q"]
    assert [url for url, _ in collect(html, **more)] == [f"http://h/d/{each}" for each in expected]
    with pytest.raises(ConfigurationError, match=r"parser\.html\.outlinks\.more"):
        collect(html, **{"parser.html.outlinks.more": "img[srcset]"})
