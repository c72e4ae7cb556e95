"""The indexing filters other than basic, anchor and more."""

import pytest

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError
from nutch2py.indexer.filters.index_creativecommons import CCIndexingFilter
from nutch2py.indexer.filters.index_feed import FeedIndexingFilter
from nutch2py.indexer.filters.index_headings import HeadingsIndexingFilter
from nutch2py.indexer.filters.index_html import HtmlIndexingFilter
from nutch2py.indexer.filters.index_links import LinksIndexingFilter
from nutch2py.indexer.filters.index_metadata import MetadataIndexer
from nutch2py.indexer.filters.index_mimetype import MimeTypeIndexingFilter
from nutch2py.indexer.filters.index_pagerank import MEAN_RANK_ROW, PageRankIndexingFilter
from nutch2py.indexer.filters.index_replace import ReplaceIndexer
from nutch2py.indexer.filters.index_static import StaticFieldIndexer
from nutch2py.indexer.filters.index_subcollection import Subcollection, SubcollectionIndexingFilter, split_lines
from nutch2py.indexer.filters.index_tld import TLDIndexingFilter
from nutch2py.indexer.filters.index_urlmeta import URLMetaIndexingFilter
from nutch2py.indexer.indexing_filters import IndexingFilters
from nutch2py.parser.row_parser import RowParser
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import DerivedRow
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.indexer.pages import page

URL = "http://www.example.com/"


def settings(properties=(), *folders):
    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in dict(properties).items()}
    return Configuration(given, [*folders, data_dir("conf")])


def filtered(plugin, conf=(), url=URL, document=None, folders=(), **values):
    return plugin(settings(conf, *folders)).filter(document or NutchDocument(), url, page(**values))


def test_links_static_and_mimetype_cases(cases, tmp_path):
    ours = [c for c in cases("indexing_filters") if c["args"]["filter"] in ("index-links", "index-static")]
    types = [c for c in cases("indexing_filters") if c["args"]["filter"] == "mimetype-filter"]
    for case in ours:
        given, conf, expected = case["input"], case["args"]["conf"], case["expect"]
        links = {name: dict.fromkeys(given.get(name, []), "") for name in ("outlinks", "inlinks")}
        plugin = LinksIndexingFilter if case["args"]["filter"] == "index-links" else StaticFieldIndexer
        made = filtered(plugin, conf, given.get("url", URL), **links).fields
        for name, value in expected.items():
            if name == "fields":
                assert made == value
            elif name.endswith("_count"):
                assert len(made[name.removesuffix("_count")]) == value
            else:
                assert made[name] == value
    for case in types:
        (tmp_path / case["args"]["rules_file"]).write_text("\n".join(case["args"]["rules"]))
        conf = {"mimetype.filter.file": case["args"]["rules_file"]}
        made = filtered(MimeTypeIndexingFilter, conf, folders=[tmp_path], content_type=case["input"]["Content-Type"])
        assert (made is not None) is case["expect"]["indexed"]
    print(f"indexing_filters (links, static, mimetype): {len(ours) + len(types)}/{len(ours) + len(types)}")
    assert len(ours) + len(types) == 17


def test_replace_cases(cases):
    found = cases("index_replace")
    for case in found:
        conf = {**case["args"]["conf"], "index.replace.regexp": case["args"]["index.replace.regexp"]}
        conf |= {"plugin.includes": "parse-(html|metatags)|index-(basic|metadata|replace)", "http.agent.name": "t",
                 "indexingfilter.order": "index-basic index-metadata index-replace"}  # fmt: skip
        url = "http://localhost/testIndexReplace.html"
        row = page(content=case["input"].encode(), content_type="text/html", base_url=url)
        configuration = settings(conf)
        assert RowParser(configuration).parse_row(reverse_url(url), row).label == "success"
        document = IndexingFilters(configuration).filter(NutchDocument(), url, row)
        for name, expected in case["expect"].items():
            assert document.values(name) == [expected], case["args"]
    print(f"index_replace: {len(found)}/{len(found)}")
    assert len(found) == 9


# Suffixes of Nutch 2.x that the public suffix list lacks (or has no longer): the label that remains is the suffix.
NOT_PUBLIC = {
    "http://www.c.nic.uk/": "uk",
    "http://www.d.govt.uk/": "uk",
    "http://www.e.orgn.uk/": "uk",
    "http://i.nom.ad": "ad",
    "http://n.한글.kr": "kr",
    "http://s.組織.tw": "tw",
}


