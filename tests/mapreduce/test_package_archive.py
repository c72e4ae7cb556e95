"""The package for the nodes of a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import nutch2py
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.mapreduce.runners.hadoop import package_archive as archive


@pytest.fixture
def built(package_folder: Path) -> Path:
    """Give the folder of a package and its configuration folder."""
    return package_folder


def configuration(folder: Path, **settings: str) -> Configuration:
    properties = {"mapreduce.package": str(folder / "package.tar.gz"), **settings}
    return Configuration.load(folder / "conf", properties)


def test_archive_runs_on_node_with_python_only(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / "package.tar.gz") as package:
        package.extractall(tmp_path, filter="data")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'lib')!r})\n"
        "import nutch2py.jobs.fetch.fetch_job, nutch2py.jobs.updatedb.updatedb_job, scrapy, lxml, happybase, pycurl\n"
        "from nutch2py.conf.configuration import Configuration\n"
        "from nutch2py.plugins.loading import enabled_plugins\n"
        "assert nutch2py.__file__.startswith(sys.path[0]) and scrapy.__file__.startswith(sys.path[0])\n"
        "conf = Configuration.load()\n"
        "print(*enabled_plugins(conf, 'scoringfilter'), conf.get('plugin.includes') is not None)"
    )
    # -S: without the packages that are installed here; only this folder and Python itself
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False, env={}, cwd=tmp_path
    )
    assert done.stdout.split() == ["scoring-opic", "True"], done.stderr


def test_archive_contains_conf_files_without_properties(built: Path) -> None:
    with tarfile.open(built / "package.tar.gz") as package:
        names = package.getnames()
    assert names[0] == "manifest.json"
    assert [name for name in names if name.startswith("conf/")] == [
        "conf/broken-urlfilter.txt",
        "conf/site-urlfilter.txt",
        "conf/README",
    ]
    assert not any(Path(name).is_absolute() or ".." in Path(name).parts for name in names)
    assert oct((built / "package.tar.gz").stat().st_mode & 0o777) == "0o600"


def test_fresh_archive_is_current(built: Path) -> None:
    assert archive.check_package(configuration(built)).version == nutch2py.__version__


def test_changed_conf_file_is_named(built: Path) -> None:
    rules = built / "conf" / "site-urlfilter.txt"
    before = rules.read_text()
    try:
        rules.write_text("-.\n")
        with pytest.raises(
            ConfigurationError, match=r"does not fit: the configuration file site-urlfilter\.txt has changed"
        ):
            archive.check_package(configuration(built))
        rules.unlink()
        with pytest.raises(ConfigurationError, match=r"site-urlfilter\.txt has changed: run nutch2py package again"):
            archive.check_package(configuration(built))
    finally:
        rules.write_text(before)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": "0.0.1"}, "it holds nutch2py 0.0.1"),
        ({"python": "3.9"}, "it is for Python 3.9"),
        ({"platform": "darwin-arm64"}, "it is for darwin-arm64"),
        ({"code_checksum": "0"}, "the code of nutch2py has changed"),
        ({"libraries": {"scrapy": "1.0", "other": "2"}}, "the library "),
    ],
)
def test_differences_of_archive_are_named(built: Path, changes: dict[str, object], words: str) -> None:
    client = archive.expected_manifest(configuration(built))
    difference = client._replace(**changes).describe_difference(client)  # type: ignore[arg-type]
    assert difference is not None
    assert difference.startswith(words)
    assert client.describe_difference(client) is None


def test_missing_archive_error_names_command(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    with pytest.raises(ConfigurationError, match="make it with nutch2py package"):
        archive.check_package(configuration(tmp_path))


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"not an archive"])
def test_damaged_archive_raises_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "package.tar.gz").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"package\.tar\.gz"):
        archive.check_package(configuration(tmp_path))


def test_unwritable_archive_path_is_named_in_error(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"set mapreduce\.package to a place that can be written"):
        archive.write_package_archive(
            configuration(tmp_path, **{"mapreduce.package": str(tmp_path / "file" / "package.tar.gz")})
        )


def test_default_archive_path_is_in_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = Path(os.environ["HOME"], ".cache", "nutch2py", "package.tar.gz")
    assert archive.archive_path(Configuration.load()) == expected
    assert archive.archive_path(Configuration()) == expected
