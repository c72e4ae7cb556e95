"""Character encodings: html5lib's pages, the labels of the WHATWG standard, chardet's files."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.charset.encoding_detector import EncodingDetector
from nutch2py.parser.charset.encoding_names import decode, resolve_label
from tests.suites.suite import Case, Goal, Repository

GOALS = (Goal("html5lib pages", 1.0), Goal("WHATWG labels", 1.0), Goal("chardet files", 400 / 418))
_HTML5LIB = Repository("html5lib/html5lib-tests", "224991ec10db04f056a89eed8b0bd8695fd2950e", ("/encoding/",))
_WHATWG = Repository("whatwg/encoding", "a985b62a9b45c17da3e17a9f0a0b4e30c34c4a8a", ("/encodings.json",))
_CHARDET = Repository("chardet/chardet", "1355907628bff3148cc81ec77093b41d922436a7", ("/tests/",))
_LANGUAGES = (
    "arabic", "bulgarian", "croatian", "czech", "greek", "hebrew", "hungarian", "polish", "romanian", "russian",
    "slovak", "slovene", "turkish",
)  # fmt: skip
_KINDS = {".html": "text/html", ".xml": "application/xhtml+xml", ".txt": "text/plain", ".srt": "text/plain"}


def cases(data: Path) -> Iterator[Case]:
    """Yield all cases."""
    detector = EncodingDetector(Configuration.load())
    yield from _html5lib(_HTML5LIB.folder(data), detector)
    yield from _labels(_WHATWG.folder(data))
    yield from _chardet(_CHARDET.folder(data), detector)


def _html5lib(folder: Path, detector: EncodingDetector) -> Iterator[Case]:
    """Pages and their encodings; those in the folder "scripted" write their meta elements by script."""
    for file in sorted((folder / "encoding").glob("*.dat")):
        for number, case in enumerate(file.read_bytes().split(b"#data\n")[1:], 1):
            page, _, rest = case.partition(b"\n#encoding\n")
            expected = resolve_label(rest.split(b"\n")[0].decode().lower())
            found = detector.choose(page, "text/html").name
            yield Case(
                "html5lib pages", f"{file.name} {number}", "" if found == expected else f"{found}, not {expected}"
            )


def _labels(folder: Path) -> Iterator[Case]:
    for group in json.loads((folder / "encodings.json").read_text(encoding="utf-8")):
        for encoding in group["encodings"]:
            name = encoding["name"].lower()
            for label in encoding["labels"]:
                found = resolve_label(label)
                # content that browsers do not display is read here: an index cannot be exploited by it
                same = found is not None and (name == "replacement" or _same(found, resolve_label(name) or ""))
                yield Case("WHATWG labels", label, "" if same else f"{found}, not {name}")


def _same(one: str, other: str) -> bool:
    """Return whether two names decode alike; one may be a subset of the other."""
    sample = bytes(range(0x20, 0x7F)) + "中文".encode("gb18030")
    return one == other or decode(sample, one) == decode(sample, other)


def _chardet(folder: Path, detector: EncodingDetector) -> Iterator[Case]:
    for file in sorted((folder / "tests").glob("*/*")):
        encoding = file.parent.name.lower()
        for language in _LANGUAGES:
            encoding = encoding.removesuffix(f"-{language}")
        if file.suffix not in _KINDS or resolve_label(encoding.removesuffix("-sig")) is None:
            continue
        body = file.read_bytes()
        found = detector.choose(body, _KINDS[file.suffix]).name
        expected = encoding.removesuffix("-sig")
        right = found == resolve_label(expected) or _text(body, found) == _text(body, expected)
        yield Case("chardet files", f"{encoding}/{file.name}", "" if right else f"read as {found}")


def _text(body: bytes, encoding: str) -> str:
    return unicodedata.normalize("NFKC", decode(body, resolve_label(encoding) or encoding))
