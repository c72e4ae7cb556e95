"""A generated web with planted authority: the source paper's case, an official page among its reprints.

The text of official pages and reprints is equal except for the site's frame. Links distinguish them, as far as reprints
cite, and unless link farms, exchanged links and footers drown that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from bench.ranking.collection import Collection, by_turns
from bench.ranking.planted_words import FILLER, FIRST, NEUTRAL, SAID, SECOND
from nutch2py.search.evaluation.ranking_metrics import Judgement

OFFICIAL, REPRINT, SECTION = Judgement(1.0, 1.0), Judgement(1.0, 0.3), Judgement(0.5, 0.3)
MENTION, MISS = Judgement(0.1, 0.3), Judgement(0.0, 0.3)


class Web(NamedTuple):
    """Parameters of the generated web.

    ``citing``: share of reprints that link to their original (a third as many pages with a section do). ``starts``:
    portals to inject. ``noise``: link farms, exchanged links and footers. ``reprints``, ``sections``: pages per topic.
    """

    seed: int
    topics: int
    citing: float
    starts: int = 1
    noise: bool = True
    reprints: int = 24
    sections: int = 40


WEBS = {
    "planted small": Web(seed=1, topics=16, citing=0.3, starts=1),
    "planted": Web(seed=2, topics=24, citing=0.6, starts=3),
    "planted hard": Web(seed=3, topics=24, citing=0.1, starts=2),
    "planted clean": Web(seed=4, topics=16, citing=0.3, starts=1, noise=False),
}


class Topic(NamedTuple):
    """A subject: ``name`` is the query."""

    lang: str
    first: str
    second: str

    @property
    def name(self) -> str:
        """The words in the language's spelling."""
        return f"{self.first}{' ' if self.lang == 'en' else ''}{self.second}"


@dataclass
class Page:
    """A page: ``links`` are (URL, text)."""

    url: str
    lang: str
    title: str
    text: str
    links: list[tuple[str, str]] = field(default_factory=list)

    def html(self) -> str:
        """Return the HTML of the page."""
        links = "".join(f'<li><a href="{url}">{escape(text)}</a>' for url, text in self.links)
        return (
            f'<!doctype html><html lang="{self.lang}"><head><meta charset="utf-8"><title>{self.title}</title></head>'
            f"<body><h1>{self.title}</h1><p>{self.text}</p><ul>{links}</ul></body></html>"
        )


def planted(name: str, web: Web) -> Collection:
    """Return the collection of a generated web."""
    made = _Generator(web)
    made.write()
    return Collection(
        name,
        f"seed {web.seed}, {web.topics} topics, {web.citing:.0%} of reprints cite{'' if web.noise else ', no noise'}",
        True,
        [f"http://portal-{number}.example/" for number in range(web.starts)],
        {page.url: page.html for page in made.pages.values()},
        by_turns([topic.name for topic in made.topics]),
        made.judgements,
    )


