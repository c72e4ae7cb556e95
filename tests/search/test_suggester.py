"""Suggestions while typing: names with signs, unfinished words, and words rather than stems."""

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.search.engines.embedded_searcher import EmbeddedSearcher
from nutch2py.search.suggestions.suggester import Suggester
from tests.indexer.pages import doc


@pytest.fixture(scope="module")
def suggester(tmp_path_factory):
    conf = Configuration.load(overrides={"index.embedded.path": str(tmp_path_factory.mktemp("index"))})
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    writer.write(doc("a", title="C++ tutorial", content="C++ templates. A transaction commits. Configuration of .NET"))
    writer.write(doc("b", title="Windows update", content="How to update Windows. Configure the organization."))
    writer.write(doc("c", title="机器学习入门", content="机器学习是人工智能的一个分支。学校 学生", lang="zh"))
    writer.close()
    return Suggester(EmbeddedSearcher(conf))


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("C+", ["C++"]),
        ("tutorial c+", ["tutorial c++"]),
        ("C#", []),
        ("F+", []),
        (".ne", [".net"]),
        ("win upd", ["windows update"]),
        ("windows upd", ["windows update"]),
        ("win templ", []),
        ("机器学", ["机器学习"]),
        ("人工智", ["人工智能"]),
        ("北京学", []),
        ("transactio", ["transaction"]),
        ("configuratio", ["configuration"]),
        ("organizati", ["organization"]),
        ("transactiox", []),
    ],
)
def test_unfinished_input_is_completed(suggester, typed, suggested):
    assert suggester.suggest(typed).queries == suggested
