"""``nutch2py crawl``: from an empty folder to an index in one command, with a summary of skipped URLs."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nutch2py import Crawl, WebPage
from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.crawl_loop.seed_arguments import own_site_delay_hint, resolve_seeds
from nutch2py.errors import InputError
from tests.conftest import MAP_SIZE
from tests.processes import HEEDING, wait_until
from tests.site.server import Reply, ScriptedSite

SETTINGS = {
    "http.filter.ipaddress.exclude": "",
    "fetcher.server.delay": "0",
    "storage.embedded.map.size": MAP_SIZE,
    "fetcher.threads.per.queue": "10",
}
OPTIONS = [word for name, value in SETTINGS.items() for word in ("-D", f"{name}={value}")]


def page(*links: str, text: str = "words") -> Reply:
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return Reply(body=f"<title>{text}</title><p>{text}</p>{anchors}".encode())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_table(folder: Path, data: str = "crawldata") -> set[str]:
    with Crawl(f"embedded:{folder / data}") as crawl:
        return {url for url, row in crawl.pages(fields={WebPage.status}) if row.status == 2}


def test_site_is_crawled_and_searchable_as_summary_says(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.on("/", page("/a", "/b", "/missing", "http://elsewhere.invalid/", text="harbour"))
    site.on("/a", page("/c", text="lighthouse keeper"))
    site.on("/b", Reply(302, headers=[("Location", "/c")]))
    site.on("/c", page("/", text="tide tables"))
    site.on("/missing", Reply(404))
    assert main(["crawl", f"127.0.0.1:{site.port}", "-data", "here", *OPTIONS]) == 0
    said = capsys.readouterr().out
    assert "3 pages fetched" in said
    assert re.search(r"in 3 rounds, .*; 3 documents in the index", said)
    assert re.search(r" 1 URLs redirected, their targets are fetched instead", said)
    assert re.search(r" 1 URLs not found \(404\)", said)
    assert "Links to another host were not followed: see -stay." in said
    assert in_table(folder, "here") == {site.url(path) for path in ("/", "/a", "/c")}
    command = next(line for line in said.splitlines() if "nutch2py search" in line).split()
    assert main([*command[1:-1], "lighthouse"]) == 0
    assert site.url("/a") in capsys.readouterr().out
    command = next(line for line in said.splitlines() if "nutch2py report" in line).split()
    assert main(command[1:]) == 0
    assert re.search("<p>[0-9]+ pages of 1 host, [0-9]+ % fetched", Path(command[-1]).read_text("utf-8"))


@pytest.mark.parametrize(
    ("words", "delay", "hinted"),
    [
        (["http://127.0.0.1:9/", "http://localhost:9/"], "5.0", True),
        (["http://[::1]:9/"], "1.5", True),
        (["http://127.0.0.1:9/"], "0.5", False),
        (["http://127.0.0.1:9/", "http://www.example.org/"], "5.0", False),
    ],
)
def test_crawl_of_own_machine_names_the_delay(words: list[str], delay: str, hinted: bool) -> None:
    conf = Configuration.load(overrides={"fetcher.server.delay": delay})
    hint = own_site_delay_hint(resolve_seeds(words, conf), conf)
    assert (f"{float(delay):g} s apart (fetcher.server.delay)" in hint) is hinted


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("http://127.0.0.1:9/", "127.0.0.1 has the address 127.0.0.1, which http.filter.ipaddress.exclude denies"),
        ("http://nobody.invalid/", "nobody.invalid: "),
    ],
)
def test_unfetchable_seed_is_reported_before_anything_is_created(
    folder: Path, capsys: pytest.CaptureFixture[str], word: str, message: str
) -> None:
    assert main(["crawl", word, "-D", "http.dns.timeout=2"]) == 9
    assert message in capsys.readouterr().err
    assert [*folder.iterdir()] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_unwritable_output_is_named_in_error(site: ScriptedSite, folder: Path) -> None:
    site.on("/", page())
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "nutch2py.cli", "crawl", site.url("/"), *OPTIONS]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, "no space is left for standard output" in done.stderr) == (4, True), done.stderr


def test_filtered_seeds_are_reported(site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site.on("/", page())
    assert main(["crawl", site.url("/a.gif"), *OPTIONS]) == 9
    assert "nothing can be fetched: 1 of 1 seeds are rejected by the URL filters" in capsys.readouterr().err
    assert main(["crawl", "file:///etc/passwd", *OPTIONS]) == 9
    assert "nothing can be fetched: 1 of 1 seeds are rejected by the URL filters" in capsys.readouterr().err
    assert [*folder.iterdir()] == []
    assert main(["crawl", site.url("/"), *OPTIONS, "-D", "urlfilter.regex.file=/nowhere"]) == 2
    assert [*folder.iterdir()] == []
    assert main(["crawl", site.url("/a.gif"), site.url("/"), *OPTIONS]) == 0
    assert "WARN 1 of 2 seeds are rejected by the URL filters" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere/else.txt.d/../x y"], "neither a URL nor a file"),
        (["./seeds"], "neither a URL nor a file"),
        ([""], "'' is neither a URL nor a file"),
        (["https://a.test/", " "], "' ' is neither a URL nor a file"),
        (["http://"], "http:// is not the URL of a page"),
        (["https://a.test/", "-pages", "0"], "-pages 0 would fetch nothing"),
        (["https://a.test/", "-stay", "here"], "invalid choice: 'here'"),
        (["https://a.test/", "-data", ""], "-data is empty: write -data DIR"),
        (
            ["https://a.test/", "-data", "hbase://h"],
            "-data hbase://h is not a folder: for another store, write -D storage.",
        ),
        (["https://a.test/", "-data", "embedded:d"], "-data embedded:d is not a folder"),
        (["https://a.test/", "-data", "\udcff"], r"the value of storage.data.store is not UTF-8 ('embedded:\udcff')"),
        (["https://a.test/", "-index", "http://\udcff"], "the value of solr.server.url is not UTF-8"),
        (["https://a.test/", "-crawlId", "\udcff"], "the value of storage.crawl.id is not UTF-8"),
        (
            ["http://127.0.0.1:9/", *OPTIONS, "-data", "/dev/null"],
            (
                "cannot open webpage in /dev/null (Not a directory): check that its folder is a folder "
                "or can be created, or name"
            ),
        ),
        (["https://a.test/", "-index", "solr"], "the URL of a Solr collection"),
        ([], "required: URL"),
    ],
)
def test_invalid_arguments_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["crawl", *words]) != 0
    assert message in capsys.readouterr().err
    assert [*folder.iterdir()] == []


def test_unrequested_urls_are_not_counted_as_unindexed(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last index job reads every row, also those that a limit has left to the next crawl."""
    site.on("/", page("/a", "/b", "/c"))
    assert main(["crawl", site.url("/"), *OPTIONS, "-pages", "1"]) == 0
    said = capsys.readouterr().out
    assert "1 page" in said
    assert "are no documents" not in said