def test_tld_cases(cases):
    found = cases("tld_indexing")
    passed = 0
    for case in found:
        made = filtered(TLDIndexingFilter, url=case["input"]).values("tld")
        assert made == [NOT_PUBLIC.get(case["input"], case["expect"])], case["input"]
        passed += made == [case["expect"]]
    print(f"tld_indexing: {passed}/{len(found)}, excepted {len(NOT_PUBLIC)}")
    assert passed == len(found) - len(NOT_PUBLIC)


def test_subcollection_cases(cases):
    found = cases("subcollection")
    for case in found:
        args = case["args"]
        collection = Subcollection(
            args.get("name", "x"), split_lines(args["whitelist"]), split_lines(args["blacklist"])
        )
        assert collection.filter(case["input"]) == case["expect"]
    print(f"subcollection: {len(found)}/{len(found)}")
    assert len(found) == 6


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://localhost/", "http://[::1]/"])
def test_tld_of_ip_address_is_missing(url):
    assert filtered(TLDIndexingFilter, url=url).fields == {}


COLLECTIONS = """<subcollections>
<subcollection><name>all</name><id>all</id><whitelist>http</whitelist><blacklist/></subcollection>
<subcollection><name>manuals</name><id>m</id><key>part</key><whitelist>
  EXAMPLE.com/manual/
</whitelist><blacklist>/old/</blacklist></subcollection>
</subcollections>"""


def test_subcollections_of_file_and_page_are_set(tmp_path):
    (tmp_path / "subcollections.xml").write_text(COLLECTIONS)
    url, fold = "http://example.com/Manual/1", {"subcollection.case.insensitive": "true"}
    plugin = SubcollectionIndexingFilter
    assert filtered(plugin, {}, url, folders=[tmp_path]).fields == {"subcollection": ["all"]}
    assert filtered(plugin, fold, url, folders=[tmp_path]).fields == {"subcollection": ["all"], "part": ["manuals"]}
    said = filtered(plugin, fold, url, folders=[tmp_path], metadata={"subcollection": b" mine "})
    assert said.fields == {"subcollection": ["mine"]}
    assert filtered(plugin, {}, url).fields == {}


def test_invalid_subcollections_xml_is_rejected(tmp_path):
    (tmp_path / "subcollections.xml").write_text("<subcollections>")
    with pytest.raises(ConfigurationError, match=r"subcollections\.xml"):
        filtered(SubcollectionIndexingFilter, folders=[tmp_path])


def test_metadata_accepts_names_of_both_nutch_lines():
    row = {
        "metadata": {"meta_description": b"D", "meta_keywords": b"a\tb", "seed": b" s ", "tags": b"x;y; ;z"},
        "headers": {"server": "nginx"},
    }
    conf = {"index.metadata": "Description,keywords,none", "index.db.md": "seed,tags", "index.content.md": "Server",
            "index.parse.md": "metatag.description", "index.metadata.separator": ";",
            "index.metadata.multivalued.fields": "tags"}  # fmt: skip
    assert filtered(MetadataIndexer, conf, **row).fields == {
        "meta_Description": ["D"],
        "meta_keywords": ["a", "b"],
        "seed": ["s"],
        "tags": ["x", "y", "z"],
        "metatag.description": ["D"],
        "Server": ["nginx"],
    }


def test_urlmeta_copies_seed_metadata():
    row = {"metadata": {"region": b"north", "other": b"x"}}
    assert filtered(URLMetaIndexingFilter, {"urlmeta.tags": "region,none"}, **row).fields == {"region": ["north"]}


def test_replace_applies_by_host_then_url_in_order():
    document = NutchDocument()
    for name, value in (("host", "www.example.com"), ("url", URL), ("title", "One | Site"), ("cat", "a"), ("cat", "b")):
        document.add(name, value)
    rules = r"""urlmatch=com/$
        title=/^One/Two/
        hostmatch=.*\.com
        title=/\s\|.*$//
        cat:kind=/A/x$0/2
        cat=/c"""
    made = filtered(ReplaceIndexer, {"index.replace.regexp": rules}, document=document)
    assert (made.values("title"), made.values("cat"), made.values("kind")) == (["Two"], ["a", "b"], ["xa", "b"])


def test_replace_warns_of_invalid_lines(capsys):
    rules = "title=/(/x/\ntitle=/a/b/z\ntitle=/abcd\nhostmatch=(\ntitle=/a/b/\n"
    ReplaceIndexer(settings({"index.replace.regexp": rules}))
    assert capsys.readouterr().err.count("skipping the line") == 4


