"""The Tika server parser against a real server: unsupported formats and configured types."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.parsechecker import create_page
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.webpage import ParseStatusCode
from tests.parser.trees import tika_jar
from tests.services import Service, running


class TikaServer(Service):
    """An instance of Tika's server."""

    kind = "tika"


@pytest.fixture(scope="module")
def tika() -> Iterator[TikaServer]:
    with running(TikaServer()) as server:
        yield server


@pytest.fixture(scope="module")
def documents() -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(tika_jar()) as jar:
        yield jar


@pytest.fixture
def asking(conf: Configuration, tika: TikaServer) -> Configuration:
    conf.set("plugin.includes", "parse-(html|tika|tika-server)|urlnormalizer-basic|urlfilter-validator")
    conf.set("tika.server.url", tika.endpoint)
    conf.set("parser.timeout", "60")
    return conf


def parsed(name: str, content: bytes, conf: Configuration) -> Parse:
    """Return the parse of a document as the crawler makes it."""
    url = f"http://h.test/{name}"
    parsing = ParseWorkerClient(conf)
    try:
        return parsing.parse(url, create_page(url, content, None, conf))
    finally:
        parsing.close()


@pytest.mark.parametrize(("name", "text"), [
    ("testVISIO.vsd", "Some random text, on a page"),
    ("testPUBLISHER.pub", "0123456789"),
    ("testWordPerfect.wpd", "AND FURTHER"),
])  # fmt: skip
def test_tika_server_parses_unsupported_types(
    name: str, text: str, asking: Configuration, documents: zipfile.ZipFile
) -> None:
    parse = parsed(name, documents.read(f"test-documents/{name}"), asking)
    assert text in parse.text
    assert name != "testVISIO.vsd" or parse.metadata["dc:creator"] == b"Hogwarts"


def test_tika_server_parses_configured_type(asking: Configuration, documents: zipfile.ZipFile, tmp_path: Path) -> None:
    """A workbook format that is rejected as unsupported."""
    kind = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
    listed = f'<mimeType name="{kind}"><plugin id="parse-tika-server"/></mimeType>'
    plugins = tmp_path / "parse-plugins.xml"
    content = documents.read("test-documents/testEXCEL.xlsb")
    asking.set("parse.plugin.file", str(plugins))
    plugins.write_text("<parse-plugins/>")
    assert "binary workbooks: unsupported format" in parsed("testEXCEL.xlsb", content, asking).args[0]
    plugins.write_text(f"<parse-plugins>{listed}</parse-plugins>")
    assert "This is an example spreadsheet" in parsed("testEXCEL.xlsb", content, asking).text


def test_truncated_document_fails(asking: Configuration, documents: zipfile.ZipFile) -> None:
    """The server answers 200 all the same."""
    content = documents.read("test-documents/testVISIO.vsd")[:600]
    parse = parsed("testVISIO.vsd", content, asking)
    assert (parse.major, parse.minor) == (ParseStatusCode.FAILED, ParseStatusCode.EXCEPTION)
    assert "Exception" in parse.args[0]
