"""A relative path means the folder in which the command was given, wherever the task that writes there runs."""

import ast
from pathlib import Path

import pytest

import nutch2py
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.crawl import Crawl
from nutch2py.mapreduce.job_file import JobFile, read_job_file
from nutch2py.mapreduce.job_parameters import JobParameters
from nutch2py.table.store_factory import store_location
from tests.jobs.crawl import SETTINGS, site

WRITERS = {
    "indexer-jsonl": "indexer-jsonl.path",
    "indexer-csv": "indexer-csv.outpath",
    "indexer-dummy": "indexer-dummy.path",
}
PACKAGE = Path(nutch2py.__file__).parent


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_output_files_are_written_relative_to_command_directory(tmp_path, monkeypatch, runner, capfd):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (here / "seeds").mkdir()
    options = [word for setting in SETTINGS.items() for word in ("-D", "=".join(setting))]
    options += ["-D", "storage.data.store=embedded:data", "-r", runner]
    with site() as url:
        (here / "seeds" / "one").write_text("".join(f"{url}/{number}\n" for number in range(3)))
        for command in (["inject", "seeds"], ["generate", "-batchId", "b"], ["fetch", "b"], ["parse", "b"]):
            assert main([*command, *options]) == 0
    assert main(["updatedb", "b", *options]) == 0
    names = "|".join(WRITERS)
    plugins = Configuration.load().get("plugin.includes") + f"|{names}|indexer-embedded"
    assert main(["index", "b", "-D", f"plugin.includes={plugins}", *options]) == 0
    assert (here / "index.jsonl").read_text().count('"id"') == 3
    assert all(f"Page {number}," in (here / "csvindexwriter" / "nutch.csv").read_text() for number in range(3))
    assert (here / "dummy-index.txt").read_text().count("add\t") == 3
    assert (here / "data" / "index" / "meta.json").is_file()
    given = [word for name, path in WRITERS.items() for word in ("-D", f"{path}=other/{name}")]
    assert main(["index", "-reindex", "-D", f"plugin.includes={plugins}", *given, *options]) == 0
    assert (here / "other" / "indexer-jsonl").read_text().count('"id"') == 3
    assert all(f"Page {number}," in (here / "other/indexer-csv/nutch.csv").read_text() for number in range(3))
    assert (here / "other" / "indexer-dummy").read_text().count("add\t") == 3
    assert "3 documents added" in capfd.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]


def test_task_resolves_paths_like_driver(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    conf = Configuration({"storage.data.store": "embedded:x", "a": "b"})
    JobFile.from_conf(conf, JobParameters(), "local").write(tmp_path / "job.json")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    task = read_job_file(str(tmp_path / "job.json"))[1]
    assert task.absolute("b") == tmp_path / "b"
    assert store_location(task) == store_location(conf) == f"embedded:{tmp_path / 'x'}"
    assert task.copy().absolute("/b") == Path("/b")
    assert task.absolute("~/b") == Path.home() / "b"
    assert Crawl(conf).conf.absolute("b") == tmp_path / "b"


def test_no_module_builds_path_from_property_directly():
    """``Path(conf.get(…))`` is right in the driver and wrong in its tasks; ``conf.absolute`` is right in both."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name | ast.Attribute):
                continue
            name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
            inner = [
                part.func.attr
                for argument in call.args
                for part in ast.walk(argument)
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
            ]
            if name in ("Path", "open") and {"get", "get_trimmed"} & set(inner):
                found.append(f"{file.relative_to(PACKAGE)}:{call.lineno}")
    assert not found
