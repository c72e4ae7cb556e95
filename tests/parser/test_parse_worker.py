"""The parser's worker process, with parsers that hang, crash or take all memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, NutchError
from nutch2py.parser.worker.domain_budget import DomainTimeBudget
from nutch2py.parser.worker.parse_protocol import ParseResponse
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient, check_response
from nutch2py.plugins import loading
from nutch2py.records.webpage import MetadataKey, WebPage
from tests.counted_kills import strike
from tests.processes import alive, cpu_seconds, wait_until

from .pages import KEY, URL, fetched

ROOT = Path(__file__).parent.parent.parent
MODULE = """
import os, re, signal, time
from nutch2py.interfaces import Outlink, Parse
from nutch2py.records.webpage import WebPage

class Parser:
    content_types = "test/.*"
    fields = frozenset({WebPage.content, WebPage.content_type, WebPage.headers, WebPage.metadata})

    def __init__(self, conf):
        self.word, self.started = conf.get("test.word"), time.process_time()

    def parse(self, url, page):
        what = page.content.decode()
        if what == "spin":
            re.match("(a+)+$", "a" * 60 + "b")  # in C, and it lets no other thread run
        if what == "sleep":
            time.sleep(600)
        if what == "wait":
            time.sleep(2)
        if what.startswith("late "):
            time.sleep(0.6)
            what = what[5:]
        if what == "stop":  # as if the machine had no time for it
            os.kill(os.getpid(), signal.SIGSTOP)
        if what == "abort":
            os.abort()
        if what == "exit":
            os._exit(3)
        if what == "busy exit":
            while time.process_time() < 0.6 + self.started:
                pass
            os._exit(3)
        if what == "memory":
            bytearray(1 << 40)
        if what == "grow":
            held = []
            while True:
                held.append(bytearray(1 << 24))
        if what == "deep":
            return self.parse(url, page)
        if what in ("forge", "omit"):  # hostile content that took over the process
            body = b"\\xff\\xff" if what == "forge" else b"\\x90"
            for descriptor in range(3, 20):
                try:
                    os.write(descriptor, len(body).to_bytes(8, "little") + body)
                except OSError:
                    pass
            time.sleep(600)
        if what == "raise":
            raise ValueError("no good")
        if what == "print":
            print("printed"); os.write(1, b"written")
        if what == "huge":
            return Parse("x" * (300 << 20), "", ())
        if what == "surrogate":
            return Parse("a\\ud800b", "\\udfff", (Outlink("http://h/\\ud800", ""),))
        page.metadata["new"] = b"value"
        page.metadata.pop("old", None)
        text = f"{self.word} {os.getpid()} {page.headers['X']} {url}"
        return Parse(text, "title", (Outlink("http://h.test/l", "anchor"),), metadata={"m": b"\\xff"})
