"""``nutch2py doctor``: problems are named with a remedy; sound parts are not."""

from __future__ import annotations

import json
import os
import resource
import socket
from pathlib import Path

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration
from nutch2py.doctor import machine_checks, network_checks
from nutch2py.doctor.check_result import CheckStatus
from nutch2py.doctor.check_runner import CHECKS, run_checks
from tests.conftest import MAP_SIZE, ROOT
from tests.site.name_server import name_server

BASE = {"storage.embedded.map.size": MAP_SIZE, "http.dns.resolver": "system", "http.agent.name": "x"}


def findings(capsys: pytest.CaptureFixture[str], code: int, **settings: str) -> dict[str, list[tuple[str, str]]]:
    """Return status and message of each result by check."""
    given = BASE | {name.replace("_", "."): value for name, value in settings.items()}
    options = [word for name, value in given.items() for word in ("-D", f"{name}={value}")]
    assert main(["doctor", "-json", *options]) == code
    found: dict[str, list[tuple[str, str]]] = {}
    for line in capsys.readouterr().out.splitlines():
        one = json.loads(line)
        found.setdefault(one["check"], []).append((one["status"], one["message"]))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_fresh_machine_reports_ok_and_creates_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(capsys, 0)
    assert {state for messages in found.values() for state, _ in messages} <= {CheckStatus.OK, CheckStatus.WARNING}
    assert found["table"][0][1].endswith("yet: inject or crawl creates it")
    assert [*folder.iterdir()] == []


def test_existing_crawl_is_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "seeds").write_text("http://a.test/\nhttp://b.test/\n")
    assert main(["inject", "seeds", "-D", f"storage.embedded.map.size={MAP_SIZE}"]) == 0
    capsys.readouterr()
    assert "about 2 rows" in findings(capsys, 0)["table"][0][1]


@pytest.mark.parametrize(
    ("settings", "check", "words"),
    [
        ({"urlfilter_regex_file": "nofile.txt"}, "plug-ins", "correct urlfilter.regex.file"),
        ({"http_filter_ipaddress_exclude": "10.0.0.0/99"}, "plug-ins", "http.filter.ipaddress.exclude"),
        ({"storage_data_store": "hbase://127.0.0.1:{port}"}, "table", "correct storage.data.store"),
        ({"storage_data_store": "nowhere:x"}, "table", "write embedded:FOLDER or hbase://HOST:PORT"),
        ({"solr_server_url": "http://127.0.0.1:{port}/solr/x"}, "index", "correct solr.server.url"),
        ({"elastic_host": "127.0.0.1", "elastic_port": "{port}"}, "index", "correct elastic.host"),
        ({"mapreduce_runner": "cloud"}, "runner", "choose one of"),
        ({"mapreduce_runner": "hadoop", "mapreduce_package": "{folder}/none.tar.gz"}, "runner", "nutch2py package"),
        ({"search_backend": "other"}, "index", "write embedded, solr or elastic"),
    ],
)
def test_failing_checks_are_named(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    closed_port: int,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    check: str,
    words: str,
) -> None:
    monkeypatch.setattr("nutch2py.doctor.check_runner.SERVICE_WAIT_SECONDS", "0")
    filled = {name: value.format(port=closed_port, folder=folder) for name, value in settings.items()}
    found = findings(capsys, 10, **filled)
    assert any(words in messages for state, messages in found[check] if state == CheckStatus.ERROR), found


@pytest.mark.parametrize(
    ("settings", "check", "words"),
    [
        ({"http_agent_name": ""}, "agent name", "Set the name of your crawler"),
        ({"fetcher_thread_fetch": "3"}, "properties", "did you mean fetcher.threads.fetch"),
        ({"plugin_includes_add": "index-basik"}, "properties", "did you mean index-basic"),
        ({"http_filter_ipaddress_exclude": ""}, "address filter", "private addresses"),
        ({"plugin_excludes": "indexer-.*"}, "index", "no index writer is configured"),
    ],
)
def test_warnings_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, str], check: str, words: str
) -> None:
    found = findings(capsys, 0, **settings)
    assert any(words in messages for state, messages in found[check] if state == CheckStatus.WARNING), found


