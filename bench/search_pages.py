"""Generated pages and queries of the benchmark of searches: real words of six languages with their frequencies.

The words are those of the lists of wordfreq, whose frequencies follow Zipf's law as in real texts.
"""

from __future__ import annotations

import gzip
import itertools
import random
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from bench.ranking.typos import random_edit
from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.records.document import NutchDocument
from nutch2py.url.keys import reverse_url

LANGUAGES = {"en": 45, "de": 15, "fr": 12, "es": 10, "ru": 8, "zh": 10}
"""Percent of the pages and queries in each language."""
_QUESTIONS = {
    "en": ("what is the {} of a {}?", "how do I {} the {} in {}", "why does {} not {} with my {}?"),
    "de": ("was ist {} in der {}?", "wie kann ich {} mit {} und {}", "warum hat {} kein {}?"),
    "fr": ("qu'est-ce que {} dans la {} ?", "comment puis-je {} avec {} et {}", "pourquoi {} n'est pas {} ?"),
    "es": ("¿qué es {} en la {}?", "cómo puedo {} con {} y {}", "¿por qué {} no tiene {}?"),
    "ru": ("что такое {} в {}?", "как я могу {} с {} и {}", "почему {} не {}?"),
    "zh": ("什么是{}的{}？", "如何{}和{}{}", "为什么{}没有{}？"),
}
_WORDS = 400  # of a page
_TOPIC = 8  # words that a page repeats
_TOPIC_SHARE = 0.12  # of a page's words
_SENTENCE = 14  # words
_FUNCTION_WORDS, _CONTENT_WORDS = 300, 60_000  # ranks: more frequent words are function words, rarer ones no queries


class Vocabulary(NamedTuple):
    """The words of a language, the most frequent ones first, with the sums of their frequencies so far."""

    lang: str
    words: list[str]
    sums: list[float]

    def draw(self, chance: random.Random, number: int) -> list[str]:
        """Return words as often as texts have them."""
        return chance.choices(self.words, cum_weights=self.sums, k=number)

    def content(self, chance: random.Random, number: int) -> list[str]:
        """Return words of which queries and titles are made: no function words, frequent ones more often."""
        last = min(len(self.words), _CONTENT_WORDS)
        # Zipf's law is uniform in the logarithm of the rank.
        ranks = (int(_FUNCTION_WORDS * (last / _FUNCTION_WORDS) ** chance.random()) for _ in range(number))
        return [self.words[rank] for rank in ranks]

    def frequent(self, number: int) -> list[str]:
        """Return the most frequent words."""
        return self.words[:number]

    def join(self, words: list[str]) -> str:
        """Return words as a text of the language."""
        return ("" if self.lang == "zh" else " ").join(words)

    def question(self, chance: random.Random) -> str:
        """Return a question with content words."""
        form = chance.choice(_QUESTIONS[self.lang])
        return form.format(*self.content(chance, form.count("{}")))


def read_vocabulary(lang: str) -> Vocabulary:
    """Return the words of a language in the large list of wordfreq."""
    spec = find_spec("wordfreq")
    if spec is None or spec.origin is None:
        raise SystemExit("this benchmark needs the package wordfreq")
    path = Path(spec.origin).parent / "data" / f"large_{lang}.msgpack.gz"
    # The item with the number i, counted after the header, holds the words with a frequency of 10^(-i/100).
    buckets = msgspec.msgpack.decode(gzip.decompress(path.read_bytes()))[1:]
    pairs = [(word, 10 ** (-number / 100)) for number, words in enumerate(buckets) for word in words if word.isalpha()]
    return Vocabulary(lang, [word for word, _ in pairs], [*itertools.accumulate(share for _, share in pairs)])


def index_pages(conf: Configuration, pages: int) -> None:
    """Create an embedded index of generated pages."""
    vocabularies = {lang: read_vocabulary(lang) for lang in LANGUAGES}
    chance = random.Random(pages)
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    for number in range(pages):
        lang = chance.choices([*LANGUAGES], [*LANGUAGES.values()])[0]
        writer.write(_make_page(number, vocabularies[lang], chance))
    writer.close()


def _make_page(number: int, words: Vocabulary, chance: random.Random) -> NutchDocument:
    topic = words.content(chance, _TOPIC)
    said = words.draw(chance, _WORDS)
    for at in range(_WORDS):
        if chance.random() < _TOPIC_SHARE:
            said[at] = chance.choice(topic)
    sentences = [words.join(said[at : at + _SENTENCE]).capitalize() for at in range(0, _WORDS, _SENTENCE)]
    url = f"http://h{number // 500:04d}.bench.example/d{number % 7}/p{number % 500:04d}.html"
    document = NutchDocument()
    for name, value in {
        "id": reverse_url(url), "url": url, "host": urlsplit(url).netloc, "lang": words.lang,
        "title": words.join(topic[: chance.randrange(3, 6)]).title(), "boost": "1.0",
        "content": ("。" if words.lang == "zh" else ". ").join(sentences),
        "type": chance.choice(("text/html", "text/html", "application/pdf")),
        "date": f"20{chance.randrange(10, 27)}-0{chance.randrange(1, 10)}-11T00:00:00Z",
    }.items():  # fmt: skip
        document.add(name, value)
    return document


def write_typo(word: str, chance: random.Random) -> str:
    """Return a word with one typing error."""
    return random_edit(word, chance) if len(word) > 1 else word + word
