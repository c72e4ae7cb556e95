"""Similar words are looked for in the languages of the index; English rules find names of other languages, too."""

import pytest

from nutch2py.search.search_backends import open_search_backend
from tests.indexer.delivery_suite import write
from tests.indexer.pages import doc

SWEDISH = {"has": "Han har en hund", "name": "Kublai var khan", "town": "Harnes är en stad"}


def indexed(conf, *pages):
    write(conf, *(doc(f"org.a:http/{name}", title="Sida", content=text, **more) for name, text, more in pages))
    return open_search_backend(conf)


@pytest.fixture
def swedish(conf):
    return indexed(conf, *((name, text, {"lang": "sv"}) for name, text in SWEDISH.items()))


@pytest.mark.parametrize(
    ("query", "corrected", "best"),
    [
        ("harness", "harnes", "town"),  # har by the rules of English
        ("Kublais", "", "name"),  # the genitive is known by the rules of English
        ("hundar", "", "has"),
    ],
)
def test_words_are_corrected_by_languages_of_index(swedish, query, corrected, best):
    result = swedish.search(query)
    assert result.corrected_query == corrected
    assert [hit.id.rpartition("/")[2] for hit in result.hits][:1] == [best]


def test_latin_word_of_greek_pages_is_corrected(conf):
    assert indexed(conf, ("w", "windows και γάτες", {"lang": "el"})).correct_query("windwos") == "windows"