def test_html_is_decoded_and_dropped_when_noarchive():
    content = "<p>中文".encode("gb18030")
    row = {"content": content, "content_type": "text/html"}
    made = filtered(HtmlIndexingFilter, **row, metadata={"CharEncodingForConversion": b"gb18030"})
    assert made.fields == {"rawcontent": ["<p>中文"]}
    forbidden = {"CharEncodingForConversion": b"gb18030", "caching.forbidden": b"content"}
    assert filtered(HtmlIndexingFilter, **row, metadata=forbidden).fields == {}
    assert filtered(HtmlIndexingFilter, content=b"%PDF", content_type="application/pdf").fields == {}
    odd = filtered(HtmlIndexingFilter, content=b"x", content_type="text/plain",
                   metadata={"CharEncodingForConversion": b"no-such"})  # fmt: skip
    assert odd.fields == {"rawcontent": ["x"]}


def test_feed_fields_are_set():
    row = {"metadata": {"author": b"A\tB", "tag": b"t", "feed": b"http://f/", "published": b"1700000000000",
                        "updated": b"Tue, 14 Nov 2023 22:13:21 GMT"}}  # fmt: skip
    assert filtered(FeedIndexingFilter, **row).fields == {
        "author": ["A", "B"],
        "tag": ["t"],
        "feed": ["http://f/"],
        "publishedDate": ["2023-11-14T22:13:20.000Z"],
        "updatedDate": ["2023-11-14T22:13:21.000Z"],
    }
    for no_date in (b"soon", b"9" * 5000, b"--1", "٣".encode(), "²".encode()):
        assert filtered(FeedIndexingFilter, metadata={"published": no_date}).fields == {}


def parsed(html, includes, conf=()):
    properties = {"plugin.includes": f"parse-html|{includes}", "http.agent.name": "t", **dict(conf)}
    row = page(content=html.encode(), content_type="text/html", base_url=URL)
    return row, RowParser(settings(properties)).parse_row(reverse_url(URL), row)


def test_headings_are_copied_to_document():
    html = "<h1> One\n <b>two</b></h1><h2>a</h2><h2></h2><h2>b</h2>"
    row, _ = parsed(html, "headings", {"headings.multivalued": "true"})
    made = HeadingsIndexingFilter(settings()).filter(NutchDocument(), URL, row)
    assert made.fields == {"h1": ["One two"], "h2": ["a", "b"]}
    row, _ = parsed(html, "headings")
    assert row.metadata["h2"] == b"a"


RDF = """<!-- <rdf:RDF xmlns="http://web.resource.org/cc/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><Work rdf:about="">
 <dc:type rdf:resource="http://purl.org/dc/dcmitype/Sound" /></Work>
 <License rdf:about="http://creativecommons.org/licenses/by-sa/2.0/"></License></rdf:RDF> -->"""

TWO_LICENCES = """<a href="//creativecommons.org/licenses/by/1.0/">x</a>
<a rel="nofollow license" href="https://creativecommons.org/licenses/by-nc/4.0/">y</a>"""


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (RDF, ["license=http://creativecommons.org/licenses/by-sa/2.0/", "by", "sa", "2.0", "meta=rdf", "audio"]),
        (TWO_LICENCES,
         ["license=https://creativecommons.org/licenses/by-nc/4.0/", "by", "nc", "4.0", "meta=rel"]),
        ('<a href="http://creativecommons.org/licenses/by/1.0/">x</a>',
         ["license=http://creativecommons.org/licenses/by/1.0/", "by", "1.0", "meta=a"]),
        ('<a href="http://creativecommons.org/licenses/">x</a><a href="http://x.org/licenses/by/">y</a>', []),
    ],
)  # fmt: skip
def test_licences_are_copied_to_document(html, expected):
    row, outcome = parsed(html, "creativecommons")
    assert outcome.label == "success"
    assert CCIndexingFilter(settings()).filter(NutchDocument(), URL, row).values("cc") == expected


def test_page_without_licence_is_dropped_when_configured():
    _, outcome = parsed("<p>none", "creativecommons", {"creativecommons.exclude.unlicensed": "true"})
    assert outcome.label == "failed"


def test_pagerank_is_scaled_by_mean_of_last_run(conf):
    plugin = PageRankIndexingFilter(conf)
    assert plugin.filter(NutchDocument(), URL, page(page_rank=0.5)).fields == {"pagerank": ["0.5"]}
    assert plugin.filter(NutchDocument(), URL, page()).fields == {}
    store = open_store(conf, DerivedRow)
    store.create()
    entry = DerivedRow()
    entry.data = b"0.25"
    with store.batch() as batch:
        batch.put(MEAN_RANK_ROW, entry)
    plugin = PageRankIndexingFilter(conf)
    assert plugin.filter(NutchDocument(), URL, page(page_rank=0.5)).fields == {"pagerank": ["2.0"]}
