"""The scripts: what an operator and a newcomer start, run as they would run them."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.processes import wait_until

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"
BASH = re.compile(rb"\A#!.*\bbash\b|\A# shellcheck shell=bash")


def shell_scripts() -> list[Path]:
    found = [*SCRIPTS.iterdir(), ROOT / ".ci" / "run"]
    return sorted(path for path in found if path.is_file() and BASH.search(path.read_bytes()[:200]))


def run(*words: str | Path, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


def test_every_script_is_executable_except_sourced_one() -> None:
    for path in [*SCRIPTS.iterdir(), ROOT / ".ci" / "run"]:
        runnable = bool(path.stat().st_mode & stat.S_IXUSR)
        if path.is_file():
            assert runnable is (path.name != "environment"), path


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "services").iterdir()))
def test_compose_file_runs_service_scripts(name: str) -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    service = compose["services"][name]
    home = "$PWD" if name == "hadoop" else "/nutch2py"
    assert service["command"][:3] == [f"{home}/scripts/services", "run", name]
    folders = set()
    for mount in service["volumes"]:
        source, target = mount.split(":")[:2]
        if source.startswith((".", "$")):
            folders.add(source.partition("/")[2])
            assert target == f"{home}/{source.partition('/')[2]}"
        else:
            assert source in compose["volumes"]
    assert {"scripts/services", f"services/{name}"} <= folders
    assert all((ROOT / folder).exists() for folder in folders if not folder.startswith(".cache"))


@pytest.mark.parametrize("path", shell_scripts(), ids=lambda path: path.name)
def test_shellcheck_reports_nothing(path: Path) -> None:
    assert run("bash", "-n", path).returncode == 0
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed: bash -n alone was run")
    checked = run("shellcheck", "-x", path)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-test.lock", "requirements-docs.lock"])
def test_lock_files_contain_versions_and_hashes_without_hosts(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*--(index-url|extra-index-url|find-links|trusted-host)", text, re.MULTILINE)
    packages = re.findall(r"^[A-Za-z0-9].*(?:\n +--hash=.*)+", text, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^[A-Za-z0-9]", text, re.MULTILINE)) > 30
    assert all(re.match(r"[\w.-]+==\S+", package) and "--hash=sha256:" in package for package in packages)


def test_test_lock_contains_runtime_lock() -> None:
    def versions(name: str) -> set[str]:
        return set(re.findall(r"^([\w.-]+==[^\s;]+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))

    assert versions("requirements.lock") < versions("requirements-test.lock")


def test_every_dependency_is_locked() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))
    wanted = {re.split(r"[^\w.-]", each)[0].lower().replace("_", "-") for each in project["dependencies"]}
    assert not wanted - locked, "run scripts/lock"


def test_nutch2py_script_works_from_any_folder_and_returns_exit_code(tmp_path: Path) -> None:
    (tmp_path / "nutch2py.py").write_text("raise SystemExit('the wrong module')", encoding="utf-8")
    link = tmp_path / "link"
    link.symlink_to(SCRIPTS / "nutch2py")
    done = run(link, "showproperties", "-D", "http.agent.name=two words", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "http.agent.name=two words\n" in done.stdout
    assert run(SCRIPTS / "nutch2py", "no-such-command").returncode != 0


def test_nutch2py_script_without_python_prints_fix(tmp_path: Path) -> None:
    copy = checkout(tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "readlink", "cksum", "mkdir", "flock", "grep", "env", "cat"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    done = run(copy / "scripts" / "nutch2py", "inject", PATH=str(tools))
    assert done.returncode == 255
    assert "no Python 3.11 or later is on the PATH: install one" in done.stderr


@pytest.mark.parametrize(
    ("present", "asked", "chosen"),
    [
        ({"python3": (3, 12), "python3.11": (3, 11)}, "", "python3"),
        ({"python3": (3, 14), "python3.11": (3, 11), "python3.13": (3, 13)}, "", "python3.13"),
        ({"python3": (3, 9), "python3.14": (3, 14)}, "", "python3.14"),
        ({"python3": (3, 12), "python3.11": (3, 11)}, "python3.11", "python3.11"),
        ({"python3": (3, 12), "python3.15": (3, 15)}, "python3.15", "python3.15"),
        ({"python3": (3, 10)}, "", ""),
    ],
)
def test_supported_python_has_wheels_for_every_package(
    tmp_path: Path, present: dict[str, tuple[int, int]], asked: str, chosen: str
) -> None:
    for name, version in present.items():
        of_that_version = f"import sys; sys.version_info = {(*version, 0, 'final', 0)}; exec(sys.argv[1])"
        (tmp_path / name).write_text(
            f'#!{shutil.which("bash")}\nexec {sys.executable} -S -c "{of_that_version}" "$2"\n'
        )
        (tmp_path / name).chmod(0o755)
    (tmp_path / "dirname").symlink_to(shutil.which("dirname") or "")
    done = run(
        *(shutil.which("bash") or "", "-c", f". {SCRIPTS / 'environment'} && _environment_python"),
        PATH=str(tmp_path),
        NUTCH2PY_PYTHON=asked,
    )
    assert done.stdout == (f"{tmp_path / chosen}\n" if chosen else ""), done.stderr
    assert ("newer than" in done.stderr) == (chosen == "python3.14")


def checkout(folder: Path) -> Path:
    copy = folder / "checkout"
    copy.mkdir()
    shutil.copytree(SCRIPTS, copy / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "requirements.lock", "requirements-test.lock"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """Serve three pages that link to each other, with scripts/serve_folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, title, links in [("index", "Start", "a b"), ("a", "Apples", "b index"), ("b", "Bananas", "nowhere")]:
        anchors = "".join(f'<p><a href="{link}.html">To {link}</a></p>' for link in links.split())
        head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
        page = f"<html>{head}<body>About {title}.{anchors}</body></html>"
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    with serving(folder) as address:
        yield address


