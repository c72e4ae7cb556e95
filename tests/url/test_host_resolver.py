from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.url.host_resolver import HostResolver, HostsFile


def test_hosts_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text("# a crawl's own names\n127.0.7.1 www.a.test A.test  # two\n\n::1 a.test\n", encoding="utf-8")
    hosts = HostsFile.from_conf(Configuration({"http.hosts.file": str(path)}))
    assert hosts.lookup("www.a.test") == ["127.0.7.1"]
    assert hosts.lookup("A.Test.") == ["127.0.7.1", "::1"]
    assert hosts.lookup("b.test") is None


def test_empty_hosts_file_resolves_nothing() -> None:
    assert HostsFile.from_conf(Configuration()).lookup("localhost") is None


@pytest.mark.parametrize("line", ["127.0.0.1", "host 127.0.0.1", "127.0.0 a"])
def test_malformed_hosts_line_is_named_in_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="line 2"):
        HostsFile.read(path)


def test_missing_hosts_file_is_named_in_error() -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.txt.*http\.hosts\.file"):
        HostsFile.from_conf(Configuration({"http.hosts.file": "nowhere.txt"}))


def test_hosts_file_precedes_system_resolver() -> None:
    resolver = HostResolver(HostsFile({"localhost": ["127.9.9.9"]}))
    assert resolver.resolve("localhost") == "127.9.9.9"
    assert resolver.resolve("127.0.0.1") == "127.0.0.1"
    assert resolver.resolve("[::1]") == "::1"
    assert resolver.resolve("no such name.invalid") is None