class _Generator:
    def __init__(self, web: Web) -> None:
        self.web, self.random = web, random.Random(web.seed)
        self.pages: dict[str, Page] = {}
        self.sites: dict[str, list[Page]] = {}
        self.topics = [_topic(number) for number in range(web.topics)]
        self.judgements: dict[str, dict[str, Judgement]] = {topic.name: {} for topic in self.topics}
        self.officials: dict[Topic, list[Page]] = {}
        self.reprints: dict[Topic, list[Page]] = {}

    def write(self) -> None:
        """Create the pages, then the links within sites and between them."""
        for topic in self.topics:
            self._official(topic)
        for topic in self.topics:
            self._reprints(topic)
            self._misses(topic)
        self._about_several("blog", SECTION, self.web.sections // 2, 2)
        self._about_several("diary", MENTION, 7, 3)
        self._navigation()
        if self.web.noise:
            self._farm()
            self._exchanges()
            self._footers()
        self._portals()

    def _page(self, site: str, lang: str, title: str, text: str) -> Page:
        mine = self.sites.setdefault(site, [])
        page = Page(f"http://{site}.example/{len(mine)}.html", lang, title, text)
        mine.append(page)
        self.pages[page.url] = page
        return page

    def _text(self, topic: Topic, length: int, names: list[str]) -> str:
        """Return a number of filler words, with the given texts inserted at random positions."""
        filler = FILLER[topic.lang]
        words = [filler[int(len(filler) * self.random.random() ** 2)] for _ in range(length)]
        for name in names:
            words.insert(self.random.randint(0, len(words)), name)
        return ("" if topic.lang == "zh" else " ").join(words)

    def _official(self, topic: Topic) -> None:
        for title in SAID[topic.lang][:2]:
            text = self._text(topic, self.random.randint(80, 160), [topic.name] * self.random.randint(4, 6))
            page = self._page(f"office-{self.topics.index(topic) // 3}", topic.lang, title.format(topic.name), text)
            self.officials.setdefault(topic, []).append(page)
            self.judgements[topic.name][page.url] = OFFICIAL

    def _reprints(self, topic: Topic) -> None:
        for number in range(self.web.reprints):
            original = self.random.choice(self.officials[topic])
            around = self._text(topic, self.random.randint(0, 40), [topic.name] * self.random.randint(0, 2))
            page = self._page(f"reprint-{number}", topic.lang, original.title, f"{original.text} {around}")
            self._cite(page, original, topic, self.web.citing)
            self.reprints.setdefault(topic, []).append(page)
            self.judgements[topic.name][page.url] = REPRINT

    def _cite(self, page: Page, original: Page, topic: Topic, share: float) -> None:
        if self.random.random() < share:
            page.links.append((original.url, self.random.choice(NEUTRAL[topic.lang])))

    def _misses(self, topic: Topic) -> None:
        """Add pages with both words on another subject."""
        others = [word for word in SECOND[topic.lang] if Topic(topic.lang, topic.first, word) not in self.topics]
        for number in range(8):
            name = Topic(topic.lang, topic.first, others[number % len(others)]).name
            text = self._text(topic, self.random.randint(60, 140), [name] * 4 + [topic.second] * 2)
            page = self._page(f"other-{number}", topic.lang, SAID[topic.lang][0].format(name), text)
            self.judgements[topic.name][page.url] = MISS

    def _about_several(self, kind: str, judgement: Judgement, times: int, together: int) -> None:
        """Add pages on several topics of one language: a section on each, or a mention."""
        title = SAID["en"][2 if judgement == SECTION else 3], SAID["zh"][2 if judgement == SECTION else 3]
        for lang, said in zip(("en", "zh"), title, strict=True):
            topics = [topic for topic in self.topics if topic.lang == lang]
            for number in range(times * len(topics)):
                chosen = [
                    topics[(number + step * (1 + number // len(topics))) % len(topics)] for step in range(together)
                ]
                about = dict.fromkeys(chosen)
                names = [topic.name for topic in about] * (2 if judgement == SECTION else 1)
                text = self._text(chosen[0], self.random.randint(80, 200), names)
                heading = said.format(chosen[0].name if judgement == SECTION else self.random.choice(FILLER[lang]))
                page = self._page(f"{kind}-{number % 12}", lang, heading, text)
                for topic in about:
                    self._cite(page, self.random.choice(self.officials[topic]), topic, self.web.citing / 3)
                    self.judgements[topic.name][page.url] = judgement

    def _navigation(self) -> None:
        """Give each site a start page that lists all its pages; link each page to it, to favourites and neighbours."""
        for site, mine in self.sites.items():
            favourites = self.random.sample(mine, min(4, len(mine)))
            for number, page in enumerate(mine):
                near = [mine[other] for other in (number - 1, number + 1) if 0 <= other < len(mine)]
                page.links.append((f"http://{site}.example/", site))
                page.links += [(other.url, other.title) for other in (*favourites, *near) if other is not page]
            self._start(site, mine[0].lang, [(page.url, page.title) for page in mine])

    def _start(self, site: str, lang: str, links: list[tuple[str, str]]) -> None:
        url = f"http://{site}.example/"
        self.pages[url] = Page(url, lang, site, site, links)

    def _farm(self) -> None:
        """Add pages stuffed with a topic's words, and many sites that link only to them."""
        spam = []
        for number, topic in enumerate(self.topics):
            for _ in range(2):
                text = self._text(topic, 30, [topic.name] * 12)
                page = self._page(f"shop-{number % 4}", topic.lang, f"{topic.name} {topic.name}", text)
                self.judgements[topic.name][page.url] = MENTION
                spam.append((page.url, topic.name))
        starts = [(f"http://farm-{number}.example/", f"farm {number}") for number in range(12)]
        for number, _ in enumerate(starts):
            self._start(f"farm-{number}", "en", [*starts, *spam])

    def _exchanges(self) -> None:
        """Let every second pair of sites with reprints link to each other, page by page."""
        for pages in self.reprints.values():
            for one, other in zip(pages[::4], pages[1::4], strict=False):
                one.links.append((other.url, other.title))
                other.links.append((one.url, one.title))

    def _footers(self) -> None:
        """Add footer links to a few reprints on every page of two sites."""
        for site in ("blog-0", "diary-0"):
            friends = self.random.sample([page for pages in self.reprints.values() for page in pages], 6)
            for page in self.sites[site]:
                page.links += [(friend.url, friend.title) for friend in friends]

    def _portals(self) -> None:
        """Let portals link to starts of sites, and to pages on each topic, sometimes to official ones."""
        starts = [url for url in self.pages if url.endswith(".example/")]
        for number in range(self.web.starts + 3):
            site = f"portal-{number}"
            lists = [*self._lists(site)]
            listed = starts if number == 0 else self.random.sample(starts, len(starts) // 2)
            portals = [f"http://portal-{other}.example/" for other in range(self.web.starts + 3) if other != number]
            self._start(
                site, "en", [*lists, *((url, url.removeprefix("http://").rstrip("/")) for url in (*portals, *listed))]
            )

    def _lists(self, site: str) -> Iterator[tuple[str, str]]:
        for topic in self.topics:
            chosen = self.random.sample(self.reprints[topic], min(3, len(self.reprints[topic])))
            if self.random.random() < self.web.citing:
                chosen.append(self.random.choice(self.officials[topic]))
            page = self._page(site, topic.lang, SAID[topic.lang][4].format(topic.name), topic.name)
            page.links = [(each.url, each.title) for each in chosen]
            self.judgements[topic.name][page.url] = MENTION
            yield page.url, page.title


def _topic(number: int) -> Topic:
    """Return a topic: alternating languages, distinct word pairs, each word in several topics."""
    lang = ("en", "zh")[number % 2]
    number //= 2
    first, second = FIRST[lang], SECOND[lang]
    return Topic(lang, first[number % len(first)], second[(number + number // len(first) * 3) % len(second)])
