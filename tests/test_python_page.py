"""docs/python.md follows the code, and its script runs from an installed wheel as the page shows it."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from nutch2py import Crawl, Progress, errors
from nutch2py.jobs.generate.generate_job import GenerateResult
from nutch2py.jobs.monitoring.batch_report import BatchReport
from nutch2py.jobs.pagerank.pagerank_job import PageRankResult
from nutch2py.jobs.stats.stats_collector import StatsCollector
from nutch2py.mapreduce.driver import JobResult
from nutch2py.scoring.pagerank_model import RankChange
from nutch2py.search.results.search_results import Hit, SearchResult
from nutch2py.search.results.snippet import Snippet
from tests.installed_wheel import install, run
from tests.jobs.crawl import PAGES, SETTINGS, site

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
RESULTS: list[type] = [
    JobResult,
    GenerateResult,
    PageRankResult,
    RankChange,
    StatsCollector,
    BatchReport,
    SearchResult,
    Hit,
    Snippet,
    Progress,
]
CHECKED = """
import sys
from collections import Counter
from typing import assert_type

import nutch2py
from nutch2py import Configuration, Crawl, Host, Mark, Progress, WebPage


def show(progress: Progress) -> None:
    assert_type(progress.expected, int | None)


with Crawl(Configuration.load(), {"fetcher.parse": True}, crawl_id="c", on_progress=show) as crawl:
    assert_type(crawl, Crawl)
    assert_type(crawl.inject(["http://example.org/"]).count("injector", "urls_new"), int)
    made = crawl.generate(top_n=10, sitemap=True)
    assert_type(made.batch_id, str)
    assert_type(made.urls, int)
    assert_type(crawl.fetch(nutch2py.ALL).group("FetcherStatus"), dict[str, int])
    assert_type(crawl.pagerank(model="classic").change.mean, float)
    for url, page in crawl.pages(fields={WebPage.title, WebPage.outlinks}, mark=Mark.FETCH):
        assert_type(url, str)
        assert_type(page.title, str | None)
        assert_type(page.outlinks["http://example.org/"], str)
    for name, host in crawl.hosts():
        assert_type(host, Host)
    assert_type(crawl.page("http://example.org/"), WebPage | None)
    assert_type(crawl.stats().status, Counter[int])
    assert_type([batch.count for batch in crawl.batches()], list[int])
    assert_type([hit.score for hit in crawl.search("text").hits], list[float])
    crawl.updatedb()
    crawl.pagerank(model="modern")
"""


def script() -> str:
    """Return the script of the page."""
    found = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found.group(1)


def described(result: type) -> Iterator[str]:
    """Yield the public attributes and methods of a result's class, those that it has in an instance included."""
    yield from (name for name in vars(result) if not name.startswith("_"))
    yield from getattr(result, "_fields", ())
    if is_dataclass(result):
        yield from (name for name in result.__dataclass_fields__ if not name.startswith("_"))
    for node in ast.walk(ast.parse(inspect.getsource(result))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield from () if node.attr.startswith("_") else (node.attr,)


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.__name__)
def test_result_fields_are_documented(result: type) -> None:
    names = set(described(result))
    assert names
    text = " ".join(cls.__doc__ or "" for cls in result.__mro__)
    undescribed = []
    for name in names:
        value = inspect.getattr_static(result, name, None)
        is_method = inspect.isfunction(value) or isinstance(value, classmethod)
        described_in_class = f"``{name}``" in text or re.search(rf"^ +{name}: ", text, re.MULTILINE)
        if not (value.__doc__ if is_method else described_in_class):
            undescribed.append(name)
    assert not undescribed
    assert not [name for name in names if not re.search(rf"`{name}(\([^`]*\))?`", PAGE)]


def test_methods_and_parameters_are_documented() -> None:
    missing = []
    for name, method in inspect.getmembers(Crawl, callable):
        if name.startswith("_"):
            continue
        assert inspect.getdoc(method), name
        signature = inspect.signature(method)
        parameters = [each for each in signature.parameters.values() if each.name != "self"]
        shown = signature.replace(
            parameters=[each.replace(annotation=inspect.Parameter.empty) for each in parameters],
            return_annotation=inspect.Signature.empty,
        )
        if f"`{name}{shown}`".replace("'", '"') not in PAGE and f"`Crawl.{name}{shown}`" not in PAGE:
            missing.append(f"{name}{shown}")
    assert not missing
    made = str(inspect.signature(Crawl)).replace("'", '"')
    names = re.findall(r"(\w+):", made)
    assert len(names) == 6
    constructor = re.search(r"`Crawl\((.*?)\)`", PAGE)
    assert constructor is not None
    assert re.findall(r"(\w+)=", constructor.group(1)) == names


def test_errors_are_documented() -> None:
    kinds = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, errors.NutchError)]
    names = [kind.__name__ for kind in kinds if not kind.__name__.startswith("_")]
    assert len(names) > 5
    assert not [name for name in names if f"{name}`" not in PAGE]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a Python that has the wheel of this checkout, and the libraries of the tests' environment."""
    return install(tmp_path_factory.mktemp("installed"))


def test_example_script_runs_from_wheel(installed: Path, tmp_path: Path) -> None:
    properties = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in SETTINGS.items()
        if name != "http.agent.name"
    )
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "nutch-site.xml").write_text(f"<configuration>{properties}</configuration>", encoding="utf-8")
    (tmp_path / "crawl_site.py").write_text(script(), encoding="utf-8")
    where = run(installed, "-c", "import nutch2py; print(nutch2py.__file__)", cwd=tmp_path).stdout
    assert where.startswith(str(installed.parent.parent))
    with site() as url:
        done = run(installed, "crawl_site.py", f"{url}/7", cwd=tmp_path, NUTCH_CONF_DIR=str(tmp_path / "conf"))
    assert (done.stderr, done.returncode) == ("", 0)
    *lines, found, first, second, third = done.stdout.splitlines()
    assert lines[0] == "1 URLs, 1 fetched"
    assert re.fullmatch(r"\d+ URLs, \d+ fetched", lines[1])
    assert f"{url}/7 Page 7" in lines
    assert len(lines) > 4
    assert int(found.removesuffix(" found")) == len(lines) - 2
    for line in (first, second, third):
        number = re.fullmatch(rf"{url}/(\d+) Text (\d+).*", line)
        assert number is not None, line
        assert len({*number.groups()}) == 1
        assert int(number[1]) < PAGES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conf", "crawl_site.py", "crawldata"]


def test_example_script_reports_errors(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "crawl_site.py").write_text(script().replace("[seed]", "seed"), encoding="utf-8")
    done = run(installed, "crawl_site.py", "none.txt", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "none.txt" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["crawl_site.py"]


def test_programs_type_check_against_wheel(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "crawl_site.py").write_text(script(), encoding="utf-8")
    (tmp_path / "checked.py").write_text(CHECKED, encoding="utf-8")
    words = (
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--config-file",
        os.devnull,
        "--cache-dir",
        tmp_path / "cache",
    )
    done = run(sys.executable, *words, "--python-executable", installed, "crawl_site.py", "checked.py", cwd=tmp_path)
    wrong = [
        line.partition(": error: ")[2].partition(" ")[0] for line in done.stdout.splitlines() if ": error: " in line
    ]
    assert wrong == ["Missing", "Argument"], done.stdout  # the last two lines, which are wrong
