"""Fuzz targets: functions that read bytes from the web, operators' files and search users.

A target is a function from bytes to nothing, seeds, and the exceptions expected for invalid input.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

from nutch2py.errors import ConfigurationError
from tests.fuzz import operator_targets
from tests.fuzz.inputs import Run, conf, pieces, text
from tests.fuzz.seeds import SEEDS
from tests.parser.formats import samples as s

URL = "http://h.test/d/file"


class Target(NamedTuple):
    """``make`` returns the function and is called once. ``answers``: expected exceptions."""

    make: Callable[[], Run]
    seeds: tuple[bytes, ...]
    answers: tuple[type[Exception], ...] = ()


# URLs


def _url() -> Run:
    from nutch2py.plugins.loading import create_named_plugin
    from nutch2py.url import idn, java_url, keys, url_parts
    from nutch2py.url.filters.url_filters import URLFilters
    from nutch2py.url.normalizers.url_normalizers import URLNormalizers
    from nutch2py.url.url_partitioner import URLPartitioner

    made = conf()
    names = ("ajax", "basic", "host", "pass", "protocol", "querystring", "regex", "slash")
    normalizers = [create_named_plugin(made, "urlnormalizer", f"urlnormalizer-{name}") for name in names]
    every, filters, partitioner = URLNormalizers(made, "outlink"), URLFilters(made), URLPartitioner(made)

    def run(data: bytes) -> None:
        first, second = (text(piece) for piece in pieces(data, 2))
        for function in (
            idn.url_to_ascii,
            idn.url_to_unicode,
            url_parts.segments_of,
            keys.reverse_url,
            keys.unreverse_url,
        ):
            with contextlib.suppress(ValueError):
                function(first)
        with contextlib.suppress(ValueError):
            base = java_url.parse_url(first)
            partitioner.key(first)
            java_url.parse_url(java_url.resolve_url(base, second))
        for normalizer in normalizers:
            with contextlib.suppress(ValueError):
                found = normalizer.normalize(first, "default")
                assert found is None or isinstance(found, str)
        kept = every.normalize(first)
        if kept is not None:
            filters.filter(kept)
            with contextlib.suppress(ValueError):
                assert keys.unreverse_url(keys.reverse_url(kept))

    return run


# fetched files other than pages


def _robots() -> Run:
    from nutch2py.fetcher.robots.robots_rules import RobotsLimits, parse_robots
    from nutch2py.parser.robots_directives import parse_x_robots_tag

    def run(data: bytes) -> None:
        file, path = pieces(data, 2)
        rules = parse_robots(file, ("fuzz bot", "fuzz"), "http://h.test/robots.txt", RobotsLimits())
        url = "http://h.test/" + text(path)
        rules.match_cost(url)
        rules.is_allowed(url)
        parse_x_robots_tag({"X-Robots-Tag": text(path)}, ["fuzz"])

    return run


def _sitemap() -> Run:
    from nutch2py.parser.sitemap.sitemap_parser import parse_sitemap
    from nutch2py.parser.sitemap.sitemap_row_parser import entry_to_row

    def run(data: bytes) -> None:
        for entry in parse_sitemap(data, max_bytes=1 << 20, max_urls=1000, max_url_length=2000).entries:
            entry_to_row(entry).mutation()

    return run


def _answer() -> Run:
    from nutch2py.fetcher.output.warc import WarcFileWriter
    from nutch2py.fetcher.protocols.fetch_response import parse_header_lines
    from nutch2py.fetcher.protocols.ftp_listing import render_ftp_listing
    from nutch2py.fetcher.protocols.header_names import canonical_headers
    from nutch2py.fetcher.protocols.http_settings import HttpSettings
    from nutch2py.fetcher.protocols.lenient_http import build_response
    from nutch2py.fetcher.queues.fetch_queues import FetchItem
    from nutch2py.records.webpage import WebPage

    http = HttpSettings.from_conf(conf())
    folder = tempfile.mkdtemp(prefix="fuzz-warc-")
    written = 0

    def run(data: bytes) -> None:
        nonlocal written
        answer = build_response(http, URL, data, 65536, "127.0.0.1", 1)
        canonical_headers(parse_header_lines(answer.header_lines))
        render_ftp_listing("/d/", data, True)
        if answer.failure is None and len(data) < 2000:
            status_line = data.partition(b"\n")[0]
            files = WarcFileWriter(conf(), folder)
            files.write(FetchItem("k", URL, WebPage()), dataclasses.replace(answer, status_line=status_line))
            files.close()
            written += 1
            if written % 500 == 0:
                shutil.rmtree(folder)

    return run


# pages


def _html() -> Run:
    from nutch2py.parser.html.html_limits import HtmlLimits
    from nutch2py.parser.html.nesting_depth import measure_nesting_depth
    from nutch2py.parser.row_parser import RowParser
    from nutch2py.records.webpage import ParseStatusCode, WebPage

    made = conf(
        plugin_includes="parse-(html|js|metatags)|headings|creativecommons|microformats-reltag|language-identifier|index-structured|"
        "urlnormalizer-basic|urlfilter-regex|scoring-opic",
        parser_html_max_depth="50",
        parser_html_max_attributes="50",
        parser_html_max_copies="1000",
    )
    parsing = RowParser(made)

    def run(data: bytes) -> None:
        header, body = pieces(data, 2)
        page = WebPage()
        page.base_url, page.content, page.content_type = URL, body, "text/html"
        page.headers = {"Content-Type": header.decode("latin-1"), "X-Robots-Tag": header.decode("latin-1")}
        parse = parsing.parse(URL, page)
        assert parse.major == ParseStatusCode.SUCCESS, parse.args
        parsing.outlink_filter.filter_outlinks(URL, parse.outlinks)
        page.mutation()
        html = text(body)
        measure_nesting_depth(html, 1000)
        HtmlLimits(50, 1000, 50).apply(html)

    return run


def _main_text() -> Run:
    from nutch2py.parser.html.main_text import extract_main_text, extract_markdown

    def run(data: bytes) -> None:
        html = text(data)
        extract_main_text(html).encode("utf-8", "replace")
        extract_markdown(html, URL).encode("utf-8", "replace")

    return run


def _structured() -> Run:
    import orjson

    from nutch2py.parser.filters.structured_filter import to_valid_json
    from nutch2py.parser.html.dom import parse_tree, remove_scripts
    from nutch2py.parser.html.structured_data import STRUCTURED_DATA_LIMITS, extract_structured_data

    def run(data: bytes) -> None:
        html = text(data)
        tree = parse_tree(html)
        remove_scripts(tree)
        found = extract_structured_data(tree, html, URL)
        written = orjson.dumps(to_valid_json({kind: values for kind, values in found.items() if kind != "jsonld"}))
        assert len(written) < 20 * STRUCTURED_DATA_LIMITS.kept_chars
        orjson.dumps(to_valid_json(found))

    return run


def _charset() -> Run:
    from nutch2py.parser.charset.encoding_detector import (
        EncodingDetector,
        decode_unlabeled,
        guess_encoding,
        header_charset,
    )
    from nutch2py.parser.charset.encoding_names import decode, resolve_label
    from nutch2py.parser.charset.prescan import sniff_label
    from nutch2py.parser.mime.mime_types import detect_content_type
    from nutch2py.parser.xml_sanitizer import sanitize_xml

    made = conf()
    detector = EncodingDetector(made)

    def run(data: bytes) -> None:
        header, body = pieces(data, 2)
        label = header.decode("latin-1")
        header_charset(label)
        resolve_label(label)
        sniff_label(body, resolve_label)
        guess_encoding(body, f"http://{label}/")
        decode_unlabeled(body)
        decode(body, detector.choose(body, "text/html", label, URL).name)
        detect_content_type(label, f"http://h.test/{label}", body, made)
        sanitize_xml(body, label).decode("utf-8")

    return run


# files


def _file(kind: str, build: Callable[[bytes], bytes] = bytes) -> Callable[[], Run]:
    """Return a target of a parser: ``build`` puts an input into the container of the format."""

    def make() -> Run:
        import importlib

        from nutch2py.records.webpage import WebPage

        module, _, name = kind.partition(":")
        parser: Any = getattr(importlib.import_module(f"nutch2py.parser.{module}"), name)(
            conf(parser_unpack_max_bytes=str(1 << 20), parser_unpack_max_documents="20")
        )

        def run(data: bytes) -> None:
            page = WebPage()
            page.base_url, page.content, page.content_type = URL, build(data), "application/x"
            parse = parser.parse(URL, page)
            parse.text.encode()
            parse.title.encode()

        return run

    return make


def _in_zip(*names: str) -> Callable[[bytes], bytes]:
    return lambda data: s.zipped(dict(zip(names, pieces(data, len(names)), strict=True)), packed=False)


WORD = ("word/document.xml", "word/_rels/document.xml.rels", "docProps/core.xml", "word/comments.xml")
SHEETS = (
    "xl/workbook.xml",
    "xl/_rels/workbook.xml.rels",
    "xl/sharedStrings.xml",
    "xl/styles.xml",
    "xl/worksheets/sheet1.xml",
)
ODT = ("content.xml", "meta.xml", "styles.xml", "META-INF/manifest.xml")
BOOK = ("META-INF/container.xml", "book.opf", "c.html", "d.html")


def _ole(data: bytes) -> bytes:
    return s.compound({**s.doc("x"), "CONTENTS": data, "\x05SummaryInformation": data})


def _word(data: bytes) -> bytes:
    stream, table, summary = data[:0x800], data[0x800:0xA00], data[0xA00:]
    return s.compound({"WordDocument": stream, "1Table": table, "0Table": table, "\x05SummaryInformation": summary})


def _outlook(data: bytes) -> bytes:
    names = ("0037001F", "0037001E", "10130102", "1000001F", "0C1A001E")
    *streams, properties = pieces(data, len(names) + 1)
    return s.compound(
        {
            **{f"__substg1.0_{name}": stream for name, stream in zip(names, streams, strict=True)},
            "__properties_version1.0": properties,
            "__attach_version1.0_#00000000/__substg1.0_37010102": properties,
        }
    )


_OOXML, _OLE = "formats.office.ooxml:OoxmlParser", "formats.office.ole:OleParser"
_MAKERS: dict[str, Callable[[], Run]] = {
    "url": _url,
    "robots": _robots,
    "sitemap": _sitemap,
    "answer": _answer,
    "html": _html,
    "main-text": _main_text,
    "structured": _structured,
    "charset": _charset,
    "feed": _file("formats.feed:FeedParser"),
    "xml": _file("formats.feed:XmlParser"),
    "text": _file("formats.text:TextParser"),
    "script": _file("formats.javascript:JSParseFilter"),
    "archive": _file("formats.archive:ArchiveParser"),
    "word-xml": _file(_OOXML, _in_zip(*WORD)),
    "excel-xml": _file(_OOXML, _in_zip(*SHEETS)),
    "opendocument": _file("formats.office.opendocument:OpenDocumentParser", _in_zip(*ODT)),
    "epub": _file("formats.epub:EpubParser", _in_zip(*BOOK)),
    "rtf": _file("formats.word.rtf:RtfParser"),
    "mail": _file("formats.mail:MailParser"),
    "image": _file("formats.image:ImageParser"),
    "pdf": _file("formats.pdf:PdfParser"),
    "compound": _file(_OLE),
    "embedded": _file(_OLE, _ole),
    "word": _file(_OLE, _word),
    "excel": _file(_OLE, lambda data: s.compound({"Workbook": data})),
    "powerpoint": _file(_OLE, lambda data: s.compound({"PowerPoint Document": data})),
    "outlook": _file(_OLE, _outlook),
    "cells": operator_targets.cells,
    "seeds": operator_targets.seeds,
    "configuration": operator_targets.xml_conf,
    "search": operator_targets.search,
    "server": operator_targets.server,
}
_ANSWERS: dict[str, tuple[type[Exception], ...]] = {"sitemap": (ValueError,), "configuration": (ConfigurationError,)}
TARGETS = {name: Target(make, SEEDS[name], _ANSWERS.get(name, ())) for name, make in _MAKERS.items()}
"""Targets by the name for ``--target``."""
