"""A sick crawl, diagnosed by ``doctor`` and the control room alone: cause, hosts or files, repair."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.crawl_loop.test_crawl_command import page
from tests.installed_wheel import environment
from tests.processes import wait_until
from tests.site.server import Reply, ScriptedSite
from tests.users.conftest import User, address_in, findings, text_of

OWN = {"http_filter_ipaddress_exclude": "", "fetcher_server_delay": "0", "http_dns_resolver": "system"}
"""Properties for a fast crawl of loopback, with underscores for dots."""


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def told_alike(user: User, *words: str, code: int = 0, crawl: tuple[str, ...] | None = None) -> None:
    """Query doctor, its JSON and the control room: each shows all of ``words`` in one finding that is not OK.

    ``crawl``: text on the first page of the control room; ``words`` if it is None.
    """
    text = user.types("nutch2py doctor")
    assert text.returncode == code, text.stdout + text.stderr
    found = findings(user.types("nutch2py doctor -json").stdout)
    with user.serving("nutch2py serve -port 0") as address:
        check(words, text.stdout, found, text_of(f"{address}crawl/doctor"))
        first = text_of(f"{address}crawl")
        assert all(word in first for word in (words if crawl is None else crawl)), first


def check(words: tuple[str, ...], text: str, found: list[dict[str, str]], page: str) -> None:
    """Look for words in what ``doctor`` has printed, in its findings, and on its page."""
    assert any(all(word in line for word in words) for line in text.splitlines() if line[:2] != "ok"), text
    assert any(all(word in each["message"] for word in words) for each in found if each["status"] != "ok"), found
    assert all(word in page for word in words), page


def test_doctor_robots_txt_denying_all_is_reported(user: User, site: ScriptedSite) -> None:
    site.on("/robots.txt", Reply(body=b"User-agent: *\nDisallow: /"))
    user.configures(**OWN, http_agent_name="mine")
    assert user.types(f"nutch2py crawl {site.url('/')}").returncode == 9
    told_alike(user, "URLs disallowed by robots.txt", "127.0.0.1", "http.agent.name", "http.robot.rules")


def test_doctor_robots_txt_denying_our_agent_is_reported(user: User, site: ScriptedSite) -> None:
    site.on("/robots.txt", Reply(body=b"User-agent: evilbot\nDisallow: /\n\nUser-agent: *\nDisallow:"))
    site.on("/", page())
    user.configures(**OWN, http_agent_name="evilbot")
    assert user.types(f"nutch2py crawl {site.url('/')}").returncode == 9
    told_alike(user, "disallowed by robots.txt", "127.0.0.1", "http.agent.name")
    user.configures(**OWN, http_agent_name="goodbot")  # the repair
    again = user.types(f"nutch2py crawl {site.url('/')} -data other")
    assert "1 page fetched" in again.stdout


def test_doctor_server_rejecting_our_agent_is_reported(user: User, site: ScriptedSite) -> None:
    site.on("/", Reply(403))
    user.configures(**OWN, http_agent_name="evilbot")
    assert user.types(f"nutch2py crawl {site.url('/')}").returncode == 9
    told_alike(user, "HTTP error 403", "127.0.0.1", "http.agent.name")


def test_doctor_unknown_host_is_reported(user: User, site: ScriptedSite) -> None:
    site.on("/", page())
    user.configures(**OWN)
    user.writes("seeds", site.url("/"))
    assert user.types("nutch2py inject seeds").returncode == 0
    assert user.types("nutch2py generate -batchId b").returncode == 0
    failed = user.types("nutch2py fetch b")
    assert failed.returncode != 0
    assert "http.agent.name" in failed.stderr
    file = str(user.folder / "conf" / "nutch-site.xml")
    why = ("The last job, fetch of batch b, failed", "http.agent.name", file)
    told_alike(user, "http.agent.name is empty", "fetch does not run", "Set the name of your crawler", file, crawl=why)


def test_doctor_unresolvable_names_are_reported(user: User, site: ScriptedSite, closed_port: int) -> None:
    site.on("/", page())
    own = OWN | {"http_dns_resolver": "c-ares", "http_dns_timeout": "1", "http_agent_name": "mine"}
    user.configures(**own, http_dns_servers=f"127.0.0.1:{closed_port}")
    failed = user.types("nutch2py crawl http://www.harbour.example/")
    assert failed.returncode == 9
    assert "www.harbour.example: " in failed.stderr
    gone = ("cannot resolve www.iana.org", f"127.0.0.1:{closed_port}", "http.dns.servers")
    told_alike(user, *gone, crawl=("No crawl yet", "Doctor"))
    done = user.types(f"nutch2py crawl http://www.harbour.example/ {site.url('/')} -index none")
    assert done.returncode == 0
    assert "WARN www.harbour.example: " in done.stdout
    told_alike(user, "no DNS server answered", "www.harbour.example", "http.dns.servers")


def test_doctor_unavailable_solr_is_reported(user: User, site: ScriptedSite, closed_port: int) -> None:
    site.on("/", page())
    solr = f"http://127.0.0.1:{closed_port}/solr/pages"
    user.configures(**OWN, http_agent_name="mine", solr_server_url=solr, service_wait_seconds="1")
    failed = user.types(f"nutch2py crawl {site.url('/')}")
    assert failed.returncode != 0
    words = ("Solr does not respond", solr, "solr.server.url")
    told_alike(user, *words, code=10, crawl=("The last job, ", *words))


FULL = """
mount -t tmpfs -o size=1500k disk {disk} || exit 99
NUTCH2PY crawl {url} -data {disk}/data > {out}/crawl 2>&1
NUTCH2PY doctor -D {store} > {out}/doctor
echo $? > {out}/code
NUTCH2PY doctor -json -D {store} > {out}/json
NUTCH2PY serve -port 0 -D {store} > {out}/serve &
read line
kill $!
wait
"""
"""A private file system of 1.5 MB, visible only inside; it ends with its input."""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare")
def test_doctor_full_disk_is_reported(user: User, site: ScriptedSite, tmp_path: Path) -> None:
    for number in range(40):
        site.on(f"/{number}", page(f"/{number + 1}", text=f"{number} " * 30_000))
    user.configures(**OWN, http_agent_name="mine")
    disk, out = tmp_path / "disk", tmp_path / "out"
    disk.mkdir()
    out.mkdir()
    script = FULL.format(disk=disk, out=out, url=site.url("/0"), store=f"storage.data.store=embedded:{disk}/data")
    words = ["unshare", "-rm", "sh", "-c", script.replace("NUTCH2PY", str(user.command))]
    served = out / "serve"
    with subprocess.Popen(
        words, cwd=user.folder, env=environment(**user.env), stdin=subprocess.PIPE, text=True
    ) as shell:
        wait_until(lambda: shell.poll() is not None or (served.exists() and served.read_text().endswith("\n")))
        if shell.poll() == 99:
            pytest.skip("no file system may be mounted here")
        address = address_in(served.read_text())
        first, doctor = text_of(f"{address}crawl"), text_of(f"{address}crawl/doctor")
        shell.communicate("\n")
    assert "free some space" in (out / "crawl").read_text()
    assert (out / "code").read_text() == "10\n"
    message = (out / "doctor").read_text()
    check(
        (f"free at {disk}/data for the table", "Free some space"),
        message,
        findings((out / "json").read_text()),
        doctor,
    )
    assert "no space left" in first.lower()  # the text of the table or of the index, whichever met the limit
    assert f"{disk}/data" in first
    assert "free some space" in first
