"""InjectorJob and the seed files that it reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.inject.seeds import Seed, find_seed_files, parse_seed_line
from nutch2py.mapreduce import input_splits
from nutch2py.records.cells import decode_float
from nutch2py.records.webpage import Mark, MetadataKey, WebPage
from tests.jobs.rows import pages, put

Inject = Callable[..., dict[str, WebPage]]


@pytest.fixture
def injected(conf: Configuration, tmp_path: Path) -> Inject:
    """Inject lines under some properties; give the rows by URL."""

    def run(*lines: str, encoding: str = "utf-8", **properties: str) -> dict[str, WebPage]:
        changed = conf.copy()
        for name, value in properties.items():
            changed.set(name.replace("_", "."), value)
        file = tmp_path / "seeds.txt"
        file.write_text("\n".join(lines) + "\n", encoding=encoding)
        inject(changed, str(file))
        return pages(conf)

    return run


def metadata(page: WebPage) -> dict[str, str]:
    """Return the metadata without OPIC's cash, as text."""
    return {name: value.decode() for name, value in page.metadata.items() if name != MetadataKey.CASH}


class TestLines:
    @pytest.mark.parametrize(
        ("line", "seeds"),
        [
            ("http://a/", [Seed("http://a/")]),
            ("  http://a/ \r\n", [Seed("http://a/")]),
            ("", []),
            ("   ", []),
            ("# http://a/", []),
            ("  # indented", []),
            ("http://a/#fragment", [Seed("http://a/#fragment")]),
            ("http://a/\tnutch.score=2.5", [Seed("http://a/", score=2.5)]),
            ("http://a/\tnutch.score=1e-3", [Seed("http://a/", score=0.001)]),
            ("http://a/\tnutch.fetchInterval=60", [Seed("http://a/", interval=60)]),
            ("http://a/\tnutch.fetchInterval.fixed=60", [Seed("http://a/", interval=60, fixed=True)]),
            (
                "http://a/\tnutch.fetchInterval.fixed=60\tnutch.fetchInterval=5",
                [Seed("http://a/", interval=60, fixed=True)],
            ),
            ("http://a/\tk=v\tl=a=b\tk=w", [Seed("http://a/", metadata={"k": "w", "l": "a=b"})]),
            ("http://a/\tnonsense\t=v", [Seed("http://a/", metadata={"": "v"})]),
            ("http://a/\t-sitemap", [Seed("http://a/", sitemap=True)]),
            ("http://a/\tk=v\t-sitemap", [Seed("http://a/", metadata={"k": "v"}, sitemap=True)]),
            (
                "http://a\tsitemaps: /x.xml /y.xml",
                [Seed("http://a/x.xml", sitemap=True), Seed("http://a/y.xml", sitemap=True), Seed("http://a")],
            ),
        ],
    )
    def test_seed_line_forms_are_parsed(self, line: str, seeds: list[Seed]) -> None:
        assert parse_seed_line(line) == seeds

    @pytest.mark.parametrize("number", ["", "much", "1,5", "0x10", "12 000", "--1", "1_0"])
    def test_malformed_numbers_are_ignored(self, number: str) -> None:
        assert parse_seed_line(f"http://a/\tnutch.score={number}\tnutch.fetchInterval={number}") == [Seed("http://a/")]
        assert parse_seed_line(f"http://a/\tnutch.fetchInterval.fixed={number}") == [Seed("http://a/")]

    @pytest.mark.parametrize("number", ["60.5", "60s"])
    def test_interval_must_be_whole_number(self, number: str) -> None:
        assert parse_seed_line(f"http://a/\tnutch.fetchInterval={number}") == [Seed("http://a/")]

    @pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e400", "99999999999"])
    def test_out_of_range_numbers_are_ignored(self, injected: Inject, number: str) -> None:
        rows = injected(f"http://a.example/\tnutch.fetchInterval={number}\tnutch.score={number}", "http://b.example/")
        assert rows["http://a.example/"].fetch_interval == rows["http://b.example/"].fetch_interval == 2592000
        assert rows["http://a.example/"].score == (99999997952.0 if number.isdigit() else 1.0)

    @given(st.text())
    def test_arbitrary_line_is_parsed(self, line: str) -> None:
        assert all(isinstance(seed, Seed) for seed in parse_seed_line(line))


