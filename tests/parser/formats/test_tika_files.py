"""Apache Tika's test documents: the texts that Tika's tests expect are found; others get the expected status.

``tika_expectations.json``: for each document, some of the texts that Tika's tests look for (Apache License 2.0). White
space is not compared: line breaks within a page are not defined.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.parsechecker import create_page
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.webpage import ParseStatusCode
from tests.parser.trees import tika_jar

OFFICE = re.compile(r".*\.(?:pdf|docx?|xlsx?|pptx?|od[tsp]|rtf)", re.IGNORECASE)
EXPECTED: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("tika_expectations.json").read_text(encoding="utf-8")
)
ENCRYPTED = {
    "testEXCEL_protected_passtika.xls", "testEXCEL_protected_passtika.xlsx",
    "testEXCEL_protected_passtika_2.xlsx", "testODTEncrypted.odt", "testPPT_protected_passtika.ppt",
    "testPPT_protected_passtika.pptx", "testWORD_protected_passtika.doc", "testWORD_protected_passtika.docx",
    "testPDF_no_extract_no_accessibility_owner_user.pdf", "testPDF_no_extract_yes_accessibility_owner_user.pdf",
}  # fmt: skip
BROKEN = {"testWORD_truncated.docx"}
# images that Tika reads by OCR, documents with metadata only, and those with text in unsupported parts: objects
# embedded in RTF, formula fields (EQ), a link to another document, an unterminated binary group
WITHOUT_TEXT = {
    "testOCR.docx", "testOCR.pdf", "testOCR.pptx", "testPDF_Version.10.x.pdf", "testPDF_Version.11.x.PDFA-1b.pdf",
    "testPDF_Version.4.x.pdf", "testPDF_Version.5.x.pdf", "testPDF_Version.6.x.pdf", "testPDF_Version.7.x.pdf",
    "testPDF_Version.8.x.pdf", "testPDF_Version.9.x.pdf", "testPDF_diffTitles.pdf", "testPDF_twoAuthors.pdf",
    "testWORD_multi_authors.doc", "testWORD_multi_authors.docx", "testRTFEmbeddedFiles.rtf", "testRTFEmbeddedLink.rtf",
    "testWORD_phonetic.doc", "testDocumentLink.doc", "testBinControlWord.rtf",
}  # fmt: skip


class Documents:
    """The jar with the documents, and a parser for them."""

    def __init__(self) -> None:
        self.jar = zipfile.ZipFile(tika_jar())
        self.names = [
            name[15:] for name in self.jar.namelist() if name.startswith("test-documents/") and name[-1] != "/"
        ]
        self.conf = Configuration.load(overrides={"parser.timeout": "60", "http.agent.name": "x"})
        self.parsing = ParseWorkerClient(self.conf)

    def parse(self, name: str, content: bytes | None = None) -> Parse:
        body = self.jar.read(f"test-documents/{name}") if content is None else content
        url = f"http://h.test/{name}"
        return self.parsing.parse(url, create_page(url, body, None, self.conf))


@pytest.fixture(scope="module")
def documents() -> Iterator[Documents]:
    made = Documents()
    yield made
    made.parsing.close()
    made.jar.close()


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text).lower()


def test_tika_test_expectations_are_met(documents: Documents) -> None:
    passed = 0
    for name, texts in EXPECTED.items():
        parse = documents.parse(name)
        places = [parse.title, parse.text, *(link.url for link in parse.outlinks)]
        places += [value.decode() for value in parse.metadata.values()]
        hay = squeezed(" ".join(places))
        for text in texts:
            assert squeezed(text) in hay, (name, text)
            passed += 1
    print(f"{len(EXPECTED)} documents: {passed}/{passed} texts found")
    assert passed > 200


def test_every_office_and_pdf_file_has_expected_status(documents: Documents) -> None:
    seen: Counter[str] = Counter()
    for name in filter(OFFICE.fullmatch, documents.names):
        parse = documents.parse(name)
        if name in ENCRYPTED:
            assert (parse.major, parse.minor) == (ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION), name
            assert "encrypted" in parse.args[0]
            seen["encrypted"] += 1
        elif name in BROKEN:
            assert (parse.major, parse.minor) == (ParseStatusCode.FAILED, ParseStatusCode.INVALID_FORMAT), name
            seen["broken"] += 1
        else:
            assert parse.major == ParseStatusCode.SUCCESS, (name, parse.args)
            if name not in WITHOUT_TEXT:
                assert parse.text or parse.title, name
            seen["read"] += 1
    print(dict(seen))
    assert seen["read"] > 200
    assert seen["encrypted"] == len(ENCRYPTED)


@pytest.mark.parametrize("name", ["testPDF.pdf", "testWORD.docx", "testEXCEL.xlsx", "testPPT.pptx", "testWORD.doc",
    "testEXCEL.xls", "testPPT.ppt", "testODFwithOOo3.odt", "testEPUB.epub"])  # fmt: skip
def test_truncated_file_has_status(documents: Documents, name: str) -> None:
    whole = documents.jar.read(f"test-documents/{name}")
    for part in (len(whole) // 2, len(whole) // 10, 600):
        parse = documents.parse(name, whole[:part])
        if parse.major == ParseStatusCode.FAILED:
            assert parse.minor in (ParseStatusCode.INVALID_FORMAT, ParseStatusCode.EXCEPTION), (part, parse.args)
            assert parse.args[0]


def test_wrong_file_name_is_harmless(documents: Documents) -> None:
    body = documents.jar.read("test-documents/testWORD.docx")
    for name in ("x.pdf", "x.doc", "x.zip", "x"):
        parse = documents.parse(name, body)
        assert "Sample Word Document" in parse.title + parse.text, name
