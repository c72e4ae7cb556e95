"""Configuration: nutch-default.xml, then nutch-site.xml, then ``-D name=value``, in Hadoop's XML form.

A folder given with ``--conf`` or ``NUTCH_CONF_DIR`` overlays the shipped one: its files replace the shipped files of
the same name, so a Nutch 2 ``conf/`` works unchanged. Values may contain ``${other.property}`` and ``${env.NAME}``, as
in Hadoop's ``Configuration``.

Relative paths in values are relative to the working directory of the command, also in tasks that run elsewhere: resolve
them with :meth:`Configuration.absolute`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import overload
from xml.etree import ElementTree

from nutch2py.conf.property_ranges import ANY_INTEGER, ANY_NUMBER, PROPERTY_RANGES, NumberRange
from nutch2py.conf.redaction import is_secret, redact_property
from nutch2py.errors import ConfigurationError

_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_INTEGER = re.compile(r"[+-]?(?:[0-9]{1,100}|0[xX][0-9a-fA-F]{1,100})")
_JAVA_FLOAT = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?[fFdD]")
_MAX_EXPANSIONS = 20  # Hadoop's limit on nested variables
_SIMILARITY_CUTOFF = 0.88  # minimum similarity of a misspelled name to its suggestion
_OPEN_PREFIXES = (
    "urlnormalizer.scope.",
    "mapreduce.",
    "mapred.",
    "yarn.",
    "dfs.",
    "fs.",
    "hadoop.",
)  # prefixes of names that sites choose freely
_FOREIGN_PREFIXES = (
    "gora.",
    "hbase.",
    "zookeeper.",
    "ha.",
    "io.",
    "ipc.",
    "net.",
    "rpc.",
    "security.",
    "spark.",
    "java.",
)
"""Prefixes of properties that other programs read from the same files."""
_TRUE, _FALSE = frozenset({"true"}), frozenset({"false"})


def data_dir(name: str) -> Path:
    """Return the shipped folder ``conf`` or ``schema``: inside the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    packed = package / "_data" / name
    return packed if packed.is_dir() else package.parent / name


