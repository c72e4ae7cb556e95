"""Words that are mistyped: named with what was perhaps meant, with the exit code of wrong usage."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf import Configuration
from tests.jobs.rows import put


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
def test_what_was_perhaps_meant(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 255
    assert capsys.readouterr().err.rstrip().endswith(said)


@pytest.mark.parametrize("option", ["-crawlId", "--crawl-id"])
def test_the_crawl_may_be_named_before_the_command(
    conf: Configuration, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    conf.set("storage.crawl.id", "x")
    put(conf, {"http://a.test/": {}})
    location = conf.get("storage.data.store")
    assert main(["-D", f"storage.data.store={location}", option, "x", "readdb", "-stats"]) == 0
    assert "TOTAL urls:\t1" in capsys.readouterr().out


def test_properties_that_are_mistyped_are_named(
    conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is like none of ours is a plug-in's own, or Hadoop's."""
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
        "WARN there is no property db.fetch.interval.defualt, did you mean db.fetch.interval.default? Nothing reads it",
        "WARN there is no property fetcher.thread.fetchh, did you mean fetcher.threads.fetch? Nothing reads it",
    ]


def test_nothing_that_is_shipped_is_taken_for_a_slip() -> None:
    assert Configuration.load().mistyped() == []
