"""Field mappings: names of document fields in an index.

Nutch 1 keeps them per writer in index-writers.xml (``<mapping>`` with ``copy``, ``rename``, ``remove``), Nutch 2 in
solrindex-mapping.xml (``<field source= dest=>``, ``<copyField source= dest=>``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple
from xml.etree import ElementTree as ET

from nutch2py.records.document import NutchDocument


class FieldMapping(NamedTuple):
    """Copies, renames and removes fields, in this order, as Nutch's ``IndexWriters.mapDocument``.

    ``copy``: source -> destinations; ``rename``: source -> destination; ``remove``: sources.
    """

    copy: Mapping[str, list[str]] = MappingProxyType({})
    rename: Mapping[str, str] = MappingProxyType({})
    remove: frozenset[str] = frozenset()

    def apply(self, document: NutchDocument) -> NutchDocument:
        """Return the mapped document; ``document`` stays unchanged."""
        if not (self.copy or self.rename or self.remove):
            return document
        mapped = document.copy()
        fields = mapped.fields
        for source, destinations in self.copy.items():
            values = [*fields.get(source, ())]
            for destination in destinations if values else ():
                if destination != source:  # a copy to itself would duplicate the values
                    fields.setdefault(destination, []).extend(values)
        for source, destination in self.rename.items():
            if source in fields and source != destination:
                fields.setdefault(destination, []).extend(fields.pop(source))
        for source in self.remove:
            fields.pop(source, None)
        return mapped

    @classmethod
    def from_writer_xml(cls, element: ET.Element | None) -> FieldMapping:
        """Read the ``<mapping>`` of a writer in index-writers.xml."""
        if element is None:
            return cls()
        return cls(
            {f.get("source", ""): _split_names(f.get("dest", "")) for f in element.iterfind("copy/field")},
            {f.get("source", ""): f.get("dest", "").strip() for f in element.iterfind("rename/field") if f.get("dest")},
            frozenset(f.get("source", "") for f in element.iterfind("remove/field")),
        )

    @classmethod
    def from_solr_mapping_xml(cls, root: ET.Element) -> tuple[FieldMapping, str]:
        """Read solrindex-mapping.xml; return the mapping and the unique key (default ``id``)."""
        copies: dict[str, list[str]] = {}
        for field in root.iter("copyField"):
            copies.setdefault(field.get("source", ""), []).extend(_split_names(field.get("dest", "")))
        renames = {
            f.get("source", ""): f.get("dest", "") for f in root.iter("field") if f.get("source") != f.get("dest")
        }
        return cls(copies, renames), (root.findtext("uniqueKey") or "").strip() or "id"


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
