"""creativecommons: the Creative Commons license of a page as metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import HtmlDocument, Parse, ParseFilter
from nutch2py.parser.html.dom import attribute_value
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import WebPage
from nutch2py.url.url_parts import parse_url, resolve_url

LICENSE_URL, LICENSE_LOCATION, WORK_TYPE = "License-Url", "License-Location", "Work-Type"
_RDF_LICENSE = re.compile(r"<(?:\w+:)?License\s[^<>]*?rdf:about\s*=\s*[\"']([^\"'<>]+)[\"']")
_RDF_TYPE = re.compile(r"<dc:type\s[^<>]*?rdf:resource\s*=\s*[\"']http://purl\.org/dc/dcmitype/(\w+)[\"']")
_WORK_TYPES = {
    "MovingImage": "video", "StillImage": "image", "Sound": "audio", "Text": "text", "Interactive": "interactive",
    "Software": "software", "Image": "image",
}  # fmt: skip
_NAMESPACE = "http://web.resource.org/cc/"


class CCParseFilter(ParseFilter):
    """Finds the license: RDF in a comment, else a link with ``rel=license``, else any link to a license.

    Links by https count too, and ``rel`` may contain other words (Nutch accepts only http and ``rel="license"``). With
    ``creativecommons.exclude.unlicensed`` a page without a license fails to parse.
    """

    java_class = "org.creativecommons.nutch.CCParseFilter"
    fields: frozenset[RecordField] = frozenset({WebPage.metadata, WebPage.content})

    def __init__(self, conf: Configuration) -> None:
        self.excludes_unlicensed = conf.get_bool("creativecommons.exclude.unlicensed", False)

    def filter(self, url: str, page: WebPage, parse: Parse, document: HtmlDocument) -> Parse | None:
        """Set license, its location and the kind of work in ``page.metadata``, or remove them."""
        license_url, location, work_type = self._find_license(page, document)
        for name, value in ((LICENSE_URL, license_url), (LICENSE_LOCATION, location), (WORK_TYPE, work_type)):
            if value:
                page.metadata[name] = value.encode()
            else:
                page.metadata.pop(name, None)
        return None if self.excludes_unlicensed and not license_url else parse

    def _find_license(self, page: WebPage, document: HtmlDocument) -> tuple[str, str, str]:
        license_url, work_type = find_in_comments(page.content or b"")
        if license_url:
            return license_url, "rdf", work_type
        related = linked = ""
        for node in document.tree.css("a[href]"):
            target = _resolve_license_url(document.url, attribute_value(node.attributes, "href"))
            if not target:
                continue
            if "license" in (node.attributes.get("rel") or "").lower().split():
                related = related or target
            else:
                linked = linked or target
        if related:
            return related, "rel", work_type
        return (linked, "a", work_type) if linked else ("", "", work_type)


def find_in_comments(content: bytes) -> tuple[str, str]:
    """Return the license URL and the type of work from RDF in comments of a page, "" for unknown."""
    if _NAMESPACE.encode() not in content:
        return "", ""
    for comment in _html_comments(content.decode("utf-8", "replace")):
        if "RDF" in comment and _NAMESPACE in comment:
            license_url, work_type = _RDF_LICENSE.search(comment), _RDF_TYPE.search(comment)
            return license_url[1] if license_url else "", _WORK_TYPES.get(work_type[1], "") if work_type else ""
    return "", ""


def _html_comments(html: str) -> Iterator[str]:
    start = html.find("<!--")
    while start >= 0 and (end := html.find("-->", start + 4)) >= 0:  # no comment follows an unclosed one
        yield html[start + 4 : end]
        start = html.find("<!--", end + 3)


def _resolve_license_url(base: str, href: str) -> str:
    try:
        url = resolve_url(base, href)
        parsed = parse_url(url)
    except ValueError:
        return ""
    known = parsed.protocol in ("http", "https") and parsed.host.lower() in (
        "creativecommons.org",
        "www.creativecommons.org",
    )
    path = parsed.file.partition("?")[0]
    return url if known and path.startswith("/licenses/") and len(path) > len("/licenses/") else ""
