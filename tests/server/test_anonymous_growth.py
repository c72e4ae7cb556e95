"""What anybody may request has a bounded answer and bounded work, whatever the parameters and the pages are.

Work is counted, not timed: calls of Python functions in the server's threads, and bytes of memory at once.
"""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.records.cells import ParseStatus
from nutch2py.records.webpage import WebPage
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.suggestions.prefix_terms import MAX_TEXT_CHARACTERS
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.indexer.pages import doc
from tests.server.conftest import Running, running
from tests.server.test_serve import get

WORDS = ["plankton", "whale", "harbour", "compiler", "network", "protocol", "archive", "quantum", "garden", "violin"]
PAGE_CHARACTERS, PAGES = 40_000, 10
QUERIES = {
    "word": "plankton",
    "prefix": "pl",
    "words": " ".join(WORDS * 10),
    "alternatives": " OR ".join(WORDS * 9),
    "phrases": " ".join(f'"{first} {second}"' for first in WORDS for second in WORDS),
    "exclusions": "plankton " + " ".join(f"-{word}" for word in WORDS * 9),
    "parentheses": "(" * 490 + "plankton" + ")" * 490,
    "fields": " ".join(f"title:{word} content:{word} url:{word}" for word in WORDS * 3),
    "letters": " ".join("abcdefghij" * 50),
    "one long word": "p" * 1000,
    "without spaces": "中" * 199,
    "emoji": "🦀" * 999,
    "prefixes": " ".join(word[:3] for word in WORDS * 5)[:199],
    "typing errors": " ".join(f"{word[:-1]}x" for word in WORDS * 9),
    "signs": "\"'*~^:+-!/\\" * 90,
}
PATHS = ("/", "/search.json", "/suggest", "/explain", "/cached", "/cached/view", "/opensearch.xml", "/style.css",
         "/search.js", "/icon.svg", "/api/v1/search", "/api/v1/suggest")  # fmt: skip
KEY = reverse_url("http://h1.test/")
MAX_CALLS = 400_000
"""Python calls of one request: some 0.5 s of CPU."""


