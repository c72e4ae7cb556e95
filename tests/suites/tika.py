"""Documents: every text that Apache Tika's tests look for in a file of a format that is read here.

A case is a text and the file that its test named last. Skipped are tests with options or a password, comments, texts
of tags only or about Tika's own classes, telephone numbers that Tika combines from digits, and files of formats without
a parser here. White space and tags are not compared. A text counts as found in the text, title, links with their
anchors, and metadata.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.mime.mime_types import get_mime_resolver
from nutch2py.parser.parser_factory import get_parser_factory
from tests.suites.apache import TIKA, reader, rejection, tika_files
from tests.suites.suite import Case, Goal

GOALS = (Goal("Tika's texts", 0.88), Goal("texts that are left, for a known reason", 1.0))
_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
_TOKENS = re.compile(
    rf"(?P<test>@Test\b)|(?P<options>\b\w*(?:Config|PasswordProvider|OCR\w*)\s*\(\s*\)|\bPasswordProvider\.class"
    rf"|\bEXTRACT_ALL_ALTERNATIVES\w*)|(?P<comment>/\*.*?\*/|//[^\n]*)"
    rf"|assertContains(?:Count)?\s*\(\s*(?P<one>{_LITERAL}(?:\s*\+\s*{_LITERAL})*)\s*,\s*(?P<in>[^;]*?)\)\s*;"
    rf"|assertTrue\s*\(\s*\w+(?:\.\w+)?(?:\.toString\(\))?\.contains\(\s*(?P<two>{_LITERAL}(?:\s*\+\s*{_LITERAL})*)\s*\)\s*[,)]"
    rf"|(?:(?!assert)\b\w+\s*\(|=)\s*(?P<file>{_LITERAL})|{_LITERAL}",
    re.DOTALL,
)
_NO_TEXT = re.compile(r"org\.apache\.tika\.|Exception: ")  # messages of Tika itself
_OTHER_PLACE = re.compile(r"\.get\((?!.*CONTENT\b)(?!\d+\)\.get\(.*CONTENT)|(?i:metadata(?!List))\b")
_REASONS = {
    r"testOCR.*|testRotated.*|testTIFF_multipage.*": "a picture of text, which Tika reads by OCR",
    r"Zamora2010\.dif|testXML2\.xml": "Tika's own names for the elements and attributes of that XML",
    r"cc\.warc\.gz|testARC\.arc|testAFM\.afm": "archives of crawls and metrics of fonts have no parser",
    r"testEXCEL-formats\..*|testEXCEL_dateFormats\.xls": "dates are as 2026-03-15; 2.5 % is rounded to 3%, as in Excel",
    r"testJPEG_commented_xnviewmp026\.jpg": "XMP of a picture",
    r"testDataConnections\.xlsx|testDdeLink\.xlsx": "where a workbook would get its data is not part of it",
    r"testDocumentLink\.doc|testWORD_embedded_rtf\.doc": "names that Tika gives to objects without one",
    r"testException2\.doc": "a path that the text does not show",
    r"testWORD_embedded_pics\.docx|testPPT_EmbeddedPDF\.pptx": "names of pictures on their author's disk",
    r"testO.*Macro\.od.": "programs (macros) are no text",
    r"testHTMLGoodScript\.html|testHTML_embedded_data_uri_js\.html": "programs (scripts) are no text",
    r"testSrcDoc\.html": "a page in an attribute of a frame",
    r"testODTStyles3\.odt": "fields that are hidden",
    r"testPDF_XFA.*": "an XML form in addition to the pages (XFA)",
    r"testPDF_twoAuthors\.pdf": "XMP in addition to the properties of a PDF",
    r"testPPT_groups\.ppt": "a drawing (SmartArt) with its text in a separate package",
    r"testPPT_various2\.pptx": "headers of printed handouts; a reply is separate from its author",
    r"testPPT_comment\.ppt": "the author of a comment is in another form",
    r"testRTFControls\.rtf": "soft hyphens are removed, so that words are found",
    r"testGroupWiseEml\.eml": "markup that is part of what Tika's test looks for",
    r"testWORD_2006ml\.xml": "a package written as one XML file is read as any XML",
    r"testiBooks\.ibooks": "a page that the order of reading does not list",
}
"""Reasons for missing texts, by file name; a rejection states its own reason."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": ""}


