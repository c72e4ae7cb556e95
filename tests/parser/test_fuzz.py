"""Real pages and office files, damaged in 11,000 ways: no crash, no hang, no memory beyond the limit.

``NUTCH2PY_FUZZ_PAGES`` and ``NUTCH2PY_FUZZ_FILES`` set how many (10,000 and 1,000); ``NUTCH2PY_FUZZ_SEED`` the seed.
"""

from __future__ import annotations

import os
import random
import re
import resource
import time
import zipfile
from collections import Counter

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.parsechecker import create_page
from nutch2py.parser.row_parser import RowParser
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.records.webpage import ParseStatusCode

from .trees import pages, tika_jar

PAGES = int(os.environ.get("NUTCH2PY_FUZZ_PAGES", "10000"))
FILES = int(os.environ.get("NUTCH2PY_FUZZ_FILES", "1000"))
SEED = int(os.environ.get("NUTCH2PY_FUZZ_SEED", "8"))
MAX_BYTES = 40_000  # of a page: damage shows in small ones as well, and more of them fit into the time
ENDINGS = (
    ".pdf", ".docx", ".xlsx", ".pptx", ".doc", ".xls", ".ppt", ".odt", ".ods", ".odp", ".rtf", ".epub", ".zip", ".tar",
    ".tgz", ".gz", ".eml", ".mbox", ".msg", ".png", ".jpg", ".gif", ".tif", ".rss", ".atom", ".xml",
)  # fmt: skip
SPACE = re.compile(r"[\s\x00-\x20]")
PIECES = (
    b"<", b">", b"<!--", b"-->", b"<script>", b"</script>", b"<![CDATA[", b"\0", b"\xff\xfe", b"&#x110000;", b"<svg>",
    b"</", b"<a href=", b"'", b'"', b"<table><a>", b"<template>", b"<frameset>", b"<base href='//'>", b"\x1b$B",
    b"<plaintext>",
)  # fmt: skip


def damaged(chance: random.Random, body: bytes, pieces: tuple[bytes, ...]) -> bytes:
    """Return a copy with some of: bytes changed, a part cut out, doubled or moved, the end lost, pieces put in."""
    data = bytearray(body)
    for _ in range(chance.randint(1, 6)):
        size = len(data)
        if not size:
            break
        at, to = sorted((chance.randrange(size), chance.randrange(size)))
        match chance.randrange(6):
            case 0:
                for _ in range(chance.randint(1, 50)):
                    data[chance.randrange(size)] = chance.randrange(256)
            case 1:
                del data[at : min(to, at + 5000)]
            case 2:
                data[at:at] = data[at : min(to, at + 5000)]
            case 3:
                del data[to + 1 :]
            case 4:
                data[at : at + 4] = chance.choice(
                    (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\0\0\0\x80")
                )
            case _:
                for _ in range(chance.randint(1, 10)):
                    place = chance.randrange(len(data) + 1)
                    data[place:place] = chance.choice(pieces)
    return bytes(data)


def test_damaged_pages_have_status(conf: Configuration) -> None:
    files = [path for path in pages("debian-handbook") + pages("apache2-doc") if path.stat().st_size < MAX_BYTES]
    chance = random.Random(SEED)
    parsing = RowParser(conf)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    longest = 0.0
    for number in range(PAGES):
        path = chance.choice(files)
        body = damaged(chance, path.read_bytes(), PIECES)
        url = f"http://h.test/{path.name}"
        page = create_page(url, body, "text/html", conf)
        page.content_type = "text/html"
        start = time.process_time()
        parse = parsing.parse(url, page)
        longest = max(longest, time.process_time() - start)
        assert parse.major == ParseStatusCode.SUCCESS, (number, path, parse.args)
        parse.text.encode()
        for target in parsing.outlink_filter.filter_outlinks(url, parse.outlinks):
            assert not SPACE.search(target), (number, target)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{PAGES} pages; the longest took {longest:.2f} s; {grown >> 10} MB more")
    assert longest < conf.get_float("parser.timeout")
    assert grown < 500 << 10


def test_damaged_files_have_status(conf: Configuration) -> None:
    conf.set("parser.timeout", 20)
    conf.set("parser.child.memory.mb", 768)
    parsing = ParseWorkerClient(conf)
    chance = random.Random(SEED)
    ends: Counter[str] = Counter()
    slow = 0
    with zipfile.ZipFile(tika_jar()) as jar:
        names = [
            entry.filename
            for entry in jar.infolist()
            if entry.filename.startswith("test-documents/")
            and entry.filename.lower().endswith(ENDINGS)
            and entry.file_size < 300_000
        ]
        for number in range(FILES):
            name = names[number % len(names)]
            whole = jar.read(name)
            url = f"http://h.test/{name.rpartition('/')[2]}"
            page = create_page(url, whole, None, conf)  # the type of the sound file: damage must reach the parser
            page.content = damaged(chance, whole, (b"\0", b"{", b"}", b"<", b"&", b"\\", b"\xff" * 8))
            start = time.process_time()
            parse = parsing.parse(url, page)
            assert time.process_time() - start < 20, name  # the time of the worker is limited by parser.timeout
            assert parse.major in (ParseStatusCode.SUCCESS, ParseStatusCode.FAILED)
            reason = parse.args[0] if parse.args else "parsed"
            assert "the parser process ended" not in reason, (number, name, reason)
            slow += "parser.timeout" in reason
            ends["parsed" if parse.major == ParseStatusCode.SUCCESS else "failed"] += 1
    parsing.close()
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"{FILES} files: {dict(ends)}; {slow} beyond the time limit; children took {most} MB at most")
    assert ends["parsed"] > FILES // 4  # the damage is not such that nothing is read any more