class serving:  # noqa: N801  # a context manager, used as a function
    """Run scripts/serve_folder; give its address."""

    def __init__(self, *folders: Path | str) -> None:
        self.words = [sys.executable, str(SCRIPTS / "serve_folder"), *map(str, folders)]

    def __enter__(self) -> str:
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate()


def get(connection: http.client.HTTPConnection, path: str) -> tuple[int, str | None, bytes]:
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read()


class TestServeFolder:
    def test_serves_types_charsets_and_indexes_on_one_connection(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "index.html").write_bytes(b"<meta http-equiv=Content-Type content='text/html; charset=EUC-KR'>x")
        (tmp_path / "plain.html").write_bytes(b"no declaration")
        (tmp_path / "sub" / "a b.txt").write_bytes(b"text")
        with serving(tmp_path) as address:
            connection = http.client.HTTPConnection(address.split("/")[2])
            assert get(connection, "/")[:2] == (200, "text/html; charset=euc-kr")
            socket = connection.sock
            assert get(connection, "/plain.html")[:2] == (200, "text/html")
            assert get(connection, "/sub/a%20b.txt") == (200, "text/plain", b"text")
            status, _, listing = get(connection, "/sub/")
            assert (status, b"a%20b.txt" in listing) == (200, True)
            assert get(connection, "/missing.html")[0] == 404
            assert socket is not None
            connection.close()

    def test_keeps_connection_open(self, site: str) -> None:
        connection = http.client.HTTPConnection(site.split("/")[2])
        get(connection, "/")
        socket = connection.sock
        get(connection, "/a.html")
        assert connection.sock is socket
        connection.close()

    @pytest.mark.parametrize("path", ["/../secret.txt", "/%2e%2e/secret.txt", "/link.txt", "/sub/../../secret.txt"])
    def test_path_outside_folder_is_not_served(self, tmp_path: Path, path: str) -> None:
        (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
        folder = tmp_path / "folder"
        (folder / "sub").mkdir(parents=True)
        (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
        with serving(folder) as address:
            connection = http.client.HTTPConnection(address.split("/")[2])
            assert get(connection, path)[0] == 404
            connection.close()

    def test_several_folders_are_served_by_name(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "x.txt").write_text(name, encoding="utf-8")
        with serving(f"first={tmp_path / 'one'}", tmp_path / "two") as address:
            connection = http.client.HTTPConnection(address.split("/")[2])
            assert get(connection, "/first/x.txt")[2] == b"one"
            assert get(connection, "/two/x.txt")[2] == b"two"
            assert b'href="first/"' in get(connection, "/")[2]
            assert get(connection, "/one/x.txt")[0] == 404
            connection.close()


def test_pydoc_pages_link_to_each_other(tmp_path: Path) -> None:
    done = run(sys.executable, SCRIPTS / "pydoc_pages", tmp_path)
    assert done.returncode == 0, done.stderr
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r'href="([^"]+)"', index))
    assert len(named) > 100
    assert named == {path.name for path in tmp_path.glob("*.html")} - {"index.html"}


