"""Mapping of Nutch's columns to those of a site's table, from ``gora-hbase-mapping.xml``.

A site that ran Nutch 2 with custom families or qualifiers has that file in its configuration folder. All code above the
store uses Nutch's columns; this module translates them in both directions. Columns that the file does not contain are
unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.records.record import Record

MAPPING_FILE = "gora-hbase-mapping.xml"
_CLASSES = {"webpage": "WebPage", "host": "Host"}


@dataclass(frozen=True)
class ColumnMapping:
    """Site columns of one record class.

    ``families``: Nutch's family of a map -> the site's; ``scalars``: Nutch's ``(family, qualifier)`` -> the site's.
    ``options``: attributes of the site's families (``compression``, ``maxVersions`` …) for a new table.
    """

    families: Mapping[bytes, bytes]
    scalars: Mapping[tuple[bytes, bytes], tuple[bytes, bytes]]
    options: Mapping[bytes, Mapping[str, str]]
    foreign_families: Mapping[bytes, bytes] = field(init=False)
    foreign_scalars: Mapping[tuple[bytes, bytes], tuple[bytes, bytes]] = field(init=False)
    plain: bool = field(init=False)
    """All columns have Nutch's names."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "foreign_families", {site: ours for ours, site in self.families.items()})
        object.__setattr__(self, "foreign_scalars", {site: ours for ours, site in self.scalars.items()})
        same = all(a == b for a, b in self.families.items()) and all(a == b for a, b in self.scalars.items())
        object.__setattr__(self, "plain", same)

    def to_site(self, family: bytes, qualifier: bytes) -> bytes:
        """Return the site's column for one of Nutch's, as ``family:qualifier``."""
        if not self.plain:
            scalar = self.scalars.get((family, qualifier))
            family, qualifier = scalar or (self.families.get(family, family), qualifier)
        return b"%s:%s" % (family, qualifier)

    def from_site(self, column: bytes) -> tuple[bytes, bytes]:
        """Return Nutch's family and qualifier for a column of the site."""
        family, _, qualifier = column.partition(b":")
        if self.plain:
            return family, qualifier
        return self.foreign_scalars.get((family, qualifier)) or (self.foreign_families.get(family, family), qualifier)

    def site_families(self) -> set[bytes]:
        """Return the families of the site's table."""
        return {*self.families.values(), *(family for family, _ in self.scalars.values())}

    def our_families(self, site_family: bytes) -> set[bytes]:
        """Return Nutch's families with cells in a family of the site."""
        found = {ours for (ours, _), (site, _) in self.scalars.items() if site == site_family}
        return found | {self.foreign_families.get(site_family, site_family)}


def column_mapping(conf: Configuration, record: type[Record]) -> ColumnMapping:
    """Return the mapping of ``record``: Nutch's columns, overridden by the site's file if it exists."""
    path = conf.resource(MAPPING_FILE)
    declared, options = _read_mapping_file(path, record.SCHEMA) if path and record.SCHEMA in _CLASSES else ({}, {})
    families: dict[bytes, bytes] = {}
    scalars: dict[tuple[bytes, bytes], tuple[bytes, bytes]] = {}
    for found in record.FIELDS.values():
        family, qualifier = declared.get(found.name, (found.family, found.qualifier))
        if found.is_map:
            families[found.family] = family
        else:
            scalars[found.family, found.qualifier] = (family, qualifier)
    if len({*families.values()}) < len(families) or len({*scalars.values()}) < len(scalars):
        raise ConfigurationError(f"{path} maps two fields to the same column: correct it")
    return ColumnMapping(families, scalars, options)


DeclaredColumns = dict[str, tuple[bytes, bytes]]
FamilyOptions = dict[bytes, dict[str, str]]


@lru_cache(maxsize=16)
def _read_mapping_file(path: Path, schema: str) -> tuple[DeclaredColumns, FamilyOptions]:
    """Return field -> (family, qualifier), and family -> attributes, of the class for ``schema``."""
    try:
        root = ElementTree.parse(path).getroot()  # noqa: S314 - a file of the operator; expat limits entity expansion
    except (ElementTree.ParseError, OSError) as error:
        raise ConfigurationError(f"cannot read {path}: {error}: repair the file's XML") from error
    declared: DeclaredColumns = {}
    tables = {schema}
    for element in root.iter("class"):
        if element.get("name", "").rpartition(".")[2] == _CLASSES[schema]:
            tables.add(element.get("table", schema))
            for entry in element.iter("field"):
                name, family = entry.get("name", ""), entry.get("family", "")
                if name and family:
                    declared[name] = (family.encode(), entry.get("qualifier", "").encode())
    options: FamilyOptions = {}
    for element in root.iter("table"):
        if element.get("name") in tables:
            for entry in element.iter("family"):
                options[entry.get("name", "").encode()] = {k: v for k, v in entry.attrib.items() if k != "name"}
    return declared, options
