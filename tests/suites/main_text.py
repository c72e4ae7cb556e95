"""The main text of pages: the article-extraction-benchmark, by its own scorer, and the libraries beside us."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lxml.html import fromstring

from nutch2py.parser.main_text import main_text
from tests.suites.suite import Case, Goal, Repository

GOALS = (Goal("F1 of at least 0.95", 1.0),)
_BENCHMARK = Repository(
    "scrapinghub/article-extraction-benchmark",
    "4a3bc979f76c0df73cb95fe272e2fc1b96f9f010",
    ("/html/", "/ground-truth.json", "/evaluate.py"),
)
_LEAST = 0.95
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
    for name, extract in _extractors(data).items():
        began = time.process_time()
        found = {page: {"articleBody": extract(html)} for page, html in pages.items()}
        spent = (time.process_time() - began) / len(pages)
        score: dict[str, Any] = scorer.evaluate(truth, found, 2)
        print(
            f"{name}: F1 {score['f1']:.3f}, precision {score['precision']:.3f}, recall {score['recall']:.3f}, "
            f"{spent * 1000:.1f} CPU ms a page of {sum(map(len, pages.values())) // len(pages) // 1024} KiB"
        )
        if name == "nutch2py":
            yield Case("F1 of at least 0.95", name, "" if score["f1"] >= _LEAST else f"{score['f1']:.3f}")


def _extractors(data: Path) -> dict[str, Callable[[str], str]]:
    """Return what is compared, by name; the others are got from the package index into a folder of their own."""
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

    return {
        "nutch2py": main_text,
        "trafilatura, three algorithms": lambda html: extract(html, include_comments=False) or "",
        "resiliparse": lambda html: str(resiliparse.extract_plain_text(html, main_content=True, alt_texts=False)),
        "readability-lxml": by_readability,
    }