def test_crawl_without_fetched_page_fails(site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site.on("/robots.txt", Reply(body=b"User-agent: *\nDisallow: /"))
    assert main(["crawl", site.url("/"), *OPTIONS]) == 9
    said = capsys.readouterr()
    assert " 1 URLs disallowed by robots.txt" in said.out
    assert "no page was fetched" in said.err
    assert main(["crawl", site.url("/"), *OPTIONS]) == 1
    assert "No URL is due" in capsys.readouterr().out


def test_limit_ends_crawl_and_same_command_continues(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.on("/", page(*(f"/{number}" for number in range(6))))
    for number in range(6):
        site.on(f"/{number}", page())
    command = ["crawl", site.url("/"), "-pages", "4", *OPTIONS]
    assert main(command) == 0
    assert "Stopped at -pages 4. Run the same command again to continue." in capsys.readouterr().out
    assert len(in_table(folder)) == 4
    assert main(command) == 0
    assert "3 pages fetched" in capsys.readouterr().out
    assert [site.gets(f"/{number}") for number in range(6)] == [1] * 6


def test_depth_counts_links_from_seeds(site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        site.on(f"/{number}", page(f"/{number + 1}"))
    assert main(["crawl", site.url("/0"), "-depth", "2", *OPTIONS]) == 0
    said = capsys.readouterr().out
    assert " 1 URLs too many links from a seed (generate.max" in said
    assert said.lower().count("no earlier ranks are known") == 1
    assert "not followed" not in said  # no link leads elsewhere
    assert [line for line in said.splitlines() if not line.strip()] == []
    assert in_table(folder) == {site.url(f"/{number}") for number in range(3)}


@pytest.mark.parametrize(
    ("stay", "expected"),
    [
        ("path", {"/docs/", "/docs/a"}),
        ("host", {"/docs/", "/docs/a", "/other"}),
        ("anywhere", {"/docs/", "/docs/a", "/other", "b"}),
    ],
)
def test_scope_limits_links(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str], stay: str, expected: set[str]
) -> None:
    with ScriptedSite(address="127.0.0.2") as other:
        other.on("/robots.txt", Reply(404))
        other.on("/b", page())
        site.on("/docs/", page("/docs/a", "/other", other.url("/b")))
        for path in ("/docs/a", "/other"):
            site.on(path, page())
        assert main(["crawl", site.url("/docs/"), "-stay", stay, *OPTIONS]) == 0
        skipped = {"path": ["Links to another folder"], "host": ["Links to another host"], "anywhere": []}
        assert re.findall("(.*) were not followed", capsys.readouterr().out) == skipped[stay]
        urls = {other.url("/b") if path == "b" else site.url(path) for path in expected}
        assert in_table(folder) == urls


def test_redirecting_seed_extends_scope_to_target_host(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedSite(address="127.0.0.2") as other:
        other.on("/robots.txt", Reply(404))
        other.on("/home", page("/more"))
        other.on("/more", page(site.url("/not-from-here")))
        site.on("/", Reply(301, headers=[("Location", other.url("/home"))]))
        site.on("/not-from-here", page())
        assert main(["crawl", site.url("/"), *OPTIONS]) == 0
        assert f"redirects to {other.url('/home')}, which is crawled, too" in capsys.readouterr().out
        assert in_table(folder) == {other.url("/home"), other.url("/more")}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_stopped_crawl_continues_with_same_command(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals, code: int
) -> None:
    site.on("/", page(*(f"/{name}" for name in range(5))))
    for name in range(5):
        site.on(f"/{name}", Reply(body=b"<p>late", hang=60) if name == 4 else page())
    words = ["crawl", site.url("/"), *OPTIONS]
    command = [sys.executable, "-c", HEEDING, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: site.gets("/4") == 1 or process.poll() is not None)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert ("Stopped after" in out) == (number != signal.SIGKILL)
    assert "Traceback" not in err
    site.on("/4", page(text="late"))
    assert main(words) == 0
    assert "resuming batch" in capsys.readouterr().out
    assert in_table(folder) == {site.url("/"), *(site.url(f"/{name}") for name in range(5))}
    assert main(["search", "-D", f"storage.embedded.map.size={MAP_SIZE}", "late"]) == 0


def test_url_rejected_by_setting_is_due_after_setting_changes(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedSite(address="127.0.0.2") as other:
        other.on("/robots.txt", Reply(404))
        other.on("/b", page())
        site.on("/", page(other.url("/b")))
        command = ["crawl", site.url("/"), "-stay", "anywhere", *OPTIONS]
        assert main([*command, "-D", "http.filter.ipaddress.exclude=127.0.0.2"]) == 0
        assert " 1 URLs blocked by the address filter, retried later" in capsys.readouterr().out
        assert main([*command, "-D", "http.filter.ipaddress.exclude=127.0.0.2"]) == 1  # as before: nothing is due
        assert "allowed now" not in capsys.readouterr().out
        assert main(command) == 0
        assert "1 pages with addresses that were denied are allowed now, and due" in capsys.readouterr().out
        assert in_table(folder) == {site.url("/"), other.url("/b")}


@pytest.mark.parametrize(
    ("made", "word", "message"),
    [
        (
            {"a.py": "import os\n"},
            ".",
            "{}/a.py is not a seed file: its line 'import os' is not the URL of a page; a seed",
        ),
        (
            {"a": b"\xff\xfe\0"},
            "here",
            "{}/here/a is not a seed file: it is not UTF-8 text; a seed is the URL of a",
        ),
        (
            {str(n): "" for n in range(4)},
            "here",
            "the folder here has more than 3 files, which are hardly seeds: a seed",
        ),
        (
            {"ring": Path("here")},
            "here",
            "no seed files to inject found in {}/here: put a file there with one URL per line",
        ),
        (
            {"lost": Path("nowhere")},
            "here",
            ": it is not a regular file: move it out of the folder; a seed is the URL of a page",
        ),
        ({}, "h" * 300, "{}"),
        ({}, "/dev/null", "/dev/null is neither a file nor a folder: name a file of URLs, one per line"),
    ],
    ids=["code", "binary", "many", "ring", "lost", "long", "device"],
)
def test_folder_without_seeds_is_named_in_error(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    made: dict[str, str | bytes | Path],
    word: str,
    message: str,
) -> None:
    monkeypatch.setattr("nutch2py.crawl_loop.seed_arguments.MAX_SEED_FILES", 3)
    here = folder if word == "." else folder / "here"
    here.mkdir(exist_ok=True)
    for name, content in made.items():
        if isinstance(content, Path):
            (here / name).symlink_to(folder / content)
            (here / f"{name}2").symlink_to(folder / content)
            continue
        (here / name).write_bytes(content.encode() if isinstance(content, str) else content)
    before = sorted(folder.rglob("*"))
    assert main(["crawl", word, *OPTIONS]) in (2, 3, 9)
    error = capsys.readouterr().err
    if message == "{}":
        assert f"{'h' * 250}" in error
    else:
        assert message.format(folder) in error
    assert sorted(folder.rglob("*")) == before


def test_seed_files_and_quiet_option_work(site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "seeds.txt").write_text(f"# mine\n{site.url('/a')}\tnutch.score=2\n{site.url('/b')}\n")
    site.on("/a", page())
    site.on("/b", page())
    assert main(["crawl", "seeds.txt", "-q", *OPTIONS]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 pages fetched")
    assert in_table(folder) == {site.url("/a"), site.url("/b")}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("seeds.txt", "seeds.txt: no such file: give an existing file with one URL per line, or a URL"),
        ("http:/a.test/b", "'http:/a.test/b' is not a valid URL: did you mean http://a.test/b?"),
        ("HTTPS:a.test", "'HTTPS:a.test' is not a valid URL: did you mean https://a.test?"),
    ],
)
def test_mistyped_seed_is_named_without_dns(folder: Path, word: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_seeds([word], Configuration.load())
    assert str(caught.value) == message


def test_faults_of_seed_fields_are_kept(folder: Path) -> None:
    (folder / "seeds").write_text("http://a.test/\tnutch.fetchInterval=-100\nhttp://b.test/\tkind=good\n")
    first, second = resolve_seeds(["seeds"], Configuration.load())
    assert len(first.faults) == 1
    assert "nutch.fetchInterval is '-100'" in first.faults[0]
    assert second.faults == ()


def test_crawl_stops_when_only_held_hosts_are_left(
    site: ScriptedSite, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.on("/robots.txt", Reply(500))
    words = ["crawl", site.url("/"), *OPTIONS, "-D", "http.robots.503.defer.visits.retries=0"]
    assert main(words) == 9
    said = capsys.readouterr()
    assert "Stopped: only hosts without a readable robots.txt are left." in said.out + said.err
    assert site.gets("/") == 0
