"""What anybody may request has a bounded answer and reads bounded texts, whatever the parameters and the pages are."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.search.suggestions.prefix_terms import MAX_TEXT_CHARACTERS
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield a server of an index of large pages."""
    conf = Configuration.load(
        overrides={
            "storage.data.store": f"embedded:{tmp_path_factory.mktemp('growth') / 'crawldata'}",
            "storage.embedded.map.size": str(1 << 30),
        }
    )
    with IndexWriters(conf) as writers:
        writers.prepare()
        for number in range(PAGES):
            url = f"http://h{number}.test/"
            text = " ".join(WORDS[(number + at) % 10] for at in range(PAGE_CHARACTERS // 8))
            fields = {"title": f"Plankton whale {number}", "content": text, "lang": "en"}
            writers.write(doc(reverse_url(url), url=url, host=f"h{number}.test", **fields))
        writers.commit()
    with running(conf) as made:
        for path in PATHS:  # fills what every request shares
            get(made, f"{path}?{urlencode({'q': 'plankton', 'id': KEY})}")
        yield made


def request(server: Running, path: str, **arguments: object) -> tuple[int, int]:
    """Return status and bytes of a request; only some paths have a document."""
    if path not in ("/explain", "/cached", "/cached/view"):
        arguments.pop("id", None)
    response, body = get(server, f"{path}?{urlencode(arguments)}")
    return response.status, len(body.encode())


@pytest.mark.parametrize("path", PATHS)
def test_answer_to_query_is_bounded(server: Running, path: str) -> None:
    for name, query in QUERIES.items():
        status, size = request(server, path, q=query[:1000], id=KEY)
        assert (name, status in (200, 400, 404)) == (name, True)
        assert (name, size < 200_000) == (name, True), size


def test_suggestions_read_the_start_of_pages(server: Running) -> None:
    with server.app.state.search.searchers.acquire() as index:
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
