"""The search page: translations, theme, suggestions, hints, the embedded box, and cached pages with highlights."""

from __future__ import annotations

import json
import re
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import pytest

from nutch2py.errors import ConfigurationError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.query.query_hints import find_query_hints
from nutch2py.server import translations
from nutch2py.server.cached_page import sanitize_html
from nutch2py.server.theme import Theme, contrast_ratio, ensure_contrast
from nutch2py.server.translations import LANGUAGES, Translations
from nutch2py.url.keys import reverse_url
from tests.indexer.pages import doc
from tests.server.conftest import running
from tests.server.test_serve import ask, get


def test_translations_are_complete_with_same_placeholders():
    for name, texts in translations.MESSAGES.items():
        assert len(texts) == len(LANGUAGES), name
        assert len({text.count("{}") for text in texts}) == 1, name
        assert all(texts), name


@pytest.mark.parametrize(
    ("accepted", "shown"), [("de-CH, en;q=0.5", "34 Dokumente"), ("zh-CN", "34 个文档"), ("fr", "34 documents")]
)
def test_page_language_follows_browser(server, accepted, shown):
    response, body = get(server, "/", **{"Accept-Language": accepted})
    assert shown in body
    assert response.headers["Vary"] == "Accept-Language, Authorization"


def test_theme_properties_are_applied(server, tmp_path):
    (tmp_path / "logo.png").write_bytes(b"PNG")
    (tmp_path / "home.html").write_text("<p>ours: {{ document_count }} of {{ theme.name }}</p>")
    for name, value in (("name", "Sea & Sand"), ("logo", str(tmp_path / "logo.png")), ("colour", "#ffcc00"),
                        ("language", "de"), ("templates", str(tmp_path))):  # fmt: skip
        server.conf.set(f"search.page.{name}", value)
    with running(server.conf) as made:
        assert get(made, "/")[1] == "<p>ours: 34 of Sea &amp; Sand</p>"
        _, body = ask(made, q="needle")
        assert '<html lang="de">' in body
        assert '<img class="logo" src="/logo" alt="Sea &amp; Sand">' in body
        response, _ = get(made, "/logo")
        assert (response.status, response.headers["Content-Type"]) == (200, "image/png")
        assert "--button:#ffcc00;--on-button:#10141b" in get(made, "/style.css")[1]
    assert get(server, "/logo")[0].status == 404


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("<p>\n{% if results", "results.html, line 2: unexpected end of template"),
        ("<p>\n\n{{ nothing.at_all }}", "results.html, line 3: 'nothing' is undefined"),
        ("{% extends 'gone.html' %}", "results.html, line 1: template gone.html not found"),
        ("{{ 1 / 0 }}", "results.html, line 1: division by zero"),
    ],
)
def test_failing_template_is_named_and_built_in_page_shown(server, tmp_path, capsys, text, where):
    (tmp_path / "results.html").write_text(text)
    (tmp_path / "home.html").write_text("<p>ours")
    server.conf.set("search.page.templates", str(tmp_path))
    with running(server.conf) as made:
        at_start = capsys.readouterr().err
        assert where in at_start or "{{" in text or "extends" in text
        for _ in range(2):
            response, body = ask(made, q="needle")
            assert response.status == 200
            assert "Plain" in body
        assert get(made, "/")[1] == "<p>ours"
        said = at_start + capsys.readouterr().err
    assert said.count(where) == 1, said
    assert "the built-in page is shown instead" in said


def test_search_without_hits_shows_ways_out(server):
    _, body = ask(server, q="hay plumbus needle site:c.org -day")
    part = body.partition("Single words of the query:")[2].partition("</ul>")[0]
    assert '<a href="/?q=hay">hay</a> <span>30 documents</span>' in part
    assert "<li>plumbus <span>0 documents</span>" in part
    assert '<a href="/?q=needle">needle</a> <span>4 documents</span>' in part
    _, body = ask(server, q="needle", lang="zh", host="b.org")
    part = body.partition("With fewer filters:")[2].partition("</ul>")[0]
    assert re.findall(r">([^<]*)</a> <span>([^<]*)<", part) == [
        ("without site b.org", "1 document"),
        ("without language Chinese", "2 documents"),
        ("without a filter", "4 documents"),
    ]
    assert "Single words" not in body
    assert "fewer filters" not in ask(server, q="plumbus", lang="zh")[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("page.colour", "red"),
        ("page.language", "fr"),
        ("page.templates", "/no/such"),
        ("page.logo", "no.svg"),
        ("cors.origins", "a.org"),
        ("cors.origins", "null"),
        ("cors.origins", "https://a.org/path"),
        ("cors.origins", "https://a.org:x"),
        ("cors.origins", "https://a.org:99999"),
        ("cors.origins", "https://a:b:c"),
        ("cors.origins", "https://[::1"),
        ("cors.origins", "https://*.a.org"),
    ],
)
def test_invalid_theme_is_rejected(conf, name, value):
    conf.set(f"search.{name}", value)
    with pytest.raises(ConfigurationError, match=rf"search\.{name}"):
        Theme.from_conf(conf)