"""


ENDLESS = (
    "test_page_crashing_worker_gets_status_and_next_is_parsed[spin",
    "test_page_crashing_worker_gets_status_and_next_is_parsed[sleep",
)


@pytest.fixture
def parsing(
    request: pytest.FixtureRequest, tmp_path: Path, conf: Configuration, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ParseWorkerClient]:
    (tmp_path / "parser_that_fails.py").write_text(MODULE, encoding="utf-8")
    info = tmp_path / "parser_that_fails-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parser-that-fails\nVersion: 1\n", encoding="utf-8")
    entry = "[nutch2py.parser]\nparse-fails = parser_that_fails:Parser\n"
    (info / "entry_points.txt").write_text(entry, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    loading.installed_plugins.cache_clear()
    conf.set("plugin.includes", "parse-(html|fails)")
    # only those who never end need a limit that is short
    conf.set("parser.timeout", "4" if request.node.name.startswith(ENDLESS) else "60")
    conf.set("parser.timeout.wall.factor", "1.5" if "[sleep" in request.node.name else "1000")
    conf.set("parser.child.memory.mb", 512)
    conf.set("test.word", "said")
    made = ParseWorkerClient(conf)
    yield made
    made.close()
    loading.installed_plugins.cache_clear()


def page_for(what: str) -> WebPage:
    page = fetched(what.encode(), "test/x", X="header")
    page.metadata["old"] = b"1"
    return page


def pid_of(parsing: ParseWorkerClient) -> int:
    page = page_for("fine")
    assert parsing.parse_row(KEY, page).label == "success"
    return int((page.text or "").split()[1])


def test_worker_parse_equals_in_process_parse(parsing: ParseWorkerClient) -> None:
    page = page_for("fine")
    assert parsing.parse_row(KEY, page).label == "success"
    word, pid, header, url = (page.text or "").split()
    assert (word, header, url, page.title) == ("said", "header", URL, "title")
    assert int(pid) != os.getpid()
    assert dict(page.outlinks) == {"http://h.test/l": "anchor"}
    assert (page.metadata["new"], page.metadata["m"], "old" in page.metadata) == (b"value", b"\xff", False)
    assert pid_of(parsing) == int(pid)  # the process is kept


@pytest.mark.parametrize(("what", "reason"), [
    ("spin", "more than 4 s (parser.timeout)"),
    ("sleep", "no result after 6 s, 1.5 times 4 s of CPU time (parser.timeout; parser.timeout.wall.factor)"),
    ("abort", "the parser process ended (SIGABRT)"),
    ("exit", "the parser process ended (exit code 3)"),
    ("memory", "more memory than parser.child.memory.mb allows"),
    ("grow", "more memory than parser.child.memory.mb allows"),
    ("deep", "nested too deep"),
    ("raise", "ValueError: no good"),
    ("huge", "memory"),
    ("forge", "sent an invalid response"),
    ("omit", "sent an incomplete response"),
])  # fmt: skip
def test_page_crashing_worker_gets_status_and_next_is_parsed(
    parsing: ParseWorkerClient, what: str, reason: str
) -> None:
    page = page_for(what)
    outcome = parsing.parse_row(KEY, page)
    assert outcome.label == "failed"
    assert page.parse_status is not None
    assert (page.parse_status.major, page.parse_status.minor) == (2, 200)
    assert reason in page.parse_status.args[0]
    assert pid_of(parsing) > 0


def test_library_output_does_not_corrupt_protocol(parsing: ParseWorkerClient) -> None:
    assert parsing.parse_row(KEY, page_for("print")).label == "success"
    assert pid_of(parsing) > 0


def test_invalid_unicode_text_is_replaced_by_question_marks(parsing: ParseWorkerClient) -> None:
    page = page_for("surrogate")
    assert parsing.parse_row(KEY, page).label == "success"
    assert (page.text, page.title) == ("a?b", "?")


def test_worker_killed_between_pages_is_replaced(parsing: ParseWorkerClient) -> None:
    first = pid_of(parsing)
    assert strike(first)
    wait_until(lambda: not alive(first))
    assert pid_of(parsing) != first


def test_worker_ends_with_owner(parsing: ParseWorkerClient) -> None:
    pid = pid_of(parsing)
    parsing.close()
    assert not alive(pid)
    assert pid_of(parsing) != pid  # and starts again when it is needed


def test_html_is_parsed_in_worker(conf: Configuration) -> None:
    parsing = ParseWorkerClient(conf)
    page = fetched(b"<title>T</title><a href=x>x</a>" + b" " * 100)
    assert parsing.parse_row(KEY, page).label == "success"
    assert (page.title, page.metadata[MetadataKey.CHARSET], dict(page.outlinks)) == (
        "T", b"windows-1252", {"http://h.test/d/x": "x"}
    )  # fmt: skip
    parsing.close()


def test_pipelined_rows_keep_order_despite_failures(parsing: ParseWorkerClient) -> None:
    works = ["fine", "abort", "fine", "memory", "raise", "fine", "exit", "exit", *["fine"] * 40, "abort", "fine"]
    rows = [(f"test.h:http/{number}", page_for(what)) for number, what in enumerate(works)]
    found = [*parsing.parse_rows(iter(rows))]
    assert [row.key for row in found] == [key for key, _ in rows]
    assert [row.outcome.label == "success" for row in found] == [what == "fine" for what in works]
    assert all(row.page.mutation() == page_for("fine").mutation() for row in found if row.page.content == b"fine")
    assert all(row.mutation is not None for row in found)


def test_abandoned_rows_leave_no_responses(parsing: ParseWorkerClient) -> None:
    rows = ((f"test.h:http/{number}", page_for("fine")) for number in range(20))
    for _ in parsing.parse_rows(rows):
        break
    page = page_for("fine")
    assert parsing.parse_row(KEY, page).label == "success"
    assert (page.text or "").endswith(f" {URL}")


def test_rows_larger_than_pipe_are_transferred(parsing: ParseWorkerClient) -> None:
    body = b"<title>T</title><p>" + b"word " * 600_000
    rows = [(f"test.h:http/{number}", fetched(body)) for number in range(8)]
    assert [row.outcome.label for row in parsing.parse_rows(rows)] == ["success"] * 8


def test_invalid_worker_configuration_ends_job(parsing: ParseWorkerClient, conf: Configuration) -> None:
    conf.set("parser.child.memory.mb", 20)  # not enough for Python itself
    with pytest.raises(NutchError):  # not caused by the page
        parsing.parse_row(KEY, page_for("fine"))


@pytest.mark.parametrize(
    ("name", "raised"),
    [
        ("ConfigurationError", ConfigurationError),
        ("NutchError", NutchError),
        ("iter_causes", NutchError),
        ("LockLostError", NutchError),
        ("__builtins__", NutchError),
        ("SystemExit", NutchError),
    ],
)
def test_worker_can_only_report_known_errors(name: str, raised: type[NutchError]) -> None:
    with pytest.raises(NutchError, match=r"^a message$") as caught:
        check_response(ParseResponse(error=(name, "a message")))
    assert type(caught.value) is raised


OWNER = """
import sys, time
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import NutchError
from nutch2py.parser.worker.parse_worker_client import ParseWorkerClient
from nutch2py.parser.worker.domain_budget import DomainTimeBudget
from tests.parser.pages import KEY, fetched
conf = Configuration.load(overrides={"http.agent.name": "x", "parser.timeout": "0", "parser.html.max.attributes": "0"})
parsing = ParseWorkerClient(conf)
parsing.parse_row(KEY, fetched(b"<title>first"))
print(parsing.worker_pid, flush=True)
parsing.parse_row(KEY, fetched(b"<p " + b" ".join(b"b%d" % number for number in range(200_000)) + b">"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends it at once on Linux alone")
def test_worker_ends_when_owner_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, cwd=ROOT) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        wait_until(lambda: cpu_seconds(child) > 1)  # it parses the second page, which takes minutes
        assert strike(owner)
        wait_until(lambda: not alive(child))


@pytest.mark.parametrize("what", ["spin", "sleep"])
def test_slow_domain_gets_reduced_time_budget(
    parsing: ParseWorkerClient, conf: Configuration, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Whichever of its hosts they are on; those of others have all of theirs."""
    monkeypatch.setattr("nutch2py.parser.worker.domain_budget.SLOW_PAGE_SECONDS", 0.3)
    conf.set("parser.timeout", "1.5")
    conf.set("parser.timeout.wall.factor", "1" if what == "sleep" else "1000")
    conf.set("parser.domain.seconds", "2")
    keys = [f"com.evil.h{number}:http/" for number in range(4)] + ["com.other:http/"]
    with closing(ParseWorkerClient(conf)) as made:
        rows = [*made.parse_rows((key, page_for(what)) for key in keys)]
    reasons = [row.outcome.message.partition(": ")[2] for row in rows]
    little, whole = "parser.domain.seconds: others took too long", "(parser.timeout"
    assert [[part in reason for part in (little, whole)] for reason in reasons] == [
        [False, True], [False, True], [True, False], [True, False], [False, True]
    ]  # fmt: skip
    assert all(("more than" in reason) == (what == "spin") for reason in reasons)


@pytest.mark.parametrize("kind", ["page", "parse", "domain"])
def test_waiting_page_does_not_use_up_its_cpu_time(
    parsing: ParseWorkerClient, conf: Configuration, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As on a busy machine: two seconds by the clock, nearly none of CPU time."""
    monkeypatch.setattr("nutch2py.parser.worker.domain_budget.SLOW_PAGE_SECONDS", 0.5)
    conf.set("parser.timeout", "60" if kind == "domain" else "0.5")
    conf.set("parser.timeout.wall.factor", "1000")
    conf.set("parser.domain.seconds", "0.5")
    with closing(ParseWorkerClient(conf)) as made:
        if kind == "parse":
            assert made.parse(URL, page_for("wait")).text
            return
        rows = [*made.parse_rows((KEY, page_for("wait")) for _ in range(2))]
        assert [row.outcome.label for row in rows] == ["success", "success"]


@pytest.mark.parametrize("what", ["exit", "forge", "omit"])
def test_failed_page_counts_its_cpu_time(
    parsing: ParseWorkerClient, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Not the time for which it waited: others of its domain would have less."""
    recorded: list[float] = []
    monkeypatch.setattr(DomainTimeBudget, "record", lambda _, key, seconds: recorded.append(seconds))
    assert parsing.parse_row(KEY, page_for("fine")).label == "success"
    assert parsing.parse_row(KEY, page_for(f"late {what}")).label == "failed"
    assert 0 <= recorded[1] < 0.6


def test_crashed_page_that_computed_counts_its_cpu_time(
    parsing: ParseWorkerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[float] = []
    monkeypatch.setattr(DomainTimeBudget, "record", lambda _, key, seconds: recorded.append(seconds))
    assert parsing.parse_row(KEY, page_for("busy exit")).label == "failed"
    assert recorded[0] >= 0.5


def test_stopped_worker_is_killed_by_client(parsing: ParseWorkerClient, conf: Configuration) -> None:
    """A worker that no timer ends any more, whatever stopped it."""
    conf.set("parser.timeout", "0.5")
    conf.set("parser.timeout.wall.factor", "1")
    with closing(ParseWorkerClient(conf)) as made:
        outcome = made.parse_row(KEY, page_for("stop"))
    assert "no result after 0.5 s" in outcome.message


def test_slow_domain_memory_is_bounded(conf: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nutch2py.parser.worker.domain_budget.MAX_DOMAINS", 100)
    budget = DomainTimeBudget(conf, 30.0)
    budget.record("com.evil:http/", 301.0)
    for number in range(1000):
        budget.record(f"com.d{number}:http/", 20.0)
        budget.record(f"com.fine{number}:http/", 0.5)
    assert len(budget.used_seconds) <= 100
    assert budget.allowed_seconds("com.evil.www:https/x") == 1.0
    assert budget.allowed_seconds("com.d999:http/") == 30.0
