"""Media types: what the tests of Apache Tika, file(1), the WHATWG and the W3C's feed validator expect of first bytes.

Tika's tests ask by first bytes, by name, and by both.
Types that are neither in this program's table nor its result are skipped: unsupported formats.
A type that only Tika has is right as the more general type that it is read as, if Tika says that it is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.mime.mime_table import PLAIN_TEXT
from nutch2py.parser.mime.mime_types import MimeTypeResolver
from nutch2py.parser.parser_factory import get_parser_factory
from tests.suites.apache import TIKA, tika_files
from tests.suites.suite import Case, Goal, Repository

GOALS = (
    Goal("Tika's types", 0.90), Goal("file(1)'s types", 1.0), Goal("sniffing of the WHATWG", 0.83),
    Goal("feeds and other XML", 0.99), Goal("types that are left, for a known reason", 1.0),
)  # fmt: skip
_FILE = Repository("file/file", "9de57c0b0607c53c6196967fbad53499022a0991", ("/tests/",))
_SNIFFING = Repository(
    "web-platform-tests/wpt", "78ebae58220c2c8559d0891d275a0892322ad978", ("/mimesniff/mime-type-sniffing/resources/",)
)
_FEEDS = Repository("w3c/feedvalidator", "43dabeb217bd8d8b0a3f12f3a6e7c39a8619d9a8", ("/testcases/",))
_DESCRIPTIONS = {
    "JSON text": "application/json", "New Line Delimited JSON": "application/x-ndjson", "ASCII text": "text/plain",
    "SVG ": "image/svg+xml", "OpenStreetMap XML": "application/xml", "PNG image": "image/png",
    "Animated PNG": "image/png", "Audio file with ID3": "audio/mpeg", "Microsoft Word 2007": "application/x-tika-ooxml",
    "Microsoft Excel 2007": "application/x-tika-ooxml", "Netpbm": "image/x-portable-anymap",
    "RPM ": "application/x-rpm",
    "Zstandard compressed data (v0.8": "application/zstd", "Zip data": "application/zip", "GEDCOM": "text/plain",
    "Keyman Compiled Package": "application/zip", "Gentoo GLEP 78": "application/x-tar",
}  # fmt: skip
"""How file(1) begins to describe files of the types that the table has."""
_FOLDERS = {
    "atom": ("application/atom+xml",), "rss": ("application/rss+xml", "application/rdf+xml"),
    "rss11": ("application/rss+xml",), "rss20": ("application/rss+xml",), "opml": ("text/x-opml",),
    "gbase": ("application/atom+xml", "application/rss+xml", "application/rdf+xml"),
    "kml": ("application/vnd.google-earth.kml+xml", "application/xml"),
}  # fmt: skip
"""What the feed validator's folders hold; the other folders hold XML of any kind."""
_REASONS = {
    r"Tika's types: test(?:CERT|\w*KEY\w*|\w*PARAMS)\.pem .*": "kinds of keys are one type of text here",
    r"Tika's types: test\S+\.(?:dxf|fdf|enw|xpt|stl|afm|fits|asx) .*": "drawings, data and fonts have no parser",
    r"Tika's types: testWEBM\.webm .*": "Tika's type is the more general one",
    r"Tika's types: (?:NUTCH-1997\.cbor|test-documents-spanned\.z01|x\.dll) .*": "the format has no parser",
    r"Tika's types: test[\w-]+\.(?:tar|wma|wmv|vcs|xls|c|h) .*": "one type for several variants",
    r"sniffing of the WHATWG: b'[\\ntrxc0 ]*<[!\w ]+' as .*": "a page that ends within its first tag",
    r"sniffing of the WHATWG: (?:avc|avif|3gp|mmp4|M4A|qt|iso|ASF|TIFF|FLAC|Ogg).*": "known here, unknown to browsers",
    r"sniffing of the WHATWG: (?:Windows Cursor|BMP|WebP without|b'\\xef\\xbb\\xbf\\x00).*": "too few bytes to tell",
    r"feeds and other XML: \S*missing(?:_rss|_feed|Opml|2)?\S* .*": "the test is the missing root element",
    r"feeds and other XML: \S*(?:unknown_root_element|rdf_unknown|neg-wrongns|outlineDocument|twittergram)\S* .*":
        "the test is the wrong root element",
    r"feeds and other XML: atom/\S*(?:entry-source|brief-entry)\S* .*": "an entry alone is no feed",
}  # fmt: skip
"""Why cases are left, by part and name."""
_OLE = "application/x-tika-msoffice"  # the parser opens the file and finds its format
_GENERAL = (PLAIN_TEXT, "application/xml", "image/tiff", "image/x-portable-anymap", _OLE)
_ASSERTION = re.compile(r'^\s*assertType(\w*)\(\s*"([^"]+)"\s*,\s*"([^"]+)"((?:\s*,\s*"[^"]+")*)\s*\)', re.MULTILINE)