@pytest.mark.parametrize("colour", ["#1546a8", "#ffcc00", "#000000", "#ffffff", "#808080", "#ff0000"])
def test_links_of_any_colour_are_readable(colour):
    for paper in ("#ffffff", "#14181f"):
        assert contrast_ratio(ensure_contrast(colour, (paper,)), paper) >= 4.5


def suggested(server, typed, **headers):
    response, body = get(server, f"/suggest?{urlencode({'q': typed})}", **headers)
    assert response.status == 200
    return response, json.loads(body)


def test_cors_property_allows_other_origins(server):
    response, _ = suggested(server, "nee", Origin="https://www.example.org")
    assert response.headers["Access-Control-Allow-Origin"] is None
    assert get(server, "/box.js")[0].status == 404
    server.conf.set("search.cors.origins", "https://www.example.org/")
    with running(server.conf) as made:
        response, _ = suggested(made, "nee", Origin="https://www.example.org")
        assert response.headers["Access-Control-Allow-Origin"] == "https://www.example.org"
        assert suggested(made, "nee", Origin="https://evil.example")[0].headers["Access-Control-Allow-Origin"] is None
        response, _ = get(made, "/box.js")
        assert (response.status, response.headers["Cross-Origin-Resource-Policy"]) == (200, "cross-origin")
        response, _ = get(made, "/search.json?q=needle", Origin="https://www.example.org")
        assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_opensearch_description_is_linked(server):
    assert 'href="/opensearch.xml"' in get(server, "/")[1]
    root = ElementTree.fromstring(get(server, "/opensearch.xml")[1])
    urls = {each.get("type"): each.get("template") for each in root.iter("{http://a9.com/-/spec/opensearch/1.1/}Url")}
    assert urls["text/html"] == f"{server.url}?q={{searchTerms}}"
    path = urls["application/x-suggestions+json"].removeprefix(server.url.rstrip("/")).replace("{searchTerms}", "nee")
    assert json.loads(get(server, path)[1])[0] == "nee"


@pytest.mark.parametrize("name", ["", 'Sea & Sand <of the> "Very" Long Name ' * 40, "搜索" * 20])
def test_opensearch_description_is_valid(server, name):
    """The elements conform to the specification (1.1, draft 6), and the templates can be filled in."""
    server.conf.set("search.page.name", name)
    server.conf.set("search.page.address", "https://search.example.org/a&b")
    with running(server.conf) as made:
        response, body = get(made, "/opensearch.xml")
    assert response.headers["Content-Type"] == "application/opensearchdescription+xml"
    root = ElementTree.fromstring(body)
    space = "{http://a9.com/-/spec/opensearch/1.1/}"
    assert root.tag == f"{space}OpenSearchDescription"
    texts = {each.tag.removeprefix(space): each.text or "" for each in root if each.tag != f"{space}Url"}
    longest = {"ShortName": 16, "LongName": 48, "Description": 1024}
    for element, most in longest.items():
        assert 0 < len(texts[element]) <= most
    assert texts["InputEncoding"] == texts["OutputEncoding"] == "UTF-8"
    assert texts["Image"] == "https://search.example.org/a&b/icon.svg"
    templates = [each.get("template", "") for each in root.iter(f"{space}Url")]
    assert len(templates) == 2
    for template in templates:
        assert template.startswith("https://search.example.org/a&b/")
        assert re.findall(r"{[^}]*}", template) == ["{searchTerms}"]


def test_malformed_query_is_answered_with_hint(server):
    _, body = ask(server, q='needle OR "')
    assert "Unbalanced quotation mark." in body
    assert "Searched for needle instead." in body
    assert 'class="wrong"' not in ask(server, q='needle -"a b" title:x OR (b c)')[1]


@pytest.mark.parametrize(
    ("query", "wrong", "instead"),
    [
        ("a AND", ["operator"], "a"),
        ("OR a", ["operator"], "a"),
        ("(a b", ["parenthesis"], "a b"),
        ("a) b(", ["parenthesis"], "a b"),
        ('"a b', ["quote"], "a b"),
        ("a - b", ["not"], "a b"),
        ("a NOT", ["not"], "a"),
        ("title: x", ["field"], "title: x"),
        ("!!", ["empty"], ""),
        ("C++ e-mail a:b", [], ""),
        ('-a +b (c OR "d e") site:x.org', [], ""),
    ],
)
def test_query_hints_describe_problem(query, wrong, instead):
    found, read = find_query_hints(query)
    assert ([hint.problem for hint in found], read) == (wrong, instead)


