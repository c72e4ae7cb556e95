"""The main text of pages: the article-extraction-benchmark, by its own scorer, compared with other libraries.

A second part has Chinese pages: the articles in the tests of GeneralNewsExtractor, from some 25 sites. We marked the
element of each site that contains the main text. The scorer counts runs of four words; a Chinese character is a word.
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
from typing import Any

from lxml.html import fromstring

from nutch2py.parser.html.dom import node_text, parse_tree, remove_scripts
from nutch2py.parser.html.main_text import extract_main_text
from tests.suites.suite import Case, Goal, Repository

GOALS = (Goal("F1 of at least 0.95", 1.0), Goal("Chinese pages, F1 of at least 0.90", 1.0))
_BENCHMARK = Repository(
    "scrapinghub/article-extraction-benchmark",
    "4a3bc979f76c0df73cb95fe272e2fc1b96f9f010",
    ("/html/", "/ground-truth.json", "/evaluate.py"),
)
_CHINESE = Repository(
    "GeneralNewsExtractor/GeneralNewsExtractor", "3d5a67c65f4d6c8e13c3047754a4c18fc0b0754a", ("/tests/",)
)
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
_IDEOGRAPH = re.compile(r"([\u3400-\u9fff])")
_OTHERS = {"resiliparse==2.0.1": "resiliparse.extract.html2text", "readability-lxml==0.9": "readability"}


def cases(data: Path) -> Iterator[Case]:
    """Yield one case: the F1 of this program; print it, and that of the others that are installed, with CPU times."""
    folder = _BENCHMARK.folder(data)
    spec = importlib.util.spec_from_file_location("evaluate", folder / "evaluate.py")
    assert spec is not None
    assert spec.loader is not None
    scorer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    truth = json.loads((folder / "ground-truth.json").read_text(encoding="utf-8"))
    pages = {name: gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()).decode() for name in truth}
    chinese, marked = _chinese(_CHINESE.folder(data) / "tests")
    for goal, least, pages, truth in ((GOALS[0], 0.95, pages, truth), (GOALS[1], 0.90, chinese, marked)):  # noqa: B020
        print(f"{len(pages)} pages of {sum(map(len, pages.values())) // len(pages) // 1024} KiB")
        for name, extract in _extractors(data).items():
            began = time.process_time()
            texts = {page: extract(html) for page, html in pages.items()}
            spent = (time.process_time() - began) / len(pages)
            if pages is chinese:
                texts = {page: _IDEOGRAPH.sub(r" \1 ", text) for page, text in texts.items()}
            found = {page: {"articleBody": text} for page, text in texts.items()}
            score: dict[str, Any] = scorer.evaluate(truth, found, 2)
            print(
                f"  {name}: F1 {score['f1']:.3f}, precision {score['precision']:.3f}, recall {score['recall']:.3f}, "
                f"{spent * 1000:.1f} CPU ms a page"
            )
            if name == "nutch2py":
                yield Case(goal.part, name, "" if score["f1"] >= least else f"{score['f1']:.3f}")


def _chinese(folder: Path) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return Chinese pages, and their main texts in the form of the benchmark."""
    pages, truth = dict[str, str](), dict[str, dict[str, str]]()
    for pattern, selector in _MARKED.items():
        for file in sorted(folder.glob(f"{pattern}.html")):
            name, page = str(file.relative_to(folder)), file.read_text(encoding="utf-8", errors="replace")
            tree = parse_tree(page)
            remove_scripts(tree)
            marked = tree.css_first(selector)
            assert marked is not None, f"{name} has no {selector}"
            pages[name] = page
            truth[name] = {"articleBody": _IDEOGRAPH.sub(r" \1 ", node_text(marked))}
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
        return str(fromstring(summary).text_content()) if summary.strip() else ""

    def ours(html: str) -> str:
        tree = parse_tree(html)
        remove_scripts(tree)
        return extract_main_text(html, 0 if tree.root is None else len(node_text(tree.root)))

    return {
        "nutch2py": ours,
        "trafilatura, three algorithms": lambda html: extract(html, include_comments=False) or "",
        "resiliparse": lambda html: str(resiliparse.extract_plain_text(html, main_content=True, alt_texts=False)),
        "readability-lxml": by_readability,
    }