def cases(data: Path) -> Iterator[Case]:
    """Yield one case for each file and way to ask, and one for each that is left."""
    kinds = MimeTypeResolver(Configuration.load())
    for part in (_tika_cases(data), _file_cases(data, kinds), _sniffing_cases(data, kinds), _feed_cases(data, kinds)):
        for case in part:
            reason = next((why for name, why in _REASONS.items() if re.match(name, f"{case.part}: {case.name} ")), "")
            yield case._replace(left=f"{case.left} ({reason})") if case.left and reason else case
            if case.left:
                left = "" if reason else case.left
                yield Case("types that are left, for a known reason", f"{case.part}: {case.name}", left)


def _file_cases(data: Path, kinds: MimeTypeResolver) -> Iterator[Case]:
    for file in sorted((_FILE.folder(data) / "tests").glob("*.testfile")):
        described = file.with_suffix(".result").read_text(encoding="utf-8", errors="replace")
        wanted = next((kind for text, kind in _DESCRIPTIONS.items() if described.startswith(text)), None)
        if wanted is not None:
            found = kinds.resolve(None, "", file.read_bytes())
            yield Case("file(1)'s types", file.stem, "" if found == wanted else f"{found}, not {wanted}")


def _sniffing_cases(data: Path, kinds: MimeTypeResolver) -> Iterator[Case]:
    """Yield the cases without ``nosniff``, which is about running scripts."""
    folder = _SNIFFING.folder(data) / "mimesniff" / "mime-type-sniffing" / "resources"
    for name in ("unknown", "scriptable"):
        for case in json.loads((folder / f"{name}-mime-types.json").read_text(encoding="utf-8")):
            headers, body = dict(case["headers"]), bytes.fromhex(case["payload"])
            if "X-Content-Type-Options" in headers:
                continue
            found = kinds.resolve(headers.get("Content-Type"), "", body)
            wanted = kinds.table.canonical_name(case["expected_mime_type"])
            shown = case["description"] if name == "unknown" else f"{body!r} as {headers}"
            yield Case("sniffing of the WHATWG", shown, "" if found == wanted else f"{found}, not {wanted}")


def _feed_cases(data: Path, kinds: MimeTypeResolver) -> Iterator[Case]:
    folder = _FEEDS.folder(data) / "testcases"
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if file.suffix in (".xml", ".opml", ".kml", ".rss", ".rdf") and file.is_file():
            found = kinds.resolve(None, "", file.read_bytes())
            wanted = _FOLDERS.get(name.parts[0])
            right = found in wanted if wanted else kinds.table.is_instance_of(found, "application/xml")
            yield Case("feeds and other XML", name.as_posix(), "" if right else f"{found}, not {wanted or 'XML'}")


def _tika_cases(data: Path) -> Iterator[Case]:
    """Yield one case for each file and way to ask."""
    folder = TIKA.folder(data)
    files = tika_files(folder)
    conf = Configuration.load()
    kinds, parsers = MimeTypeResolver(conf), get_parser_factory(conf)
    (theirs_file,) = folder.rglob("tika-mimetypes.xml")
    theirs = MimeTypeResolver(Configuration({"mime.types.file": theirs_file.name}, [theirs_file.parent]))
    (test,) = folder.rglob("TestMimeTypes.java")
    for how, name, expected in sorted({*expectations(test.read_text(encoding="utf-8"))}):
        if how != "Name" and name not in files:
            continue
        body = b"" if how == "Name" else files[name].read_bytes()
        found = kinds.resolve(None, "" if how == "Data" else f"file:///{name}", body)
        wanted = kinds.table.canonical_name(expected.partition(";")[0]) or expected
        if found != wanted and wanted not in kinds.table.known_types and not parsers.get_parsers(found):
            continue
        right = found == wanted or (
            (wanted not in kinds.table.known_types or found == _OLE)
            and found in _GENERAL
            and theirs.table.is_instance_of(wanted, found)
        )
        yield Case("Tika's types", f"{name} by {how}", "" if right else f"{found}, not {expected}")


def expectations(java: str) -> Iterator[tuple[str, str, str]]:
    """Yield (Data, Name or NameAndData; name of a file; type)."""
    for how, one, other, rest in _ASSERTION.findall(java):
        if how == "Detection":  # the name comes first, then types by name, by data and by both, or one for all
            types = [other, *re.findall(r'"([^"]+)"', rest)]
            for way, kind in zip(("Name", "Data", "NameAndData"), types * (3 // len(types)), strict=False):
                yield way, one, kind
        elif how in ("", "ByData", "ByName", "ByNameAndData"):
            yield how.removeprefix("By") or "NameAndData", other, one
