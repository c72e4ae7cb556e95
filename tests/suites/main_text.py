"""The main text of pages of four sets: F1 and recall, compared with other libraries.

The sets are the article-extraction-benchmark, the evaluation pages of trafilatura, the test pages of Mozilla's
readability, and Chinese pages: the articles in the tests of GeneralNewsExtractor, from some 25 sites. We marked there
the element that contains the main text. The scorer of the benchmark counts runs of four words; a Chinese or Japanese
character is a word. The pages of trafilatura have phrases that the text must have, and others that it must not have.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nutch2py.parser.html.dom import node_text, parse_tree, remove_scripts
from nutch2py.parser.html.main_text import extract_main_text
from tests.suites.suite import Case, Goal, Repository

_LEAST = {
    "article-extraction-benchmark": (0.957, 0.979),
    "trafilatura": (0.93, 0.94),
    "readability": (0.955, 0.95),
    "Chinese pages": (0.90, 0.95),
}
"""The least F1 and recall of each set."""
GOALS = tuple(Goal(name, 1.0) for name in _LEAST)
_BENCHMARK = Repository(
    "scrapinghub/article-extraction-benchmark",
    "4a3bc979f76c0df73cb95fe272e2fc1b96f9f010",
    ("/html/", "/ground-truth.json", "/evaluate.py"),
)
_CHINESE = Repository(
    "GeneralNewsExtractor/GeneralNewsExtractor", "3d5a67c65f4d6c8e13c3047754a4c18fc0b0754a", ("/tests/",)
)
_TRAFILATURA = Repository(
    "adbar/trafilatura",
    "e90b0ef51ab026fdb905fb6c5b3c84dd3d784fd5",
    ("/tests/evaldata.json", "/tests/cache/", "/tests/eval/"),
)
_READABILITY = Repository("mozilla/readability", "ab4027a8b37669745016869a37a504727992b2ba", ("/test/test-pages/",))
_MARKED = {
    "163/[1-8]": "#endText", "163/9": "#content", "baijiahao/*": ".article-content", "cjddsb/1": ".single-content",
    "cjn/1": ".TRS_Editor", "cmse/1": "#content", "csdn/1": ".news_content", "ednchina/1": ".article_text",
    "gamersky/*": ".gsAreaContextArt", "gsc/1": ".detailCon", "guancha/*": ".all-txt", "gzggw/1": "#zoom",
    "hexun/1": ".art_contextBox", "huanqiu/1": ".a-con", "ifeng/[12i]*": "[class^=text-3zQ3]",
    "ifeng/3": "#main_content",
    "people/1": "#rwb_zw", "qq/2": "#Cnt-Main-Article-QQ", "qq/qq": ".content-article", "shanxi/1": ".TRS_Editor",
    "sina/[15s]*": "#article", "sina/[234]": "#artibody", "sxmu/1": "#vsb_content", "thepaper/*": ".news_txt",
    "toutiao/[345t]*": ".article-content", "wechat/*": "#js_content", "xds/1": ".statuses-text",
    "xinhuanet/1": "#p-detail", "zyyfy/1": ".article_content_mix",
}  # fmt: skip
"""Pages, and the element with the main text, by our own judgement."""
_IDEOGRAPH = re.compile(r"([\u3040-\u30ff\u3400-\u9fff])")
_OTHERS = {"resiliparse==2.0.1": "resiliparse.extract.html2text", "readability-lxml==0.9": "readability"}


class PageSet(NamedTuple):
    """Pages by name, and a scorer: the true and false positives and the false negatives of the texts found in them."""

    name: str
    pages: dict[str, str]
    matches: Callable[[str, str], tuple[float, float, float]]


def cases(data: Path) -> Iterator[Case]:
    """Yield the F1 and the recall of this program for each set; print them and those of others, with CPU times."""
    for name, pages, matches in _sets(data):
        print(f"{name}: {len(pages)} pages of {sum(map(len, pages.values())) // len(pages) // 1024} KiB")
        for extractor, extract in _extractors(data).items():
            began = time.process_time()
            texts = {page: extract(html) for page, html in pages.items()}
            spent = (time.process_time() - began) / len(pages)
            counts = {page: matches(page, text) for page, text in texts.items()}
            precision, recall, f1 = score([*counts.values()])
            print(
                f"  {extractor}: F1 {f1:.3f}, precision {precision:.3f}, recall {recall:.3f}, "
                f"{spent * 1000:.1f} CPU ms a page"
            )
            if extractor == "nutch2py":
                worst = sorted(counts, key=lambda page: -sum(counts[page][1:]) / (sum(counts[page]) or 1))[:5]
                left = f"; least found: {', '.join(worst)}"
                for label, value, least in zip(("F1", "recall"), (f1, recall), _LEAST[name], strict=True):
                    yield Case(name, f"{label} of at least {least}", "" if value >= least else f"{value:.3f}{left}")


def score(counts: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of true positives, false positives and false negatives of pages.

    >>> score([(2, 0, 1), (1, 1, 0)])
    (0.75, 0.75, 0.75)
    """
    true, false, missed = (sum(column) for column in zip(*counts, strict=True))
    return true / ((true + false) or 1), true / ((true + missed) or 1), 2 * true / ((2 * true + false + missed) or 1)


