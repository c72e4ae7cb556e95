"""scripts/services: what it says and does around the HBase of the tests."""

import os
import socket
import subprocess
from subprocess import PIPE

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import WebPage
from nutch2py.table import TableQuery, open_store
from tests.table.hbase_server import ROOT, Server


def services(*words):
    command = [str(ROOT / "scripts" / "services"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_data_survives_restart(hbase):
    store = open_store(Configuration(), WebPage, hbase.location, "services_webpage")
    store.create()
    page = WebPage()
    page.title = "there"
    with store.batch() as batch:
        batch.put("a", page)
    before = hbase.location
    run = subprocess.Popen([str(ROOT / "scripts" / "services"), "run", "hbase", "--instance", hbase.name], stdout=PIPE)
    assert run.stdout.readline().decode().strip() == before
    run.terminate()
    assert run.wait() == 0
    run.stdout.close()
    assert "master           stopped" in services("status", "hbase", "--instance", hbase.name).stdout
    hbase.start()
    assert hbase.location == before
    assert [(key, page.title) for key, page in store.scan(TableQuery())] == [("a", "there")]
    status = hbase.status()
    assert "gateway          runs" in status
    assert f"address          {before}" in status


def test_starting_running_service_changes_nothing(hbase):
    pid = (hbase.folder / "run" / "master.pid").read_text()
    hbase.start()
    assert (hbase.folder / "run" / "master.pid").read_text() == pid


def test_reused_pid_of_other_process_is_not_killed(hbase):
    file = hbase.folder / "run" / "gateway-b.pid"
    file.write_text(f"{os.getpid()}\n")
    assert "gateway-b        stopped" in hbase.status()
    hbase.stop("gateway-b")
    assert not file.exists()


def test_port_in_use_is_reported(hbase):
    with socket.create_server(("127.0.0.1", hbase.port("gateway-b"))):
        done = services("start", "hbase", "--instance", hbase.name, "gateway-b")
    assert done.returncode == 1
    assert f"port {hbase.port('gateway-b')} is in use" in done.stderr


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["start", "nothing"], 1, "there is no service nothing: choose one of"),
        (["start", "hbase", "--instance", "a/b"], 1, "an instance is named"),
        (["start", "hbase", "--port"], 1, "--port needs a value"),
        (["start", "hbase", "--port", "x"], 1, "--port needs a number"),
        (["stop", "hbase", "--instance", "never-started"], 0, "was never started"),
        (["status", "hbase", "--instance", "never-started"], 1, "was never started"),
        (["start"], 2, "scripts/services start  NAME"),
        (["fly", "hbase"], 2, "scripts/services start  NAME"),
    ],
)
def test_invalid_arguments_print_usage(words, status, message):
    done = services(*words)
    assert done.returncode == status
    assert message in done.stderr


def test_unknown_part_is_rejected(hbase):
    done = services("start", "hbase", "--instance", hbase.name, "gatway")
    assert done.returncode == 1
    assert "hbase has no part gatway: choose of master gateway" in done.stderr


def test_data_folder_option_is_used(hbase, tmp_path):
    """Checks only what a start writes: the address and the folder, before anything runs."""
    server = Server(f"{hbase.name}-placed")
    try:
        done = services("stop", "hbase", "--instance", server.name)
        assert done.returncode == 0
        done = services(
            "start", "hbase", "--instance", server.name, "--data", str(tmp_path / "d"), "--port", "1", "nope"
        )
        assert done.returncode == 1
        assert f"data={tmp_path / 'd'}" in (server.folder / "settings").read_text()
        assert server.port("gateway") == 1
    finally:
        server.remove()
    assert not server.folder.exists()