class Expected(NamedTuple):
    """A text, and the name of the file that should hold it."""

    file: str
    text: str


def cases(data: Path) -> Iterator[Case]:
    """Yield one case for each text and file."""
    folder = TIKA.folder(data)
    files = tika_files(folder)
    conf = Configuration.load(overrides={"parser.timeout": "60", "http.agent.name": "x"})
    read = reader(conf)
    kinds = get_mime_resolver(conf)
    parsers = get_parser_factory(conf)
    wanted = dict.fromkeys(
        found
        for test in sorted(folder.rglob("*Test.java"))
        for found in expectations(test.read_text(encoding="utf-8", errors="replace"), files)
    )
    for found in sorted(wanted):
        file = files[found.file]
        kind = kinds.resolve(None, f"http://h.test/{file.name}", file.read_bytes())
        if not parsers.get_parsers(kind):
            continue
        parse = read(file)
        places = [parse.title, parse.text, *(f"{link.anchor} {link.url}" for link in parse.outlinks)]
        places += [value.decode("utf-8", "replace") for value in parse.metadata.values()]
        left = rejection(parse)
        rejected = bool(left)
        name = f"{found.file}: {' '.join(found.text.split())[:80]}"
        if not left and squeezed(found.text) not in squeezed(" ".join(places)):
            left = reason(found.file) or f"not found as {kind}"
        yield Case("Tika's texts", name, left)
        if left:
            known = rejected or reason(found.file)
            yield Case("texts that are left, for a known reason", name, "" if known else f"not found as {kind}")


def reason(file: str) -> str:
    """Return why the texts of a file are not found, "" when unknown."""
    return next((why for pattern, why in _REASONS.items() if re.fullmatch(pattern, file)), "")


def expectations(java: str, files: dict[str, Path]) -> Iterator[Expected]:
    """Yield what the tests of a Java class expect to find in files."""
    file, options = "", False
    for token in _TOKENS.finditer(java):
        if token["test"]:
            file, options = "", False
        elif token["options"]:
            options = True
        elif token["file"]:
            name = literal(token["file"]).removeprefix("/").removeprefix("test-documents/")
            file = name if name in files else file
        elif (token["one"] or token["two"]) and file and not options and "PhoneExtracting" not in java:
            if token["one"] and _OTHER_PLACE.search(token["in"]):
                continue
            text = shown(literal(token["one"] or token["two"]))
            if squeezed(text) and not _NO_TEXT.search(text):
                yield Expected(file, text)


def literal(source: str) -> str:
    r"""Return the value of Java's string literals that are joined by plus signs.

    >>> literal(r'"a\n" + "\u00e9"')
    'a\né'
    """
    joined = "".join(part[1:-1] for part in re.findall(_LITERAL, source))
    return re.sub(
        r"\\(?:u+([0-9a-fA-F]{4})|(.))",
        lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2]),
        joined,
    )


def shown(text: str) -> str:
    """Return the visible text of a piece of markup, in which the first and last tag may be cut.

    >>> shown('class="a">x &amp; <b>y</b><td colspan="2'), shown('1 < 2'), shown('href="u">')
    ('x & y', '1 < 2', '')
    """
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # escapes of halves
    text = re.sub(r"</?[a-zA-Z][^<>]*>", "", text)
    text = re.sub(r'^>|^[^<>]*="[^<>]*>|</?[a-zA-Z][^<>]*$|^[^<>]*"\s*/?>', "", text)
    return "" if re.fullmatch(r'\s*[\w-]+="[^"]*"?\s*', text) else html.unescape(text).strip()


def squeezed(text: str) -> str:
    """Return a text in lower case and without white space."""
    return re.sub(r"[\s\u200b]+", "", text).lower()