class TestCrawl:
    """scripts/crawl with fake commands for tests of its loop, and with the real ones."""

    def stand_in(self, folder: Path, body: str) -> str:
        path = folder / "nutch"
        path.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/calls"\n{body}\n', encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def calls(self, folder: Path) -> list[str]:
        return [line.split()[0] for line in (folder / "calls").read_text(encoding="utf-8").splitlines()]

    def test_rounds_run_all_steps_with_one_batch_id(self, tmp_path: Path) -> None:
        nutch = self.stand_in(tmp_path, "exit 0")
        done = run(SCRIPTS / "crawl", "-D", "a=b c", "seeds", "id1", "2", cwd=tmp_path, NUTCH2PY=nutch)
        assert done.returncode == 0, done.stdout + done.stderr
        assert self.calls(tmp_path) == ["inject", *["generate", "fetch", "parse", "updatedb", "index"] * 2]
        lines = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
        assert lines[0] == "inject -D a=b c seeds -crawlId id1"
        found = re.search(r"-topN 50000 -noNorm -noFilter -adddays 0 -crawlId id1 -batchId (\d+-\d+)$", lines[1])
        assert found is not None
        assert lines[2] == f"fetch -D a=b c -D fetcher.timelimit.mins=180 {found[1]} -crawlId id1 -threads 50"
        assert [line.split()[-3] for line in lines[3:6]] == [found[1]] * 3

    def test_batches_are_sent_to_given_solr(self, tmp_path: Path) -> None:
        nutch = self.stand_in(tmp_path, "exit 0")
        run(SCRIPTS / "crawl", "seeds", "id1", "http://solr/x", "1", cwd=tmp_path, NUTCH2PY=nutch)
        index, dedup = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()[-2:]
        assert index.startswith("index -D solr.server.url=http://solr/x ")
        assert dedup == "solrdedup http://solr/x"

    def test_nothing_due_stops_crawl(self, tmp_path: Path) -> None:
        nutch = self.stand_in(tmp_path, '[ "$1" != generate ]')
        done = run(SCRIPTS / "crawl", "seeds", "id1", "5", cwd=tmp_path, NUTCH2PY=nutch)
        assert done.returncode == 0
        assert "Generate returned 1 (no new segments created)" in done.stdout
        assert self.calls(tmp_path) == ["inject", "generate"]

    @pytest.mark.parametrize("step", ["inject", "generate", "fetch", "parse", "updatedb", "index"])
    def test_failing_step_sets_exit_code(self, tmp_path: Path, step: str) -> None:
        nutch = self.stand_in(tmp_path, f'[ "$1" != {step} ] || exit 4')
        done = run(SCRIPTS / "crawl", "seeds", "id1", "5", cwd=tmp_path, NUTCH2PY=nutch)
        assert done.returncode == 4
        assert f"Error running:\n  {nutch} {step} " in done.stdout
        assert done.stdout.endswith("Failed with exit value 4.\n")
        assert self.calls(tmp_path)[-1] == step

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
    def test_signal_ends_running_command(self, tmp_path: Path, number: signal.Signals, code: int) -> None:
        """As an administrator sends it: to the script alone, which must end its command, too."""
        waiting = f"trap 'touch {tmp_path}/signalled; exit 7' TERM; touch {tmp_path}/there; while :; do sleep 0.1; done"
        nutch = self.stand_in(tmp_path, f'[ "$1" != fetch ] || {{ {waiting}; }}')
        # a shell that ignores SIGINT, as that of a test in the background may, would not receive it
        heeding = "import os, signal, sys; signal.signal(2, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
        words = [sys.executable, "-c", heeding, SCRIPTS / "crawl", "seeds", "id1", "5"]
        process = subprocess.Popen(words, cwd=tmp_path, env={**os.environ, "NUTCH2PY": nutch}, start_new_session=True)
        wait_until(lambda: (tmp_path / "there").exists() or process.poll() is not None)
        os.kill(process.pid, number)
        assert process.wait(60) == code
        assert (tmp_path / "signalled").exists()
        assert self.calls(tmp_path)[-1] == "fetch"

    def test_stop_file_ends_crawl(self, tmp_path: Path) -> None:
        nutch = self.stand_in(tmp_path, '[ "$1" != index ] || touch .STOP')
        done = run(SCRIPTS / "crawl", "seeds", "id1", "5", cwd=tmp_path, NUTCH2PY=nutch)
        assert done.returncode == 0
        assert done.stdout.endswith("STOP file found - escaping loop\n")
        assert self.calls(tmp_path).count("generate") == 1

    def test_options_set_sizes_and_conf_folder(self, tmp_path: Path) -> None:
        nutch = self.stand_in(tmp_path, f'echo "$NUTCH_CONF_DIR" > "{tmp_path}/conf"')
        words = ["--topN", "7", "--threads", "3", "--time-limit", "5", "--add-days", "2", "--conf", "/c"]
        done = run(SCRIPTS / "crawl", *words, "seeds", "id1", "1", cwd=tmp_path, NUTCH2PY=nutch)
        assert done.returncode == 0
        text = (tmp_path / "calls").read_text(encoding="utf-8")
        assert "-topN 7 " in text
        assert "-adddays 2 " in text
        assert "fetcher.timelimit.mins=5 " in text
        assert "-threads 3\n" in text
        assert (tmp_path / "conf").read_text(encoding="utf-8") == "/c\n"

    @pytest.mark.parametrize(
        "words", [[], ["seeds", "id1"], ["seeds", "id1", "x"], ["", "id", "1"], ["-q", "s", "i", "1"], ["-D"]]
    )
    def test_invalid_arguments_print_usage(self, words: list[str]) -> None:
        done = run(SCRIPTS / "crawl", *words)
        assert done.returncode == 255
        assert done.stdout.endswith("Usage: crawl <seedDir> <crawlID> [<solrUrl>] <numberOfRounds>\n")

    def test_site_is_crawled_and_indexed(self, tmp_path: Path, site: str) -> None:
        (tmp_path / "seeds").mkdir()
        (tmp_path / "seeds" / "seeds.txt").write_text(f"{site}index.html\n", encoding="utf-8")
        options = ["-D", f"storage.data.store=embedded:{tmp_path / 'data'}", "-D", "http.agent.name=test"]
        options += ["-D", "fetcher.server.delay=0", "-D", "http.filter.ipaddress.exclude="]
        done = run(SCRIPTS / "crawl", *options, tmp_path / "seeds", "c1", "4", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        # round 4 has nothing to fetch: nowhere.html, found in round 2, is gone since round 3
        assert "Escaping loop: no more URLs to fetch now" in done.stdout
        found = run(SCRIPTS / "nutch2py", "search", *options, "-crawlId", "c1", "Bananas", cwd=tmp_path)
        assert found.returncode == 0, found.stderr
        assert f"{site}b.html" in found.stdout


class TestQuickstart:
    def test_documentation_is_crawled_and_searchable(self) -> None:
        done = run(SCRIPTS / "quickstart", "-pages", "40")
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.findall(r"^\$ nutch2py (\w+)", done.stdout, re.MULTILINE) == ["crawl", "search", "search", "search"]
        assert re.search(r"^\d\d pages fetched", done.stdout, re.MULTILINE)
        assert "nutch2py serve -D storage.data.store=embedded:" in done.stdout.splitlines()[-1]
        assert len(re.findall(r"http://127\.0\.0\.1:\d+/\S", done.stdout.partition("$ nutch2py search")[2])) >= 3
        assert not re.search(r"^Traceback", done.stdout + done.stderr, re.MULTILINE)

    def test_given_site_is_crawled_into_current_folder(self, tmp_path: Path, site: str) -> None:
        failed = run(SCRIPTS / "quickstart", f"{site}index.html", cwd=tmp_path)
        assert failed.returncode == 9, failed.stdout + failed.stderr
        assert "-D http.filter.ipaddress.exclude=" in failed.stderr  # what allows it
        assert not (tmp_path / "crawldata").exists()
        allowed = ("-D", "http.filter.ipaddress.exclude=", "-D", "fetcher.server.delay=0")
        done = run(SCRIPTS / "quickstart", *allowed, f"{site}index.html", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        stats = run(SCRIPTS / "nutch2py", "readdb", "-stats", cwd=tmp_path)
        assert "status_fetched" in stats.stdout
