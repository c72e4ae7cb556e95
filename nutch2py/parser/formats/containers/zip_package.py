"""ZIP packages (office documents, books, archives) with limits, and events of the XML files in them."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

from nutch2py.parser.formats.document_parser import (
    DocumentLimitError,
    EncryptedDocumentError,
    ParsedDocument,
    UnreadableDocumentError,
    UnsupportedDocumentError,
)
from nutch2py.parser.formats.unpack_budget import PackageBudget, UnpackBudget
from nutch2py.parser.xml_sanitizer import sanitize_xml

if TYPE_CHECKING:
    from lxml.etree import ParserTarget

_CHUNK_BYTES = 1 << 16
_LOCAL_HEADER_BYTES = 30  # without name and extra field
_MAX_ENTRIES = 100_000
_MAX_LISTINGS = 2  # of one file in the directory


class ZipPackage:
    """The files of a ZIP by name. All unpacked bytes are subtracted from the budget before they are kept."""

    def __init__(self, content: bytes, budget: UnpackBudget) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except Exception as error:  # noqa: BLE001 - zipfile raises arbitrary exceptions for invalid numbers
            raise UnreadableDocumentError(f"not a ZIP file: {error}") from None
        self._content = content
        self._budget = PackageBudget(budget, len(content))
        self._first_error = ""  # of the first file that cannot be read
        self._packed_left = 2 * len(content)  # files of an intact package do not overlap; some are read twice
        self.entries = self._zip.infolist()
        if len(self.entries) > _MAX_ENTRIES:
            raise UnreadableDocumentError(f"a directory of {len(self.entries)} entries")
        self._overlapping = _find_overlapping(self.entries)
        self.names = [entry.filename for entry in self.entries]
        # Windows programs write backslashes, and readers of these formats ignore case
        self._by_name = {name.replace("\\", "/").lower(): name for name in reversed(self.names)}

    def __contains__(self, name: str) -> bool:
        return name.lower().lstrip("/") in self._by_name

    def read(self, name: str) -> bytes:
        """Return a file, b"" when it is missing or broken: other files may be intact."""
        actual = self._by_name.get(name.lower().lstrip("/"))
        try:
            return b"" if actual is None else self.read_entry(self._zip.getinfo(actual))
        except UnreadableDocumentError as error:
            self._first_error = self._first_error or str(error)
            return b""

    def raise_if_broken(self, document: ParsedDocument) -> None:
        """Raise :class:`UnreadableDocumentError` when files are broken and no other file has text."""
        if self._first_error and not document.text_length:
            raise UnreadableDocumentError(self._first_error)

    def read_entry(self, entry: zipfile.ZipInfo) -> bytes:
        """Return the file of a directory entry."""
        if entry.flag_bits & 1:
            raise EncryptedDocumentError(f"{entry.filename} needs a password")
        self._packed_left -= entry.compress_size
        if self._packed_left < 0 or entry.header_offset in self._overlapping:
            raise UnreadableDocumentError(f"{entry.filename} overlaps other files")
        parts = []
        try:
            with self._zip.open(entry) as file:
                while part := file.read(_CHUNK_BYTES):
                    self._budget.spend(len(part))
                    parts.append(part)
        except (DocumentLimitError, MemoryError):
            raise
        except NotImplementedError as error:  # a subclass of RuntimeError
            raise UnreadableDocumentError(f"{entry.filename}: {error}") from None
        except RuntimeError as error:  # zipfile's error for a missing password
            raise EncryptedDocumentError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - zipfile raises arbitrary exceptions for invalid numbers
            if not parts and not (rest := self._salvage(entry)):
                raise UnreadableDocumentError(f"{entry.filename}: {error}") from None
            if not parts:
                parts.append(rest)
        return b"".join(parts)

    def _salvage(self, entry: zipfile.ZipInfo) -> bytes:
        """Return the content of a file with a wrong checksum, as far as it can be unpacked."""
        start = entry.header_offset
        header = self._content[start : start + 30]
        if len(header) < 30 or header[:4] != b"PK\3\4":
            return b""
        start += 30 + sum(struct.unpack_from("<HH", header, 26))
        packed = self._content[start : start + entry.compress_size]
        stored = entry.compress_type == zipfile.ZIP_STORED
        try:
            data = packed if stored else zlib.decompressobj(-15).decompress(packed, max(1, self._budget.bytes_left + 1))
        except zlib.error:
            return b""
        self._budget.spend(len(data))
        return data


def _find_overlapping(entries: Collection[zipfile.ZipInfo]) -> frozenset[int]:
    """Return the offsets of files whose data reaches into the next file, or that the directory lists many times.

    Such data would be unpacked for each of them. Some programs list a file twice.
    """
    ends: dict[int, int] = {}
    counts = Counter(entry.header_offset for entry in entries)
    for entry in entries:
        end = entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size
        ends[entry.header_offset] = max(end, ends.get(entry.header_offset, 0))
    reaching = (start for start, following in pairwise(sorted(ends)) if ends[start] > following)
    return frozenset([*reaching, *(start for start, count in counts.items() if count > _MAX_LISTINGS)])


_UNSUPPORTED_FORMATS = {
    "Index/Document.iwa": "iWork (Pages, Numbers, Keynote)", "Index.zip": "iWork (Pages, Numbers, Keynote)",
    "index.apxl": "iWork (Keynote)", "buildVersionHistory.plist": "iWork (Pages, Numbers)",
    "FixedDocSeq.fdseq": "XPS", "FixedDocumentSequence.fdseq": "XPS", "xl/workbook.bin": "Excel's binary workbooks",
    "visio/document.xml": "Visio",
}  # fmt: skip


def reject_unsupported(package: ZipPackage) -> None:
    """Raise :class:`UnsupportedDocumentError` for a package of an unsupported document format."""
    for name, kind in _UNSUPPORTED_FORMATS.items():
        if name in package:
            raise UnsupportedDocumentError(f"{kind}: unsupported format")


class XmlEvent(NamedTuple):
    """A tag or a text: ``kind`` is start, end or text; ``name`` the local name; ``attributes`` those of a start tag."""

    kind: str
    name: str
    text: str = ""
    attributes: Mapping[str, str] = {}


class _EventTarget:
    """Target of lxml's parser; builds no tree, so memory stays small for files of any size."""

    def __init__(self) -> None:
        self.events: list[XmlEvent] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        # unless entities are resolved, libxml2 returns ampersands in attributes as references
        if any("&" in value for value in attributes.values()):
            attributes = {name: value.replace("&#38;", "&") for name, value in attributes.items()}
        self.events.append(XmlEvent("start", _local_name(tag), "", attributes))

    def end(self, tag: str) -> None:
        self.events.append(XmlEvent("end", _local_name(tag)))

    def data(self, text: str) -> None:
        self.events.append(XmlEvent("text", "", text))

    def close(self) -> None:
        """Finish; the events are the result."""