def test_single_value_facets_are_hidden(server):
    assert 'data-facet="lang"' in ask(server, q="needle")[1]
    body = ask(server, q="hay")[1]
    assert re.findall('data-facet="(.*?)"', body) == ["path"]
    body = ask(server, q="plain")[1]
    assert "data-facet" not in body
    assert "<aside" not in body


def test_folder_and_date_facets_are_formatted(server):
    body = ask(server, q="hay", path="hay.org/a/", date="2026")[1]
    assert re.findall(r">(/a/[0-9]/)</a><span>(\d+)<", body) == [("/a/0/", "5"), ("/a/1/", "5"), ("/a/2/", "5")]
    assert '<b class="chosen">/a/</b>' in body
    assert '<a href="/?q=hay&amp;path=hay.org%2Fa%2F&amp;date=2026-01">2026-01</a>' in body
    assert (Translations("zh").facet_label("date", "2026-01"), Translations("zh").facet_label("date", "2026")) == (
        "2026 年 01 月",
        "2026 年",
    )


def test_newest_first_sorting_works(server):
    assert '<a href="/?q=needle&amp;sort=date">newest first</a>' in ask(server, q="needle")[1]
    _, body = ask(server, q="needle", sort="date", lang="en")
    assert '<a href="/?q=needle&amp;lang=en">best first</a>' in body
    assert "3 documents" in body
    with_dates = [("http://b.org/old", "2001"), ("http://b.org/new", "2031"), ("http://b.org/mid", "2011")]
    writer = EmbeddedIndexWriter(server.conf)
    writer.open(server.conf, {})
    for url, year in with_dates:
        fields = {"host": "b.org", "title": "Dated", "content": "dated", "date": f"{year}-05-01T00:00:00Z"}
        writer.write(doc(reverse_url(url), url=url, **fields))
    writer.close()
    with running(server.conf) as made:
        _, body = ask(made, q="dated", sort="date")
    assert re.findall(r"<span>(\d{4})-05-01", body) == ["2031", "2011", "2001"]


def test_typing_request_returns_only_hits(server):
    body = ask(server, q="needle", partial="1")[1]
    assert "4 documents" in body
    assert "data-facet" not in body


def test_cached_page_shows_date_and_highlights(server):
    key = quote(reverse_url("http://b.org/plain"))
    frame = get(server, f"/cached?id={key}&q=needle")[1]
    assert "This is a copy of" in frame
    assert "Highlighted: needle." in frame
    _, view = get(server, f"/cached/view?id={key}&q=needle")
    assert re.search("<mark style=[^>]+>needle</mark> &lt;b&gt;plain&lt;/b&gt;", view)


def test_cached_page_highlights_only_text():
    page = (
        "<title>needle</title><style>.needle{}</style><body class=needle><p>A needle &lt;script&gt;, needles "
        "<script>needle</script><textarea>needle</textarea><iframe src=//needle></iframe><a title='needle'>x</a>"
    )
    marked = sanitize_html(page, "needle <script>")
    assert marked.count("<mark") == 3
    assert "&lt;<mark" in marked  # script, as a word of the text
    assert "<script" not in marked
    assert "<iframe" not in marked
    assert "<style>.needle{}</style>" in marked
    assert "<mark" not in sanitize_html(page, "-needle")


def test_cached_page_requests_no_other_site():
    page = (
        "<link rel=stylesheet href=//x><style>@import '//x'; p { background: url(//x) ; color: red }</style><body "
        "background=//x><p style='background:url( \"//x\" );color:red'><img src=//x srcset='//x 2x' alt=a><video "
        "poster=//x src=//x></video><svg><image href=//x /><use xlink:href=//x /></svg><a href=//x ping=//x>there</a>"
        "<img src='data:image/png;base64,AAAA'><script src=//x></script><object data=//x></object><base href=//x>"
    )
    shown = sanitize_html(page)
    assert shown.count("//x") == 1  # the link, which does not work there
    assert '<a href="//x">there</a>' in shown
    assert shown.count("color: red") + shown.count("color:red") == 2
    assert "data:image/png" in shown


def test_explanation_is_in_page_language(server):
    key = reverse_url("http://b.org/plain")
    path = f"/explain?{urlencode({'q': 'needle', 'id': key})}"
    assert "Gefunden: “needle” in dem Titel" in get(server, path, **{"Accept-Language": "de"})[1]
    assert Translations("zh")("in_title") in get(server, path, **{"Accept-Language": "zh"})[1]
