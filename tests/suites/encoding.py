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

GOALS = (
    Goal("html5lib pages", 1.0),
    Goal("WHATWG labels", 1.0),
    Goal("WHATWG indexes", 1.0),
    Goal("chardet files", 400 / 418),
)
_HTML5LIB = Repository("html5lib/html5lib-tests", "224991ec10db04f056a89eed8b0bd8695fd2950e", ("/encoding/",))
_WHATWG = Repository("whatwg/encoding", "a985b62a9b45c17da3e17a9f0a0b4e30c34c4a8a", ("/*.json",))
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
    yield from _indexes(_WHATWG.folder(data))
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


def _indexes(folder: Path) -> Iterator[Case]:
    """Yield every pointer of every index; those without a character must give U+FFFD."""
    indexes = json.loads((folder / "indexes.json").read_text(encoding="utf-8"))
    for index, code_points in indexes.items():
        for encoding in _ENCODINGS_OF_INDEX.get(index, (index,)):
            for pointer, code_point in enumerate(code_points):
                raw = bytes_of_pointer(encoding, index, pointer)
                if raw is None:
                    continue
                expected = _expected(encoding, pointer, code_point)
                found = decode(raw, resolve_label(encoding) or "")
                right = found == expected or (expected is None and found.startswith("\ufffd"))
                yield Case("WHATWG indexes", f"{encoding} {raw.hex()}", "" if right else f"{found!a}, not {expected!a}")


_ENCODINGS_OF_INDEX: dict[str, tuple[str, ...]] = {
    "gb18030": ("gb18030", "gbk"),
    "jis0208": ("shift_jis", "euc-jp", "iso-2022-jp"),
    "jis0212": ("euc-jp",),
    "gb18030-ranges": (),
    "iso-2022-jp-katakana": (),
    "iso-8859-8": ("iso-8859-8", "iso-8859-8-i"),
}
_COMBINED = {1133: "Ê̄", 1135: "Ê̌", 1164: "ê̄", 1166: "ê̌"}  # pointers of Big5 with two code points


def _expected(encoding: str, pointer: int, code_point: int | None) -> str | None:
    if encoding == "big5" and pointer in _COMBINED:
        return _COMBINED[pointer]
    if code_point is None and encoding == "shift_jis" and 8836 <= pointer <= 10715:
        return chr(0xE000 - 8836 + pointer)
    return None if code_point is None else chr(code_point)


def bytes_of_pointer(encoding: str, index: str, pointer: int) -> bytes | None:
    """Return the bytes that an encoding has for a pointer of an index, None if it has none."""
    if encoding == "big5":
        lead, trail = divmod(pointer, 157)
        return bytes((lead + 0x81, trail + (0x40 if trail < 0x3F else 0x62)))
    if index == "gb18030":
        lead, trail = divmod(pointer, 190)
        return bytes((lead + 0x81, trail + (0x40 if trail < 0x3F else 0x41)))
    if encoding == "euc-kr":
        return bytes((pointer // 190 + 0x81, pointer % 190 + 0x41))
    if encoding == "shift_jis":
        lead, trail = divmod(pointer, 188)
        return bytes((lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)))
    if index in ("jis0208", "jis0212"):
        row, cell = divmod(pointer, 94)
        if row > 93:
            return None  # Shift_JIS alone has more rows
        if encoding == "iso-2022-jp":
            return b"\x1b$B" + bytes((row + 0x21, cell + 0x21)) + b"\x1b(B"
        return (b"\x8f" if index == "jis0212" else b"") + bytes((row + 0xA1, cell + 0xA1))
    return bytes((0x80 + pointer,))


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
