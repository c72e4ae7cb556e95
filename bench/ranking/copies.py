"""Real pages with real copies: documentation with its forks and older versions, served as mirrors.

Eight of the nine sites (not MDN) with one to three copies each: a fork of the repository, or an old version of it. A
copy of a judged page is as relevant as the page, and not an authority; the page is one where it is relevant.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from bench.ranking.collection import HALVES, Collection
from bench.ranking.sites import DATA, MDN, SOURCES, Sites, Source, documents, judged
from bench.repositories import checked_out
from nutch2py.search.evaluation.ranking_metrics import RELEVANCE_THRESHOLD, Judgement, Judgements, read_queries

OFFICIAL = {source.host: source for source in SOURCES if source.host != MDN}


def _copy(name: str, of: str, commit: str, repository: str = "", files: str = "") -> Source:
    """Return a copy on another host: of the same repository, or of a fork."""
    source = OFFICIAL[of]
    host = f"{name}.{of}.example"
    copied = source._replace(host=host, commit=commit, also=(), below=host)
    return copied._replace(repository=repository, files=files or source.files, folder="*.md") if repository else copied


COPIES = {
    "es6.ruanyifeng.com": (
        _copy("2020", "es6.ruanyifeng.com", "323e9620a78167f0feee1ca9905180a33d3ab77f"),
        _copy("traditional", "es6.ruanyifeng.com", "a93c8f6fd78f58497d581cbe732642e6f6c245b7", "gogobook/es6tutorial"),
        _copy(
            "fork", "es6.ruanyifeng.com", "433e22bb067f491dcaf4c7b7a004e7ae0153bd7f", "yzqbooks/es6tutorial",
            r"docs/es6-tutorial/(.*)\.md",
        ),
    ),
    "zh.javascript.info": (
        _copy("2020", "zh.javascript.info", "51f6c75d78d32354eac66e51a9f5f5f98536c459"),
        _copy(
            "fork", "zh.javascript.info", "1c68564fbc8595cf19a96a6ce4817b3611a01f41", "iwinstar1980/zh.javascript.info"
        ),
    ),
    "wangdoc.com": (
        _copy("2019", "wangdoc.com", "1eeae75586c9f686b9a29572c690c17a00e32c0f"),
        _copy("2022", "wangdoc.com", "37de2eb20d6b69eacce9930f796ed82aab47df5e"),
    ),
    "webpack.docschina.org": (_copy("2020", "webpack.docschina.org", "3666e0de0915b44215d0e596aa578af7543ea88e"),),
    "cn.vuejs.org": (
        _copy("2022", "cn.vuejs.org", "b78081edd2b3b2958f6b9b0c5ce5465820d086d2"),
        _copy("2024", "cn.vuejs.org", "9062c61c199afa20e959ee657787e6d2397cf818"),
    ),
    "cn.vite.dev": (_copy("2023", "cn.vite.dev", "f69be56fbc4a446ccf020ee76e279f23ad79663c"),),
    "zh-hans.react.dev": (_copy("2023", "zh-hans.react.dev", "a959b9e2a7512efa25f6e9d7a12accc1b7c52003"),),
    "zhongsp.gitbook.io": (_copy("2022", "zhongsp.gitbook.io", "40d88b267b921375840766b25ab7f4e35a6297f1"),),
}  # fmt: skip


def copies(checkouts: Path, judges: Sequence[Path] = ()) -> Collection:
    """Return the collection; fetch missing repositories."""
    sources = (*OFFICIAL.values(), *(copy for those in COPIES.values() for copy in those))
    for source in sources:
        checked_out(source.repository, source.commit, [source.folder], checkouts / source.below)
    pages = documents(Sites(checkouts, sources))
    judgements = with_copies(judged(judges))
    queries = {
        half: [query for query in read_queries(DATA / f"queries-{half}.txt") if _answered(judgements[query])]
        for half in HALVES
    }
    origin = ", ".join(
        f"{copy.host} {copy.repository} {copy.commit[:9]}" for those in COPIES.values() for copy in those
    )
    return Collection(
        "copies", origin, True, [f"http://{source.host}/" for source in sources], pages, queries, judgements
    )


def with_copies(judgements: Judgements) -> dict[str, dict[str, Judgement]]:
    """Return the judgements of the copied sites and of their copies, which are not authorities."""
    found: dict[str, dict[str, Judgement]] = {query: {} for query in judgements}
    for query, known in judgements.items():
        for url, each in known.items():
            host = urlsplit(url).netloc
            if host not in OFFICIAL:
                continue
            relevant = each.relevance >= RELEVANCE_THRESHOLD
            found[query][url] = Judgement(each.relevance, 1.0 if relevant else 0.3)
            for copy in COPIES[host]:
                found[query][url.replace(host, copy.host, 1)] = Judgement(each.relevance)
    return found


def _answered(known: dict[str, Judgement]) -> bool:
    return any(each.authority == 1.0 for each in known.values())
