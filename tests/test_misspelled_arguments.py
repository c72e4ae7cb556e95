"""Words that are mistyped: named with what was perhaps meant, with the exit code of wrong usage."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from nutch2py.backends.embedded_index.index_directory import IndexDirectory
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.crawl import Crawl
from nutch2py.errors import ConfigurationError, IndexingError, UsageError
from nutch2py.indexer.writers.embedded_writer import EmbeddedIndexWriter
from nutch2py.jobs.batches.batch_lists import BatchListStore
from nutch2py.mapreduce.runners.hadoop.package_archive import archive_path
from nutch2py.plugins.unknown_properties import unknown_plugin_ids
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from tests.indexer.pages import doc
from tests.jobs.rows import pages, put


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fecth b", "there is no command fecth, did you mean fetch?: nutch2py --help lists them"),
        ("updateDB b", "there is no command updateDB, did you mean updatedb?: nutch2py --help lists them"),
        ("xyzzy", "there is no command xyzzy: nutch2py --help lists them"),
        ("fetch b -theards 5", "unrecognized arguments: -theards 5, did you mean -threads?"),
        ("generate --topn=5", "unrecognized arguments: --topn=5, did you mean --top-n?"),
        ("readdb -stats --xyzzy", "unrecognized arguments: --xyzzy"),
    ],
)
def test_mistyped_command_or_option_gets_suggestion(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 255
    assert capsys.readouterr().err.rstrip().endswith(said)


@pytest.mark.parametrize("option", ["-crawlId", "--crawl-id"])
def test_crawl_id_before_command_is_accepted(
    conf: Configuration, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    conf.set("storage.crawl.id", "x")
    put(conf, {"http://a.test/": {}})
    location = conf.get("storage.data.store")
    assert main(["-D", f"storage.data.store={location}", option, "x", "readdb", "-stats"]) == 0
    assert "TOTAL urls:\t1" in capsys.readouterr().out


def test_mistyped_property_is_reported(conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(conf, {"http://a.test/": {}})
    site = tmp_path / "conf"
    site.mkdir()
    (site / "nutch-site.xml").write_text(
        "<configuration><property><name>db.fetch.interval.defualt</name><value>7</value></property>"
        "<property><name>my.plugin.words</name><value>7</value></property></configuration>"
    )
    settings = [
        "fetcher.thread.fetchh=3",
        "mapreduce.job.queue=x",
        f"storage.data.store={conf.get('storage.data.store')}",
    ]
    options = [word for setting in settings for word in ("-D", setting)]
    assert main(["readdb", "-stats", "--conf", str(site), *options]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if line.startswith("WARN")] == [
        "WARN there is no property db.fetch.interval.defualt, did you mean db.fetch.interval.default? It is ignored",
        "WARN there is no property fetcher.thread.fetchh, did you mean fetcher.threads.fetch? It is ignored",
        f"WARN there is no property my.plugin.words, which {site}/nutch-site.xml sets: it is ignored",
    ]


@pytest.mark.parametrize(
    ("includes", "unknown"),
    [
        (
            "protocol-htp|parse-(html|tikka)|lib-http",
            [("protocol-htp", "protocol-http"), ("parse-tikka", "parse-tika")],
        ),
        ("protocol-http|my-own-thing|index-.*|(a|b)(c|d)", [("my-own-thing", "")]),
        ("protocol-(http|ftp)|urlfilter-regex|nutch-extensionpoints|index-(basic|anchor)|creativecommons", []),
    ],
)
def test_unknown_plugin_id_gets_suggestion(includes: str, unknown: list[tuple[str, str]]) -> None:
    for name in ("plugin.includes", "plugin.includes.add"):
        conf = Configuration.load(overrides={name: includes})
        assert unknown_plugin_ids(conf) == [(name, *each) for each in unknown]
    assert unknown_plugin_ids(Configuration.load()) == []


def test_api_arguments_are_validated(conf: Configuration) -> None:
    crawl = Crawl(conf)
    with pytest.raises(UsageError, match=r"top_n is -5: give a whole number from 0 to"):
        crawl.generate(top_n=-5)
    with pytest.raises(UsageError, match=r"top_n is '5'"):
        crawl.generate(top_n="5")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"add_days is nan: give a number"):
        crawl.generate(add_days=float("nan"))
    with pytest.raises(UsageError, match=r"threads is -1: give a whole number"):
        crawl.fetch("b", threads=-1)
    with pytest.raises(UsageError, match=r"num_tasks is True"):
        crawl.fetch("b", num_tasks=True)
    with pytest.raises(UsageError, match=r"a seed line is b'http://a/', not a str"):
        crawl.inject([b"http://a/"])  # type: ignore[list-item]


def test_properties_of_plugins_are_known(conf: Configuration, capsys: pytest.CaptureFixture[str]) -> None:
    """Writers read theirs by their ids, and no default names them."""
    put(conf, {"http://a.test/": {}})
    names = [
        "indexer-jsonl.path",
        "indexer-csv.fields",
        "indexer-dummy.delete",
        "indexer-solr.url",
        "indexer-jsonk.path",
    ]
    settings = [f"storage.data.store={conf.get('storage.data.store')}", *(f"{name}=x" for name in names)]
    assert main(["readdb", "-stats", *[word for setting in settings for word in ("-D", setting)]]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("WARN")]
    assert warnings == ["WARN there is no property indexer-jsonk.path, which -D sets: it is ignored"]


def test_shipped_configuration_reports_nothing_mistyped() -> None:
    assert Configuration.load().unknown_properties() == []


@pytest.mark.parametrize("batch_id", ["-reindex", "-ALL", "-all ", "--all", "-", "-x"])
def test_batch_id_starting_with_dash_is_rejected(conf: Configuration, tmp_path: Path, batch_id: str) -> None:
    """Given by a program, too; every job would reject a batch of that name for ever."""
    conf.set("http.agent.name", "test")
    crawl = Crawl(conf)
    jobs: list[Callable[[str], object]] = [crawl.fetch, crawl.parse, crawl.updatedb]
    jobs += [lambda name: crawl.generate(batch_id=name)]
    jobs += [crawl.index] if batch_id != "-reindex" else []
    for job in jobs:
        with pytest.raises(UsageError, match=re.escape(f"'{batch_id}' is not a batch id")):
            job(batch_id)
    assert not open_store(conf, WebPage).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["generate", "-topN", "-5"], "'-5' is not a whole number of 0 or more"),
        (["generate", "-topN", "1e3"], "'1e3' is not a whole number of 0 or more"),
        (["generate", "-adddays", "nan"], "'nan' is not a number of days from -36,500 to 36,500"),
        (["generate", "-adddays", "inf"], "'inf' is not a number of days from -36,500 to 36,500"),
        (["generate", "-batchId=-all"], "-all means every batch, and cannot be the id of one: give another"),
        (["generate", "-batchId", "\udcff"], r"the batch id '\udcff' is not UTF-8: give another"),
        (["generate", "-batchId=-x"], "'-x' is not a batch id, which does not begin with '-': name a batch or -all"),
        *(
            ([job, "-reindex"], "'-reindex' is not a batch id, which does not begin with '-': name a batch or -all")
            for job in ("fetch", "parse", "updatedb")
        ),
        (["fetch", "b", "-threads", "-1"], "'-1' is not a whole number of 0 or more"),
        (["readdb", "-stats", "-D", "a=\udcff"], "the value of -D 'a' is not UTF-8: write it in UTF-8"),
        (["parse", "\udcff"], r"the batch id '\udcff' is not UTF-8: give another"),
        (["createtable", "-splits", "-3"], "'-3' is not a whole number of 1 or more"),
        (["search", "word", "-rows", "-1"], "'-1' is not a whole number of 0 or more"),
        (
            ["pagerank", "-D", "pagerank.iterations=-1"],
            "is -1: write a whole number from 0 to 2147483647, in -D",
        ),
        (["readdb", "-url", ""], " is neither a URL nor a row key: no protocol: "),
        (
            ["readdb", "-dump", "file/dump"],
            "cannot write into file/dump: Not a directory: name a folder that can be created",
        ),
        (["exporttable", "."], "cannot write .: it is a folder: name a file that you can write"),
        (["exporttable", "/"], "cannot write /: it is a folder: name a file that you can write"),
        (["importtable", "none"], "cannot read the dump none: No such file or directory: name a file of exporttable"),
        (
            ["inject", "https://a.test/"],
            "https://a.test/ is a URL, not a seed file: write the URL into a file and name the file",
        ),
        (["inject", "no\udcff"], "does not exist: name a file of URLs, one per line, or a folder of such files"),
    ],
)
def test_invalid_arguments_are_rejected_and_change_nothing(
    conf: Configuration,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    put(conf, {"http://a.test/": {}})
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    before = sorted(tmp_path.iterdir())
    store = f"storage.data.store={conf.get('storage.data.store')}"
    assert main([*words, "-D", store, "-D", "http.agent.name=test"]) in (2, 3, 4, 255)
    error = capsys.readouterr().err.rstrip("\n")
    assert error.endswith(said)
    assert "--debug shows the traceback" not in error
    assert sorted(tmp_path.iterdir()) == before
    assert BatchListStore(conf).list_records() == []


def test_missing_dump_file_creates_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["importtable", "none"]) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("code", "returned"), [(0, 255), (None, 255), ("done", 255), (143, 143)])
def test_command_exiting_from_within_returns_failure(
    monkeypatch: pytest.MonkeyPatch, code: int | str | None, returned: int
) -> None:
    def leave(*_: object) -> NoReturn:
        raise SystemExit(code)

    monkeypatch.setattr("nutch2py.jobs.readdb.readdb_commands.print_stats", leave)
    assert main(["readdb", "-stats"]) == returned
    assert main(["readdb", "--help"]) == 0


def test_command_runs_with_closed_standard_streams(conf: Configuration, tmp_path: Path) -> None:
    store = f"storage.data.store={conf.get('storage.data.store')}"
    seeds = tmp_path / "seeds"
    seeds.write_text("http://www.example.org/\n")
    words = shlex.join([sys.executable, "-m", "nutch2py.cli", "inject", str(seeds), "-D", store])
    done = subprocess.run(["sh", "-c", f"{words} <&- >&- 2>&-"], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert pages(conf).keys() == {"http://www.example.org/"}


@pytest.mark.parametrize("encoding", ["latin-1", "ascii:surrogateescape", "utf-8"])
def test_unencodable_output_is_escaped(conf: Configuration, tmp_path: Path, encoding: str) -> None:
    """The title is of another script, and the word of the query is no text in any encoding."""
    put(conf, {"http://a.test/": {"title": "\u6587"}})
    store = f"storage.data.store={conf.get('storage.data.store')}"
    words = [sys.executable, "-m", "nutch2py.cli", "readdb", "-url", "http://a.test/", "-D", store]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = "\u6587".encode() if encoding == "utf-8" else rb"\u6587"
    assert b"title:\t" + shown + b"\n" in done.stdout


def test_missing_home_variable_uses_passwd_entry(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    assert archive_path(conf) == Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache/nutch2py/package.tar.gz")


def test_unreadable_conf_folder_is_named_in_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.F_OK)
    with pytest.raises(ConfigurationError, match=f"configuration folder {tmp_path} may not be read"):
        Configuration.load(tmp_path)


def test_unreadable_index_error_does_not_suggest_deletion(
    conf: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken index is to be rebuilt; the error of a missing permission must not suggest deletion."""
    folder = IndexDirectory.from_conf(conf)
    folder.path.mkdir(parents=True)
    folder.open_or_create()
    meta = folder.path / "meta.json"
    meta.write_text("")
    with pytest.raises(IndexingError, match="delete it and run index -reindex"):
        folder.open()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != meta)
    with pytest.raises(IndexingError, match=f"give this user the right to read {meta}"):
        folder.open()