class Configuration:
    """Properties by name, and the other configuration files. Values are strings; typed getters validate them.

    ``base_dir``: the folder that relative paths start from, by default the working directory; tasks use that of their
    driver.
    """

    def __init__(
        self, properties: Mapping[str, str] | None = None, conf_dirs: Iterable[Path] = (), base_dir: Path | None = None
    ) -> None:
        self._properties: dict[str, str] = dict(properties or {})
        self._final_names: set[str] = set()
        self._origins: dict[str, Path] = {}  # of properties set by files
        self._default_names: frozenset[str] = frozenset()
        self.conf_dirs: list[Path] = [*conf_dirs]
        self.base_dir = Path.cwd() if base_dir is None else base_dir

    @classmethod
    def load(cls, conf_dir: str | Path | None = None, overrides: Mapping[str, str] | None = None) -> Configuration:
        """Read the shipped defaults, the site's folder (argument, else ``NUTCH_CONF_DIR``) and ``overrides``."""
        folders = [data_dir("conf")]
        chosen = conf_dir or os.environ.get("NUTCH_CONF_DIR")
        if chosen:
            path = Path(chosen)
            if not os.access(path, os.R_OK | os.X_OK) or not path.is_dir():
                state = "may not be read" if os.access(path, os.F_OK) and path.is_dir() else "does not exist"
                raise ConfigurationError(
                    f"configuration folder {path} {state}: name a folder that holds nutch-site.xml "
                    "with --conf DIR or NUTCH_CONF_DIR"
                )
            folders.insert(0, path.resolve())
        conf = cls(conf_dirs=folders)
        # the shipped defaults always come first: a Nutch 2 folder's own nutch-default.xml lacks our properties
        for folder in reversed(folders):
            conf.add_file(folder / "nutch-default.xml")
        conf._default_names = frozenset(conf._properties)
        for folder in reversed(folders):
            conf.add_file(folder / "nutch-site.xml")
        for name, value in (overrides or {}).items():
            conf.set(name, value)
        return conf

    def unknown_properties(self) -> list[tuple[str, str]]:
        """Return the properties of the site and of ``-D`` that have no default, each with a suggested name.

        The suggestion is "" if no name is similar: the property may belong to a plug-in. Properties of Hadoop, Gora and
        HBase are not included.
        """
        strange = self._properties.keys() - self._default_names if self._default_names else set()
        if not strange:
            return []
        from difflib import get_close_matches

        found = []
        for name in strange:
            near = get_close_matches(name, self._default_names, n=1, cutoff=_SIMILARITY_CUTOFF)
            if not name.startswith(_OPEN_PREFIXES) and (near or not name.startswith(_FOREIGN_PREFIXES)):
                found.append((name, near[0] if near else ""))
        return sorted(found)

    def add_file(self, path: Path) -> None:
        """Set the properties of a file in Hadoop's XML format; final ones keep their value. A missing file is ignored.

        Raises:
            ConfigurationError: the file is unreadable or not XML.
        """
        if not path.is_file():
            return
        try:
            root = ElementTree.parse(path).getroot()  # noqa: S314 - a file of the operator; expat limits entity expansion
        except (ElementTree.ParseError, OSError) as error:
            raise ConfigurationError(f"cannot read {path}: {error}: repair the file's XML") from error
        for element in root.iter("property"):
            name = (element.findtext("name") or "").strip()
            value = element.findtext("value")
            if name and value is not None and name not in self._final_names:
                self._properties[name] = value
                self._origins[name] = path
                if (element.findtext("final") or "").strip() == "true":
                    self._final_names.add(name)

    @overload
    def get(self, name: str) -> str | None: ...
    @overload
    def get(self, name: str, default: str) -> str: ...
    def get(self, name: str, default: str | None = None) -> str | None:
        """Return the value of ``name`` with variables expanded, or ``default``. Surrounding space is kept."""
        value = self._properties.get(name)
        return default if value is None else self._expand(name, value)

    def get_trimmed(self, name: str, default: str = "") -> str:
        """Return the value without surrounding space, ``default`` when it is absent or empty."""
        return (self.get(name) or "").strip() or default

    def _expand(self, name: str, value: str) -> str:
        for _ in range(_MAX_EXPANSIONS):
            match = _VARIABLE.search(value)
            if match is None:
                return value
            inner = match.group(1)
            found = os.environ.get(inner[4:]) if inner.startswith("env.") else self._properties.get(inner)
            if found is None:
                return value
            value = value[: match.start()] + found + value[match.end() :]
        raise ConfigurationError(f"variables nest too deep in property {name}: a property refers to itself")

    def _malformed(self, name: str, value: str, wanted: str) -> ConfigurationError:
        shown = redact_property(name, value)
        return ConfigurationError(
            f"property {name} is {shown!r}, which is not {wanted}: correct it in {self.origin(name)}"
        )

    def origin(self, name: str) -> str:
        """Return the origin of the value of ``name``: the path of a file, else ``-D`` (or a program)."""
        path = self._origins.get(name)
        return "-D" if path is None else str(path)

    def _check_range(self, name: str, value: str, number: float, anything: NumberRange) -> None:
        """Raise ConfigurationError for a number outside the range of the property."""
        allowed = PROPERTY_RANGES.get(name, anything)
        if not allowed.contains(number):
            raise ConfigurationError(f"property {name} is {value}: write {allowed}, in {self.origin(name)}")

    def check_numbers(self) -> None:
        """Raise ConfigurationError for the first numeric property with an invalid value."""
        for name, allowed in PROPERTY_RANGES.items():
            if name in self._properties:
                if allowed.integer:
                    self.get_int(name)
                else:
                    self.get_float(name)

    def get_redacted(self, name: str) -> str:
        """Return the value of ``name`` for display: secrets masked, addresses without logins."""
        return redact_property(name, self.get(name, ""))

    def secret_values(self) -> list[str]:
        """Return the values that must not be displayed."""
        return [value for name in self._properties if is_secret(name) and (value := self.get(name, ""))]

    def absolute(self, path: str) -> Path:
        """Resolve a path value: relative to the command's working directory; ``~`` is the home directory."""
        return self.base_dir / Path(path).expanduser()

    def get_int(self, name: str, default: int = 0) -> int:
        """Return a whole number (decimal, or hexadecimal as ``0x…``); ``default`` when absent or empty.

        Raises ConfigurationError for a number outside the property's range (:mod:`nutch2py.conf.property_ranges`).
        """
        value = self.get_trimmed(name)
        if not value:
            return default
        if not _INTEGER.fullmatch(value):
            raise self._malformed(name, value, "a whole number")
        number = int(value, 16 if "x" in value.lower() else 10)
        self._check_range(name, value, number, ANY_INTEGER)
        return number

    def get_float(self, name: str, default: float = 0.0) -> float:
        """Return a decimal number (Java's trailing ``f`` is allowed); ``default`` when absent or empty.

        Raises ConfigurationError for a number that is not finite or outside the property's range
        (:mod:`nutch2py.conf.property_ranges`).
        """
        value = self.get_trimmed(name)
        if not value:
            return default
        try:
            number = float(value[:-1] if _JAVA_FLOAT.fullmatch(value) else value)
        except ValueError:
            raise self._malformed(name, value, "a number") from None
        if "_" in value or not value.isascii():  # number formats that only Python accepts
            raise self._malformed(name, value, "a number")
        self._check_range(name, value, number, ANY_NUMBER)
        return number

    def get_bool(self, name: str, default: bool = False) -> bool:
        """Return ``true`` or ``false``, in any case; ``default`` when absent or empty."""
        value = self.get_trimmed(name).lower()
        if not value:
            return default
        if value not in _TRUE | _FALSE:
            raise self._malformed(name, value, "true or false")
        return value in _TRUE

    def get_strings(self, name: str, default: Iterable[str] = (), separators: str = ",") -> list[str]:
        """Return the trimmed, non-empty items of a list value; each character of ``separators`` separates items."""
        value = self.get(name)
        if value is None:
            return list(default)
        return [part.strip() for part in re.split(f"[{re.escape(separators)}]", value) if part.strip()]

    def set(self, name: str, value: str | float | bool) -> None:
        """Set a property; booleans become ``true``/``false``. ConfigurationError for text that is not UTF-8."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            text.encode()
        except UnicodeEncodeError as error:  # a command-line argument in another encoding
            raise ConfigurationError(f"the value of {name} is not UTF-8 ({text!a}): write it in UTF-8") from error
        self._properties[name] = text
        self._origins.pop(name, None)

    def set_default(self, name: str, value: str) -> None:
        """Set a property unless it has a value."""
        self._properties.setdefault(name, value)

    def copy(self) -> Configuration:
        """Return an independent copy."""
        made = Configuration(self._properties, self.conf_dirs, self.base_dir)
        made._origins, made._default_names = dict(self._origins), self._default_names
        return made

    @property
    def site_file(self) -> str:
        """Description of the site's configuration file for messages: its path, or how to create one."""
        if len(self.conf_dirs) > 1:
            return str(self.conf_dirs[0] / "nutch-site.xml")
        return "a nutch-site.xml of your own (nutch2py init DIR makes it, --conf DIR names it)"

    def resource(self, name: str) -> Path | None:
        """Return the file ``name`` (absolute, or in the first configuration folder that has it), or None."""
        path = Path(name)
        if path.is_absolute():
            return path if path.is_file() else None
        return next((folder / name for folder in self.conf_dirs if (folder / name).is_file()), None)

    def resource_text(self, name: str) -> str | None:
        """Return the text of :meth:`resource`, decoded as UTF-8 (a BOM is dropped), or None."""
        path = self.resource(name)
        if path is None:
            return None
        try:
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot read {path}: {error}") from error

    def resource_xml(self, name: str) -> ElementTree.Element | None:
        """Return the root of an XML file, as :meth:`resource` finds it, or None. Names have no namespaces."""
        text = self.resource_text(name)
        if text is None:
            return None
        try:
            root = ElementTree.fromstring(text)  # noqa: S314 - a file of the operator; expat limits entity expansion
        except (ElementTree.ParseError, ValueError) as error:
            raise ConfigurationError(f"cannot read {name}: {error}: repair the file's XML") from error
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]  # Nutch 1's templates have a default namespace
        return root

    def raw_properties(self) -> dict[str, str]:
        """Return every property as written, without expanding variables."""
        return dict(self._properties)

    def site_properties(self) -> dict[str, str]:
        """Return the properties that do not come from the shipped defaults, as written."""
        default = str(data_dir("conf") / "nutch-default.xml")
        return {name: value for name, value in self._properties.items() if self.origin(name) != default}

    @classmethod
    def from_site_properties(cls, properties: Mapping[str, str], like: Configuration) -> Configuration:
        """Return the shipped defaults with these properties, and with the files and folders of ``like``."""
        conf = _shipped_defaults().copy()
        conf.conf_dirs, conf.base_dir = [*like.conf_dirs], like.base_dir
        for name, value in properties.items():
            conf.set(name, value)
        return conf

    def __iter__(self) -> Iterator[str]:
        return iter(self._properties)

    def __contains__(self, name: str) -> bool:
        return name in self._properties


@cache
def _shipped_defaults() -> Configuration:
    conf = Configuration(conf_dirs=[data_dir("conf")])
    conf.add_file(data_dir("conf") / "nutch-default.xml")
    return conf