class TestFiles:
    def test_folders_are_read_recursively_without_hidden_files(self, conf: Configuration, tmp_path: Path) -> None:
        top = tmp_path / "seeds"
        for name in ("b.txt", "a/1", "a/deep/er/2", ".hidden", "_SUCCESS"):
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(f"http://{name.replace('/', '-').strip('._').lower()}.example/\n")
        assert [str(file.relative_to(top)) for file in find_seed_files(top)] == ["a/1", "a/deep/er/2", "b.txt"]
        inject(conf, str(top))
        assert set(pages(conf)) == {"http://a-1.example/", "http://a-deep-er-2.example/", "http://b.txt.example/"}

    def test_single_file_is_read(self, tmp_path: Path) -> None:
        file = tmp_path / ".seeds"
        file.touch()
        assert find_seed_files(file) == [file]

    def test_invalid_path_is_reported(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"none does not exist: name a file of URLs, one per line, or a folder"):
            find_seed_files(tmp_path / "none")
        with pytest.raises(InputError, match=r"no seed files to inject found in .*: put a file there"):
            find_seed_files(tmp_path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_unreadable_folder_and_file_are_reported(self, tmp_path: Path) -> None:
        file = tmp_path / "seeds" / "a"
        file.parent.mkdir()
        file.touch()
        file.chmod(0)
        with pytest.raises(InputError, match=r"cannot read .*a: permission denied: check its permissions"):
            find_seed_files(tmp_path)
        file.parent.chmod(0)
        try:
            with pytest.raises(InputError, match=r"cannot read .*seeds: .*check its permissions"):
                find_seed_files(tmp_path)
        finally:
            file.parent.chmod(0o700)

    def test_missing_folder_creates_no_table(self, conf: Configuration, tmp_path: Path) -> None:
        from nutch2py.table import open_store

        with pytest.raises(InputError):
            inject(conf, str(tmp_path / "none"))
        assert not open_store(conf, WebPage).exists()

    def test_byte_order_mark_is_removed(self, injected: Inject) -> None:
        assert set(injected("http://a.example/", "http://b.example/", encoding="utf-8-sig")) == {
            "http://a.example/",
            "http://b.example/",
        }

    def test_invalid_utf_8_is_tolerated(self, conf: Configuration, tmp_path: Path) -> None:
        file = tmp_path / "seeds.txt"
        file.write_bytes(b"http://a.example/\tk=caf\xe9\nhttp://b.example/\r\nhttp://c.example/")
        inject(conf, str(file))
        assert set(pages(conf)) == {"http://a.example/", "http://b.example/", "http://c.example/"}

    @pytest.mark.parametrize("maps", ["1", "3", "16"])
    def test_last_repeated_seed_wins_across_files(self, conf: Configuration, tmp_path: Path, maps: str) -> None:
        conf.set("mapreduce.job.maps", maps)
        padding = "".join(f"http://pad.example/{number:040d}\n" for number in range(6000))
        folder = tmp_path / "seeds"
        folder.mkdir()
        seed = "http://a.example/\tnutch.score="
        (folder / "1").write_text(f"{seed}1\n{padding}{seed}2\n")
        (folder / "2").write_text(f"{seed}3\n{padding}{seed}4\n{padding}")
        result = inject(conf, str(folder))
        rows = pages(conf)
        assert rows["http://a.example/"].score == 4.0
        assert len(rows) == 6001
        assert result.count("injector", "urls_injected") == 3 * 6000 + 4
        assert result.count("injector", "urls_new") == 6001


class TestRows:
    URL = "http://a.example/"

    def test_new_row_has_seed_values(self, injected: Inject) -> None:
        page = injected(f"{self.URL}\tnutch.score=2\tnutch.fetchInterval=60\tk=v")[self.URL]
        assert (page.score, page.fetch_interval, metadata(page)) == (2.0, 60, {"k": "v"})
        assert decode_float(page.metadata[MetadataKey.CASH]) == 2.0
        assert dict(page.markers) == {Mark.DISTANCE: "0", Mark.INJECT: "y"}
        assert page.status == 0
        assert page.fetch_time > 1_700_000_000_000

    def test_new_row_has_defaults(self, injected: Inject) -> None:
        page = injected(self.URL, db_score_injected="3", db_fetch_interval_default="77")[self.URL]
        assert (page.score, page.fetch_interval) == (3.0, 77)

    def test_fixed_interval_is_stored_as_metadata(self, injected: Inject) -> None:
        page = injected(f"{self.URL}\tnutch.fetchInterval.fixed=60")[self.URL]
        assert page.fetch_interval == 60
        assert list(metadata(page).values()) == ["60"]

    def test_sitemap_seeds_are_marked(self, injected: Inject) -> None:
        rows = injected("http://a.example\tsitemaps: /s1.xml /s2.xml", "http://b.example/s.xml\t-sitemap")
        kinds = {url: page.markers[Mark.INJECT] for url, page in rows.items()}
        assert kinds == {
            "http://a.example/": "y",
            "http://a.example/s1.xml": "s",
            "http://a.example/s2.xml": "s",
            "http://b.example/s.xml": "s",
        }

    def test_urls_are_normalized_and_filtered(self, injected: Inject, capsys: pytest.CaptureFixture[str]) -> None:
        rows = injected("HTTP://A.Example:80/x/../y", "http://a.example/z.gif", "no url", "ftp://a.example/")
        assert set(rows) == {"http://a.example/y"}
        out = capsys.readouterr().out
        assert "total number of urls rejected by filters: 3" in out
        assert "total number of urls injected after normalization and filtering: 1" in out

    def test_faults_are_reported_with_file_and_line(
        self, conf: Configuration, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(input_splits, "MIN_SPLIT_BYTES", 40)
        conf.set("mapreduce.job.maps", "4")
        file = tmp_path / "seeds.txt"
        lines = [b"http://a.example/", b"# none", b"http://b.example/\tnutch.score=abc\tnutch.fetchInterval=1h\tword",
                 b"no url", b"http://c.example/\tk=\xff", b"http://d.example/x.gif", b"http://e.example/" + b"e" * 9000,
                 b"http://f.example/\tnutch.fetchInterval.fixed=-\t-sitemap", b"http://g.example/\tk=v"]  # fmt: skip
        file.write_bytes(b"\n".join(lines))
        counters = inject(conf, str(file)).counters["injector"]
        assert (counters["urls_injected"], counters["urls_filtered"], counters["faults"]) == (5, 3, 5)
        out = capsys.readouterr().out
        said = [line.removeprefix(f"{file} ") for line in out.splitlines() if line.startswith(str(file))]
        prefixes = ["line 3: nutch.score is 'abc'", "line 3: nutch.fetchInterval is '1h'",
                  "line 3: 'word' is not name=value", "line 4: no url is not injected: ", "line 5: it is not UTF-8",
                  "line 6: http://d.example/x.gif is not injected: a normalizer or a filter rejects it",
                  "line 7: http://e.example/eee", "line 8: nutch.fetchInterval.fixed is '-'"]  # fmt: skip
        assert [line[: len(prefix)] for line, prefix in zip(said, prefixes, strict=True)] == prefixes
        assert "total number of faults in seed lines, whose URLs are injected: 5" in out
        assert "total number of urls rejected by filters: 3" in out

    def test_existing_row_is_unchanged(self, conf: Configuration, injected: Inject) -> None:
        put(conf, {self.URL: {"score": 9.0, "fetch_time": 5, "status": 2, "marks": {Mark.UPDATEDB: "b"}}})
        page = injected(f"{self.URL}\tnutch.score=2\tk=v")[self.URL]
        assert (page.score, page.fetch_time, page.status, metadata(page)) == (9.0, 5, 2, {})
        assert dict(page.markers) == {Mark.UPDATEDB: "b"}

    def test_update_sets_given_values(self, conf: Configuration, injected: Inject) -> None:
        put(conf, {self.URL: {"score": 9.0, "fetch_time": 5, "metadata": {"old": b"1", "k": b"0"}}})
        page = injected(f"{self.URL}\tnutch.fetchInterval=60\tk=v", db_injector_update="true")[self.URL]
        assert (page.score, page.fetch_time, page.fetch_interval) == (9.0, 5, 60)
        assert metadata(page) == {"old": "1", "k": "v"}

    def test_overwrite_resets_row(self, conf: Configuration, injected: Inject) -> None:
        put(conf, {self.URL: {"score": 9.0, "fetch_time": 5, "marks": {Mark.GENERATE: "b"}, "metadata": {"old": b"1"}}})
        page = injected(f"{self.URL}\tk=v", db_injector_overwrite="true")[self.URL]
        assert (page.score, metadata(page)) == (1.0, {"k": "v"})
        assert dict(page.markers) == {Mark.DISTANCE: "0", Mark.INJECT: "y"}
        assert page.fetch_time > 5

    def test_counters_are_reported(self, conf: Configuration, tmp_path: Path) -> None:
        file = tmp_path / "seeds.txt"
        file.write_text("http://a.example/\nhttp://a.example/\nhttp://b.example/\nhttp://c.example/x.gif\n# none\n")
        assert inject(conf, str(file)).counters["injector"] == {"urls_injected": 3, "urls_filtered": 1, "urls_new": 2}
        assert inject(conf, str(file)).counters["injector"] == {
            "urls_injected": 3,
            "urls_filtered": 1,
            "urls_merged": 2,
        }


def test_injector_public_cases(
    cases: Callable[[str], list[dict[str, Any]]], tmp_path: Path, conf: Configuration
) -> None:
    """Every case of injector.json; none is excepted."""
    table, failed = cases("injector"), []
    for number, case in enumerate(table):
        case_conf = conf.copy()
        case_conf.set("storage.data.store", f"embedded:{tmp_path / str(number)}")
        for run, lines in enumerate(case["input"]["inject"], 1):
            seeds = tmp_path / f"seeds-{number}-{run}"
            seeds.write_text("\n".join(lines))
            case_conf.set("db.injector.update", run == 2 and "db.injector.update (second run)" in case["args"])
            inject(case_conf, str(seeds))
        if not _holds(pages(case_conf), case):
            failed.append(number)
    print(f"injector: {len(table) - len(failed)}/{len(table)}")
    assert failed == []


def _holds(rows: dict[str, WebPage], case: dict[str, Any]) -> bool:
    expected = case["expect"]
    sitemaps = {url for url, page in rows.items() if page.markers[Mark.INJECT] == "s"}
    checks = [
        len(rows) == expected["rows"],
        len(sitemaps) == expected.get("sitemap_rows", len(sitemaps)),
        sitemaps == set(expected.get("sitemap_urls", sitemaps)),
        *(rows[url].score == score for url, score in expected.get("score_of", {}).items()),
        *(rows[url].score != score for url, score in expected.get("score_not", {}).items()),
        *(rows[url].fetch_interval == interval for url, interval in expected.get("fetchInterval_of", {}).items()),
        *(metadata(rows[url]) == entries for url, entries in expected.get("metadata_of", {}).items()),
    ]
    if "each" in expected:  # score = nutch.score, metadata custom.attribute, nutch.score is not kept
        for line in case["input"]["inject"][0]:
            url, score, attribute = line.split("\t")
            checks.append(rows[url].score == float(score.partition("=")[2]))
            checks.append(metadata(rows[url]) == {"custom.attribute": attribute.partition("=")[2]})
    return all(checks)


@pytest.mark.parametrize("command", ["inject", "freegen", "hostinject"])
def test_empty_path_is_not_current_folder(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``inject "$SEEDS"`` of a script without ``SEEDS`` would take whatever lies there for seeds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("www.example.org\n")
    assert main([command, ""]) != 0
    assert "no seeds given" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["notes"]
