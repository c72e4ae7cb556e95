"""Media types: what Apache Tika's tests expect of its test files, by first bytes, by name, and by both.

Types that are neither in this program's table nor its result are skipped: unsupported formats.
A type that only Tika has is right as the more general type that it is read as, if Tika says that it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.mime.mime_table import PLAIN_TEXT
from nutch2py.parser.mime.mime_types import MimeTypeResolver
from nutch2py.parser.parser_factory import get_parser_factory
from tests.suites.apache import TIKA, tika_files
from tests.suites.suite import Case, Goal

GOALS = (Goal("Tika's types", 0.90),)
_OLE = "application/x-tika-msoffice"  # the parser opens the file and finds its format
_GENERAL = (PLAIN_TEXT, "application/xml", "image/tiff", "image/x-portable-anymap", _OLE)
_ASSERTION = re.compile(r'^\s*assertType(\w*)\(\s*"([^"]+)"\s*,\s*"([^"]+)"((?:\s*,\s*"[^"]+")*)\s*\)', re.MULTILINE)


def cases(data: Path) -> Iterator[Case]:
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
