"""Secrets occur in no message, log or page: not on success, not on failure, not with --debug."""

import re
import subprocess
import sys
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from nutch2py.cli import main
from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.conf.redaction import MASK, is_secret, redact, redact_property
from nutch2py.errors import ConfigurationError
from nutch2py.support.reporting import log_line, warn

MARKER = "hUnTeR2-9f"


def names():
    root = ElementTree.parse(data_dir("conf") / "nutch-default.xml").getroot()
    return [element.findtext("name") for element in root.iter("property")]


def test_secret_properties_are_recognized():
    """Every property is checked: a new one that holds a secret has to be recognised by its name."""
    assert sorted(filter(is_secret, names())) == [
        "elastic.password",
        "ftp.password",
        "http.proxy.password",
        "rest.token",
        "restapi.auth.ssl.keypass",
        "restapi.auth.ssl.storepass",
        "restapi.auth.users",
        "solr.auth.password",
        "webgui.auth.users",
    ]
    suspicious = re.compile(r"pass|secret|token|credential|auth|login|api.?key", re.IGNORECASE)
    assert sorted(name for name in names() if suspicious.search(name) and not is_secret(name)) == HARMLESS


HARMLESS = [
    "db.signature.text_profile.min_token_len",
    "http.auth.default.hosts",
    "http.auth.file",
    "rest.tokens.file",
    "restapi.auth",
    "restapi.auth.ssl.storepath",
    "solr.auth",
    "solr.auth.username",
]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("solr.auth.password", "x", MASK),
        ("my.plugin.api_key", "x", MASK),
        ("password", "", ""),
        ("auth.header.value", "Bearer x", MASK),
        ("solr.server.url", "http://me:x@h:1/solr/a,http://me:x@i:1/solr/b", "http://h:1/solr/a,http://i:1/solr/b"),
        ("solr.server.url", "me:x@h:1/solr", "h:1/solr"),
        ("http.proxy.host", "me:x@h", "h"),
        ("http.agent.email", "me@h.org", "me@h.org"),
        ("urlfilter", "-[?*!@=]", "-[?*!@=]"),
    ],
)
def test_shown_value_masks_secrets(name, value, shown):
    assert redact_property(name, value) == shown


def test_foreign_text_with_secret_is_masked():
    text = f"no route to http://me:{MARKER}@h/ with {MARKER}, a"
    assert redact(text, [MARKER, "a", ""]) == f"no route to http://h/ with {MASK}, a"


def test_malformed_secret_is_not_shown_in_error():
    conf = Configuration({"a.password": MARKER, "b.secret": "${b.secret}", "c": MARKER})
    for ask in (conf.get_int, conf.get_float, conf.get_bool):
        with pytest.raises(ConfigurationError) as error:
            ask("a.password")
        assert MARKER not in str(error.value)
        with pytest.raises(ConfigurationError, match=f"(?i){MARKER}"):
            ask("c")
    with pytest.raises(ConfigurationError, match=r"property b\.secret"):
        conf.get("b.secret")


COMMANDS = [
    ["showproperties"],
    ["inject", "SEEDS"],
    ["inject", "nowhere"],
    ["generate", "-batchId", "b"],
    ["fetch", "b"],
    ["fetch", "b", "-D", "fetcher.threads.fetch=many"],
    ["parse", "b"],
    ["updatedb", "b"],
    ["index", "-all"],
    ["index", "-all", "-D", "plugin.includes=indexer-solr"],
    ["index", "-all", "-D", "plugin.includes=indexer-elastic"],
    ["index", "-all", "-D", "plugin.includes=indexer-elastic", "-D", "elastic.host=127.0.0.1"],
    ["index", "-all", "-D", f"index.embedded.path=http://me:{MARKER}@127.0.0.1/x", "-D", "solr.server.url="],
    ["solrdedup", "URL"],
    ["clean"],
    ["search", "a", "-D", "search.backend=solr"],
    ["parsechecker", "http://127.0.0.1:9/"],
    ["parsechecker", "ftp://127.0.0.1:9/"],
    ["readdb", "-stats"],
    ["readdb", "-stats", "-D", f"storage.data.store=hbase://me:{MARKER}@127.0.0.1:none"],
    ["readdb", "-stats", "-D", f"=me:{MARKER}"],
]


@pytest.mark.parametrize(("runner", "debug"), [("inline", []), ("local", ["--debug"])])
def test_commands_print_no_secret(tmp_path, capfd, monkeypatch, debug, runner):
    monkeypatch.chdir(tmp_path)
    url = f"http://me:{MARKER}@127.0.0.1:9/solr/x"
    (tmp_path / "seeds").write_text("http://127.0.0.1:9/\n")
    site = tmp_path / "conf"
    site.mkdir()
    properties = {name: MARKER for name in names() if is_secret(name)}
    properties |= {
        "solr.server.url": f"{url},{url}",
        "elastic.host": f"me:{MARKER}@127.0.0.1:9",
        "elastic.username": "me",
        "solr.auth": "true",
        "http.proxy.host": f"me:{MARKER}@127.0.0.1",
        "http.proxy.port": "9",
        "http.proxy.username": "me",
        "http.agent.name": "x",
        "http.filter.ipaddress.exclude": "",
        "service.wait.seconds": "0",
        "fetcher.server.delay": "0",
        "hbase.thrift.gateway.rest": "0",
        "storage.embedded.map.size": str(1 << 30),
    }
    (site / "nutch-site.xml").write_text(
        "<configuration>"
        + "".join(f"<property><name>{n}</name><value>{v}</value></property>" for n, v in properties.items())
        + "</configuration>"
    )
    failed = 0
    for command in COMMANDS:
        words = [{"SEEDS": "seeds", "URL": url}.get(word, word) for word in command]
        failed += main([*words, "--conf", str(site), "-r", runner, *debug]) != 0
        output = capfd.readouterr()
        assert output.out or output.err, command
        assert MARKER not in output.out + output.err, (command, output)
    assert failed > 5


def test_secret_from_environment_is_not_in_process_list(tmp_path):
    """The list of processes shows nothing of it, neither of the command nor of its tasks."""
    done = subprocess.run(
        [sys.executable, "-c", PROCESSES, str(tmp_path)],
        env={"SOLR_PASSWORD": MARKER, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [MARKER, "False"]


PROCESSES = """
import sys
from collections.abc import Callable
from pathlib import Path
from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.job_file import JobFile, read_job_file
from nutch2py.mapreduce.job_parameters import JobParameters
conf = Configuration.load(None, {"solr.auth.password": "${env.SOLR_PASSWORD}"})
path = Path(sys.argv[1], "job.json")
JobFile.from_conf(conf, JobParameters(), "local").write(path)
print(read_job_file(str(path))[1].get("solr.auth.password"), bool(path.stat().st_mode & 0o077))
"""


def test_scripts_pass_no_secret_on_command_line():
    scripts = data_dir("conf").parent / "scripts"
    given = re.compile(r"-D\s*[\"']?([\w.]+)=")
    for script in scripts.iterdir():
        if script.is_file():
            text = script.read_text(encoding="utf-8", errors="replace")
            assert not [name for name in given.findall(text) if is_secret(name)], script.name


@pytest.mark.parametrize("report", [log_line, warn])
def test_logins_in_log_lines_are_removed(report: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> None:
    for address in ("hbase://u:PW@host:9090", "http://u:PW@host/solr", "https://PW@host"):
        report(f"copytable: 3 rows of webpage to {address}")
    captured = capsys.readouterr()
    assert "PW" not in captured.out + captured.err
    assert (captured.out + captured.err).count("host") == 3