class CallCounter:
    """Counts the calls of Python functions in all threads that start within :meth:`counting`."""

    def __init__(self) -> None:
        self.calls = 0

    def _count(self, _frame: object, event: str, _argument: object) -> None:
        self.calls += event == "call"

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count in the threads that start in the block."""
        threading.setprofile(self._count)
        try:
            yield
        finally:
            threading.setprofile(None)


def words(number: int, count: int) -> str:
    """Return text of ``count`` of the words, which differs with ``number``."""
    return " ".join(WORDS[(number + at) % 10] for at in range(count))


@contextmanager
def server_of(folder: Path, texts: list[str], **more: str) -> Iterator[tuple[Running, CallCounter]]:
    """Serve an index of pages, of which the second has a copy; its threads are counted."""
    conf = Configuration.load(
        overrides={
            "storage.data.store": f"embedded:{folder / 'crawldata'}",
            "storage.embedded.map.size": str(1 << 30),
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    with IndexWriters(conf) as writers:
        writers.prepare()
        for number, text in enumerate(texts):
            url = f"http://h{number}.test/"
            fields = {"title": f"Plankton whale {number}", "content": text, "lang": "en"}
            writers.write(doc(reverse_url(url), url=url, host=f"h{number}.test", **fields))
        writers.commit()
    page = WebPage()
    page.content, page.content_type, page.title = b"<p>" + texts[1].encode(), "text/html", "Plankton"
    page.text, page.parse_status = "plankton", ParseStatus(1, 0, ())
    store = open_store(conf, WebPage)
    store.create()
    with store.batch() as batch:
        batch.put(KEY, page)
    counter = CallCounter()
    with counter.counting(), running(conf) as made:
        for path in PATHS:  # fills what every request shares
            get(made, f"{path}?{urlencode({'q': 'plankton', 'id': KEY})}")
        yield made, counter


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, CallCounter]]:
    """Yield a server of an index of large pages, and the counter of its calls."""
    texts = [words(number, PAGE_CHARACTERS // 8) for number in range(PAGES)]
    with server_of(tmp_path_factory.mktemp("growth"), texts) as made:
        yield made


@pytest.fixture
def server(counted: tuple[Running, CallCounter]) -> Running:
    """Return the server of an index of large pages."""
    return counted[0]


def request(server: Running, path: str, **arguments: object) -> tuple[int, int]:
    """Return status and bytes of a request; only some paths have a document."""
    if path not in ("/explain", "/cached", "/cached/view"):
        arguments.pop("id", None)
    response, body = get(server, f"{path}?{urlencode(arguments)}")
    return response.status, len(body.encode())


@pytest.mark.parametrize("path", PATHS)
def test_answer_and_work_for_query_are_bounded(counted: tuple[Running, CallCounter], path: str) -> None:
    server, counter = counted
    limit = 1_200_000 if path == "/cached/view" else 200_000  # bytes; search.cached.max.characters of a page
    for name, query in QUERIES.items():
        before = counter.calls
        status, size = request(server, path, q=query[:1000], id=KEY)
        assert (name, status in (200, 400, 404)) == (name, True)
        assert (name, size < limit) == (name, True), size
        assert (name, counter.calls - before < MAX_CALLS) == (name, True), counter.calls - before


_FILLER = ". " * 20_000
"""Text without words, so that a large page is indexed fast; matches lie all over it."""
SIZES = (250_000, 4_000_000)


def page_text(size: int) -> str:
    """Return the text of a page of ``size`` characters."""
    start = words(0, min(size, PAGE_CHARACTERS) // 8)
    rest = (size - len(start)) // (len(_FILLER) + 18)
    return start + "".join(f"{_FILLER} plankton {WORDS[at % 10]:8}" for at in range(rest))


def test_work_does_not_grow_with_pages_and_memory_is_that_of_one(tmp_path: Path) -> None:
    """Beyond the characters that snippets and suggestions read; of a page, its bytes and its text are in memory."""
    paths = [path for path in PATHS if "." not in path or path == "/search.json"]
    work: dict[str, list[tuple[int, int]]] = {path: [] for path in paths}
    for size in SIZES:
        (tmp_path / str(size)).mkdir()
        texts = [page_text(size)] * 2
        with server_of(tmp_path / str(size), texts) as (server, counter):
            for path in paths:
                before = counter.calls
                gc.collect()
                tracemalloc.start()
                status, answer = request(server, path, q="plankton whal", id=KEY)
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert status in (200, 404)
                assert answer < 1_200_000
                work[path].append((counter.calls - before, peak))
    for path, measured in work.items():
        calls = [each for each, _ in measured]
        assert (path, max(calls) < MAX_CALLS) == (path, True), calls
        assert (path, calls[1] < 1.2 * calls[0] + 2_000) == (path, True), calls
        for size, (_, peak) in zip(SIZES, measured, strict=True):
            assert (path, size, peak < 3.5 * size + 14_000_000) == (path, size, True), peak


def test_suggestions_read_the_start_of_pages(server: Running) -> None:
    index = EmbeddedSearcher(server.app.state.authorizer.context.conf)
    read = [
        *index.documents_with_term("plankton", 5),
        *index.similar_documents("planktn", 5),
        *(hit.fields for hit in index.find_documents("plankton", 8)),
        *(hit.fields for hit in index.find_documents("title:whale", 8)),
    ]
    assert len(read) > 15
    assert {len(fields["content"]) for fields in read} == {MAX_TEXT_CHARACTERS}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "arguments",
    [{"start": 10**8}, {"start": "9" * 60_000}, {"id": "x" * 60_000}, {"host": "h" * 60_000}, {"partial": "1" * 60_000},
     {"sort": "s" * 60_000}, {"rows": 10**9}, {f"a{number}": "x" for number in range(2_000)}, {"q": "p" * 60_000}],
    ids=lambda given: next(iter(given)) + str(len(given)),
)  # fmt: skip
def test_answer_to_other_parameters_is_bounded(server: Running, path: str, arguments: dict[str, object]) -> None:
    status, size = request(server, path, **{"q": "plankton", **arguments})
    assert status in (200, 400, 404, 414)
    assert size < 300_000
