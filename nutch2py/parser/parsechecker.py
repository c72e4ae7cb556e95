"""Report of a page's parse as text: the output of ``parsechecker`` (Nutch's ParserChecker)."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.mime.mime_types import detect_content_type
from nutch2py.parser.row_parser import truncated_content_length
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.cells import decode_text
from nutch2py.records.webpage import ParseStatusCode, WebPage


def create_page(url: str, body: bytes, declared: str | None, conf: Configuration) -> WebPage:
    """Return a fetched page that is in no table. ``declared``: its Content-Type header."""
    page = WebPage()
    page.base_url, page.content = url, body
    page.content_type = detect_content_type(declared, url, body, conf)
    if declared:
        page.headers["Content-Type"] = declared
    return page


def check_parse(
    conf: Configuration, url: str, page: WebPage, *, dump_text: bool = False, force_as: str | None = None
) -> str:
    """Parse a page and return the report: type, signature, URL, metadata, outlinks, headers and optionally text.

    ``force_as`` overrides the content type. Outlinks are listed before URL normalizers and filters run.
    """
    if force_as:
        page.content_type = force_as
    page.base_url = page.base_url or url
    parsing = ParseWorkerClient(conf)
    lines = [f"fetching: {url}"]
    if truncated_content_length(page):
        lines.append("Content is truncated, parse may fail!")
    parse = parsing.parse(url, page)
    page.text, page.title = parse.text, parse.title
    lines += [
        f"parsing: {url}",
        f"contentType: {page.content_type}",
        f"signature: {parsing.signature.calculate(url, page).hex()}",
    ]
    if parse.major != ParseStatusCode.SUCCESS:
        lines.append(f"Problem with parse: {' '.join(parse.args)}")
    lines += ["---------\nUrl\n---------------\n", url]
    lines += ["---------\nMetadata\n---------\n"]
    lines += [f"{name} : \t{decode_text(value)}" for name, value in page.metadata.decoded_items()]
    lines += ["---------\nOutlinks\n---------\n"]
    lines += [f"  outlink: toUrl: {link.url} anchor: {link.anchor}" for link in parse.outlinks]
    lines += ["---------\nHeaders\n---------\n"]
    lines += [f"{name} : \t{value}" for name, value in page.headers.decoded_items()]
    if dump_text:
        lines += ["---------\nParseText\n---------\n", parse.text]
    return "\n".join(lines) + "\n"