def _local_name(tag: str) -> str:
    """Return a name without its namespace or undeclared prefix."""
    return tag.rpartition("}")[2].rpartition(":")[2]


def xml_events(content: bytes, content_type_header: str | None = None) -> Iterator[XmlEvent]:
    """Yield the tags and texts of an XML file in order, as far as it can be read.

    ``content_type_header``: its Content-Type. Declared entities are not resolved
    (:mod:`nutch2py.parser.xml_sanitizer`), no document type and nothing from the network is loaded, and libxml2's
    limits of depth and size apply.
    """
    from lxml import etree

    content = sanitize_xml(content, content_type_header)
    target = _EventTarget()
    parser = etree.XMLParser(
        # the type requires every method that lxml may call; lxml calls only existing ones
        target=cast("ParserTarget[None]", target),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
    )
    try:
        for start in range(0, len(content), _CHUNK_BYTES):
            parser.feed(content[start : start + _CHUNK_BYTES])
            yield from target.events
            target.events.clear()
        parser.close()
    except etree.XMLSyntaxError:
        pass
    yield from target.events


def get_attribute(event: XmlEvent, name: str) -> str:
    """Return an attribute by its local name, "" when it is missing."""
    return next((value for key, value in event.attributes.items() if key.rpartition("}")[2] == name), "")


def read_relationships(content: bytes) -> dict[str, tuple[str, str]]:
    """Return relation id -> (kind, target) of an OOXML ``.rels`` file."""
    return {
        event.attributes.get("Id", ""): (
            event.attributes.get("Type", "").rpartition("/")[2],
            event.attributes.get("Target", ""),
        )
        for event in xml_events(content)
        if event.kind == "start" and event.name == "Relationship"
    }