def test_names_are_resolved_by_configured_servers(folder: Path) -> None:
    conf = Configuration.load(overrides={"http.dns.timeout": "1"})
    with name_server() as server:
        conf.set("http.dns.servers", server.address)
        assert [finding.status for finding in network_checks.check_dns(conf)] == [CheckStatus.OK]
        assert server.names()
    conf.set("http.dns.servers", "127.0.0.1:1")
    (finding,) = network_checks.check_dns(conf)
    assert finding.status == CheckStatus.WARNING
    assert "check the network, and http.dns.servers" in finding.message


def test_low_file_limit_is_error_and_full_disk_is_warning(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    conf = Configuration.load()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    (finding,) = machine_checks.check_open_files(conf)
    assert finding.status == CheckStatus.ERROR
    assert "ulimit -n 2" in finding.message
    monkeypatch.setattr("nutch2py.doctor.machine_checks.LOW_DISK_BYTES", 1 << 60)
    assert {each.status for each in machine_checks.check_disks(conf)} == {CheckStatus.WARNING}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_folder_is_error(folder: Path) -> None:
    folder.chmod(0o500)
    assert CheckStatus.ERROR in {each.status for each in machine_checks.check_disks(Configuration.load())}


def test_passwords_are_not_shown(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nutch2py.doctor.check_runner.SERVICE_WAIT_SECONDS", "0")
    main(["doctor", "-D", "solr.server.url=http://me:hush@127.0.0.1:1/solr/x", "-D", "http.dns.resolver=system"])
    said = capsys.readouterr()
    assert "index: Solr does not respond" in said.out
    assert "hush" not in said.out + said.err


def test_every_check_is_documented() -> None:
    page = (ROOT / "docs" / "jobs" / "doctor.md").read_text()
    assert [name for name in CHECKS if name not in page] == []
    assert {finding.check for finding in run_checks(Configuration.load(overrides=BASE))} <= {
        word.strip() for line in page.splitlines() if line.startswith("| ") for word in line.split("|")[1].split(",")
    }


def test_taken_over_table_behind_address_filter_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "seeds").write_text("http://inside.corp/a\nhttp://inside.corp/b\nhttp://10.1.2.3/\nhttp://plain.test/\n")
    assert main(["inject", "seeds", "-D", f"storage.embedded.map.size={MAP_SIZE}"]) == 0
    capsys.readouterr()
    with name_server() as server:
        dns = {"http_dns_resolver": "c-ares", "http_dns_servers": server.address}
        exclude = {"http_filter_ipaddress_exclude": "sitelocal"}
        found = findings(capsys, 0, **dns, **exclude)["address filter"]
        assert found[0][0] == CheckStatus.WARNING
        assert found[0][1].startswith("2 of 3 hosts of the table are excluded: 10.1.2.3, inside.corp.")
        assert "http.filter.ipaddress.exclude" in found[0][1]
        assert "address filter" not in findings(capsys, 0, **dns, http_filter_ipaddress_exclude="192.0.2.0/24")
        bypassed = {"http_proxy_host": "127.0.0.1", "http_proxy_exception_list": "inside.corp"}
        found = findings(capsys, 10, **dns, **exclude, **bypassed, http_proxy_port="9")["address filter"]
        assert found[0][1].startswith("1 of 1 hosts")


def test_dead_proxy_is_reported(folder: Path, capsys: pytest.CaptureFixture[str], closed_port: int) -> None:
    proxy = {"http_proxy_host": "127.0.0.1", "http_proxy_port": str(closed_port)}
    state, message = findings(capsys, 10, **proxy)["proxy"][0]
    assert state == CheckStatus.ERROR
    assert message.startswith(f"cannot connect to 127.0.0.1:{closed_port}: Connection refused")
    with socket.create_server(("127.0.0.1", closed_port)):
        assert findings(capsys, 0, **proxy)["proxy"][0][0] == CheckStatus.OK


def test_unanswered_hosts_of_table_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], closed_port: int
) -> None:
    (folder / "seeds").write_text("http://inside.corp/a\n")
    assert main(["inject", "seeds", "-D", f"storage.embedded.map.size={MAP_SIZE}"]) == 0
    capsys.readouterr()
    dns = {"http_dns_resolver": "c-ares", "http_dns_servers": f"127.0.0.1:{closed_port}", "http_dns_timeout": "0.1"}
    messages = [message for _, message in findings(capsys, 0, **dns)["DNS"]]
    assert any(message.startswith("no DNS server answered for 1 of 1 hosts of the table") for message in messages)
