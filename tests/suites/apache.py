"""Test files of Apache Tika, POI and PDFBox: their location, and a parse of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse
from nutch2py.parser.parsechecker import create_page
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.webpage import ParseStatusCode
from tests.suites.suite import Repository

_STANDARD = "/tika-parsers/tika-parsers-standard/**/src/test/"
TIKA = Repository(
    "apache/tika",
    "2b70202aaec3db48fd5ff4d996d974444a750a11",
    # these two are larger than what mirrors of the repository keep, and of formats or tests that no suite here reads
    (
        _STANDARD,
        "tika-mimetypes.xml",
        "!testChm2.chm",
        "!testRecordSizeExceeded.xlsx",
        "!breidamerkurjokull_radar_profiles_2009.mat",
    ),
)
POI = Repository(
    "apache/poi",
    "a528d43590b3f71aa94310de881a35af887fdd0f",
    ("/test-data/", "!Bug61268.doc", "!multimedia.doc", "!ex45698-22488.xls"),  # large files, which mirrors lack
)
PDFBOX = Repository("apache/pdfbox", "89a917394c762257017c27e0cf5189605776aa57", ("/pdfbox/src/test/resources/input/",))


def tika_files(folder: Path) -> dict[str, Path]:
    """Return Tika's test documents by the name that its tests call them by."""
    files = {}
    for place in sorted(folder.rglob("test-documents")):
        for file in sorted(place.rglob("*")):
            if file.is_file():
                files.setdefault(file.relative_to(place).as_posix(), file)
    return files


def reader(conf: Configuration) -> Callable[[Path], Parse]:
    """Return a cached function that parses a file as the crawler does, in a child process with its limits."""
    parsing = ParseWorkerClient(conf)
    seen: dict[Path, Parse] = {}

    def read(file: Path) -> Parse:
        if file not in seen:
            url = f"http://h.test/{file.name}"
            seen[file] = parsing.parse(url, create_page(url, file.read_bytes(), None, conf))
        return seen[file]

    return read


def rejection(parse: Parse) -> str:
    """Return why a parse failed, or ""."""
    return "" if parse.major == ParseStatusCode.SUCCESS else " ".join(parse.args) or "failed without a reason"