@pytest.mark.parametrize(
    ("lock", "lacks"), [("meta", ".tantivy-meta.lock"), ("writer", "."), ("writer", ".tantivy-writer.lock")]
)
def test_index_locks_of_other_user_error_does_not_suggest_deletion(
    lock: str, lacks: str, conf: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers write a lock of tantivy, too; the error names the missing permission, not a full disk."""
    folder = IndexDirectory.from_conf(conf)
    folder.path.mkdir(parents=True)
    folder.open_or_create()
    file = folder.path / f".tantivy-{lock}.lock"
    file.unlink(missing_ok=True)
    file.mkdir()  # which not even root can write
    missing = folder.path / lacks
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode & os.W_OK and Path(path) == missing))
    opened = folder.open if lock == "meta" else lambda: _write_one(conf)
    with pytest.raises(IndexingError, match=f"give this user the right to write {missing}(; run it again)?$"):
        opened()


def _write_one(conf: Configuration) -> None:
    writer = EmbeddedIndexWriter(conf)
    writer.open(conf, {})
    writer.write(doc("a", url="http://a.org/", content="word"))
    writer.commit()


CLOSED = """
import os, sys
from pathlib import Path
from nutch2py.__main__ import main
sys.argv[1:], report_path = ["--version"], sys.argv[1]
for number in range(3):
    os.close(number)
main()
found = [(os.readlink(f"/proc/self/fd/{number}"), os.get_inheritable(number)) for number in range(3)]
Path(report_path).write_text(repr(found))
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc")
def test_closed_standard_streams_are_not_reused_for_files(tmp_path: Path) -> None:
    """Else a line that is written to the number of standard error would go into a table."""
    report = tmp_path / "message"
    subprocess.run([sys.executable, "-c", CLOSED, str(report)], check=False)
    assert report.read_text() == repr([("/dev/null", True)] * 3)
