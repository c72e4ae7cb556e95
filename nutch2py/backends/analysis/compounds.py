"""CompoundSplitter: the parts of compounds of German, Dutch, Swedish, Danish, Norwegian and Finnish.

A compound is a sequence of known words with linking letters between them: ``Haftpflicht|versicherung``,
``Arbeit|s|vertrag``. The known words are the 25,000 to 60,000 most frequent ones of the language from the package
wordfreq. Among several divisions the one with the most frequent words wins (Koehn and Knight, 2003). The division of a
word depends on the word alone, so that pages and queries agree in every index and from the first page on.

Only the short lists of wordfreq are read, without an import of the package, which would load its tokenizers.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from nutch2py.backends.analysis.stopwords import get_stopwords
from nutch2py.support.bounded_cache import word_cache

_MAX_LENGTH = 40  # characters of a word that is divided
_MAX_PARTS = 5
_LINK_COST = 0.5
_MAX_COST = 7.5  # of a part, in decades below the most frequent word conceivable: 3 parts in a million
_MAX_SHORT_COST = 5.0  # of a part of three letters
_MIN_WHOLE_COST = 4.1  # a more frequent word is no compound in the sense of its parts: Deutschland, Menschen


class _Rules(NamedTuple):
    """``links``: linking letters; ``no_first``, ``no_last``: prefixes and suffixes that are words, too."""

    list_name: str
    min_length: int
    links: frozenset[str]
    no_first: frozenset[str]
    no_last: frozenset[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RULES = {
    "de": _Rules(
        "de", 8, _words("s es n en er e ens"),
        _words(
            "ver ent zer miss ein wied inter non anti dis pro los her ion stand den der das hin ant art"
        ),
        _words(
            "schaft schaften lich liche lichen licher liches chen lein heit heiten keit keiten ung ungen ion "
            "ionen isch ische ischen tum haft hafte haften los lose losen loser bar bare baren sam same "
            "samen weise fach fache fachen artig ende enden innen erin ern ieren tion tionen ige igen igkeit "
            "nehmen stehen gehen kommen eien reich ler ner rat rate den der des ten ter end lang tags mals"
        ),
    ),
    "nl": _Rules(
        "nl", 8, _words("s en e er n"),
        _words("ver her ont ten aan waar ant non anti inter los pro"),
        _words(
            "lijk lijke lijks lijker heid heden ing ingen ende enden schap schappen baar bare loos loze isch "
            "ische ten ter tie ties ste den eren eerd ering zaam achtig tig"
        ),
    ),
    "sv": _Rules(
        "sv", 7, _words("s e o es a"),
        _words("för ant non anti inter miss pro van mis bes ann hel"),
        _words(
            "het heten heter heterna lig liga ligt ligen ning ningar ningen ande ende are aren arna else "
            "elser skap skapet bar bart sam samt vis ska ska ade ades ingen ökning tid tiden ens ens isk "
            "iska iskt"
        ),
    ),
    "da": _Rules(
        "nb", 7, _words("s e er n es"),
        _words("for ant non anti inter mis pro und van hel"),
        _words(
            "hed heden heder lig lige ligt ligere else elsen elser ning ningen ninger skab skabet vis bar "
            "som ende inge ingen hold isk iske tid tiden ere erne eren"
        ),
    ),
    "no": _Rules(
        "nb", 7, _words("s e er n es"),
        _words("for ant non anti inter mis pro und van hel"),
        _words(
            "het heten heter lig lige ligere else elsen elser ning ningen ninger skap skapet vis bar som "
            "ende inge ingen hold isk iske tid tiden ere erne eren"
        ),
    ),
    "fi": _Rules(
        "fi", 8, _words("n"),
        _words("epä anti inter ant van sen ali ole sie tuo alu esi"),
        _words(
            "minen misen sen ssa ssä sta stä lla llä lta ltä lle kin kaan kään han hän lainen laisen laiset "
            "laista inen isen iset ista alainen opisto ton tön maton nen set sti ksi taan tään aan isin"
        ),
    ),
}  # fmt: skip
COMPOUND_LANGUAGES = frozenset(_RULES)
"""Codes of the languages whose compounds are divided."""
_ALLOWED_FILLERS = frozenset({"mehr", "selbst", "neben", "hele", "itse", "själv", "selv", "zelf"})


class CompoundSplitter:
    """Divides words of one language, and remembers their parts."""

    def __init__(self, language: str, costs: dict[str, float]) -> None:
        self._rules = _RULES[language]
        self._whole_costs = costs
        self._parts_by_word = word_cache(self._divide)
        fillers = get_stopwords(language) - _ALLOWED_FILLERS
        self._costs = {
            word: cost
            for word, cost in costs.items()
            if len(word) > 2
            and word.isalpha()
            and word not in fillers
            and cost <= (_MAX_COST if len(word) > 3 else _MAX_SHORT_COST)
        }

    def split(self, word: str) -> tuple[str, ...]:
        """Return the words that make up a compound, in lower case and without links; empty for any other word."""
        return self._parts_by_word[word]

    def _divide(self, word: str) -> tuple[str, ...]:
        word = word.replace("ß", "ss")
        rules, length = self._rules, len(word)
        if not rules.min_length <= length <= _MAX_LENGTH or self._whole_costs.get(word, 9.0) < _MIN_WHOLE_COST:
            return ()
        best: list[tuple[float, tuple[str, ...]] | None] = [(0.0, ()), *[None] * length]
        for start in range(length - 2):
            before = best[start]
            if before is None or len(before[1]) >= _MAX_PARTS:
                continue
            for end in range(start + 3, length + 1 if start else length):
                for part, cost in self._iter_parts(word[start:end], is_first=not start, is_last=end == length):
                    total, present = before[0] + cost, best[end]
                    if present is None or total < present[0]:
                        best[end] = total, (*before[1], part)
        found = best[length]
        return found[1] if found is not None else ()

    def _iter_parts(self, piece: str, is_first: bool, is_last: bool) -> Iterator[tuple[str, float]]:
        """Yield the known words that a piece of a compound may stand for, with their costs."""
        cost = self._costs.get(piece)
        rules = self._rules
        if cost is not None and not (is_first and piece in rules.no_first) and not (is_last and piece in rules.no_last):
            yield piece, cost
        if is_last:
            return
        for size in (1, 2, 3):
            stem = piece[:-size]
            if len(stem) < 3 or piece[-size:] not in rules.links or (is_first and stem in rules.no_first):
                continue
            if (cost := self._costs.get(stem)) is not None:
                yield stem, cost + _LINK_COST


def iter_subcompounds(parts: tuple[str, ...], word: str) -> Iterator[str]:
    """Yield the parts of a compound, and the compounds within it as the word spells them.

    >>> [*iter_subcompounds(("haft", "pflicht", "versicherung"), "haftpflichtversicherung")]
    ['haft', 'pflicht', 'versicherung', 'haftpflicht', 'pflichtversicherung']
    """
    yield from parts
    starts, at = [], 0
    for part in parts:
        at = word.find(part, at)
        if at < 0:  # ß
            return
        starts.append(at)
        at += len(part)
    for size in range(2, len(parts)):
        for first in range(len(parts) - size + 1):
            last = first + size - 1
            yield word[starts[first] : starts[last] + len(parts[last])]


def lexicon_version() -> str:
    """Return the name of the word lists that divide compounds, "" without the package."""
    return "wordfreq" if _data_dir() is not None else ""


@lru_cache(maxsize=8)
def get_splitter(language: str) -> CompoundSplitter | None:
    """Return the splitter of a language, built once per process; None for a language without compounds."""
    folder = _data_dir()
    if folder is None or language not in _RULES:
        return None
    return CompoundSplitter(language, _read_costs(folder / f"small_{_RULES[language].list_name}.msgpack.gz"))


def _read_costs(path: Path) -> dict[str, float]:
    """Return the cost of each word: the decades by which its frequency is below one in one.

    The file is a list; its item i, counted from 0 after the header, holds the words with a frequency of 10^(-i/100).
    """
    buckets = msgspec.msgpack.decode(gzip.decompress(path.read_bytes()))[1:]
    return {word: number / 100 for number, words in enumerate(buckets) for word in words}


@lru_cache(maxsize=1)
def _data_dir() -> Path | None:
    spec = find_spec("wordfreq")
    folder = Path(spec.origin).parent / "data" if spec is not None and spec.origin else None
    return folder if folder is not None and folder.is_dir() else None