def _sets(data: Path) -> Iterator[PageSet]:
    """Yield the sets of pages."""
    folder = _BENCHMARK.folder(data)
    spec = importlib.util.spec_from_file_location("evaluate", folder / "evaluate.py")
    assert spec is not None
    assert spec.loader is not None
    scorer: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)

    def by_runs(name: str, pages: dict[str, str], texts: dict[str, str]) -> PageSet:
        def count(page: str, text: str) -> tuple[float, float, float]:
            pair = (_IDEOGRAPH.sub(r" \1 ", found) for found in (texts[page], text))
            true, false, missed = scorer.string_shingle_matching(*pair)
            return true, false, missed

        return PageSet(name, pages, count)

    truth = json.loads((folder / "ground-truth.json").read_text(encoding="utf-8"))
    pages = {name: gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()).decode() for name in truth}
    names = iter(_LEAST)
    yield by_runs(next(names), pages, {name: entry["articleBody"] for name, entry in truth.items()})
    yield _by_phrases(next(names), _TRAFILATURA.folder(data) / "tests")
    folder = _READABILITY.folder(data) / "test" / "test-pages"
    sources = {file.parent.name: file for file in sorted(folder.glob("*/source.html"))}
    pages = {name: file.read_text(encoding="utf-8", errors="replace") for name, file in sources.items()}
    yield by_runs(
        next(names),
        pages,
        {name: _whole_text(file.with_name("expected.html").read_text("utf-8")) for name, file in sources.items()},
    )
    yield by_runs(next(names), *_chinese(_CHINESE.folder(data) / "tests"))


def _by_phrases(name: str, folder: Path) -> PageSet:
    """Return the pages of trafilatura, scored as its own evaluation does."""
    from trafilatura.utils import decode_file

    entries = json.loads((folder / "evaldata.json").read_text(encoding="utf-8"))
    pages = dict[str, str]()
    for page, entry in sorted(entries.items()):
        file = next(path for part in ("cache", "eval") if (path := folder / part / entry["file"]).is_file())
        pages[page] = decode_file(file.read_bytes())

    def count(page: str, text: str) -> tuple[float, float, float]:
        text = " ".join(text.split())
        wanted, unwanted = (
            [" ".join(phrase.split()) in text for phrase in entries[page][key]] for key in ("with", "without")
        )
        return sum(wanted), sum(unwanted), len(wanted) - sum(wanted)

    return PageSet(name, pages, count)


def _whole_text(html: str) -> str:
    tree = parse_tree(html)
    remove_scripts(tree)
    return "" if tree.root is None else node_text(tree.root)


def _chinese(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return Chinese pages and their main texts."""
    pages, truth = dict[str, str](), dict[str, str]()
    for pattern, selector in _MARKED.items():
        for file in sorted(folder.glob(f"{pattern}.html")):
            name, page = str(file.relative_to(folder)), file.read_text(encoding="utf-8", errors="replace")
            tree = parse_tree(page)
            remove_scripts(tree)
            marked = tree.css_first(selector)
            assert marked is not None, f"{name} has no {selector}"
            pages[name] = page
            truth[name] = node_text(marked)
    return pages, truth


def _extractors(data: Path) -> dict[str, Callable[[str], str]]:
    """Return the compared extractors by name; other libraries are installed into a separate folder."""
    from trafilatura import extract

    others = data / "others"
    if not others.exists():
        command = (sys.executable, "-m", "pip", "install", "-q", "--target", str(others), *_OTHERS)
        subprocess.run(command, check=True)
    sys.path.append(str(others))
    try:
        resiliparse, readability = (importlib.import_module(module) for module in _OTHERS.values())
    finally:
        sys.path.remove(str(others))

    def by_readability(html: str) -> str:
        summary = readability.Document(html).summary(html_partial=True)
        return _whole_text(summary) if summary.strip() else ""

    def ours(html: str) -> str:
        return extract_main_text(html, len(_whole_text(html)))

    return {
        "nutch2py": ours,
        "trafilatura, three algorithms": lambda html: extract(html, include_comments=False) or "",
        "resiliparse": lambda html: str(resiliparse.extract_plain_text(html, main_content=True, alt_texts=False)),
        "readability-lxml": by_readability,
    }
