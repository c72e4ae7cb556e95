"""Office files before 2007 and Outlook messages: compound files (OLE), dispatched by the names of their streams."""

from __future__ import annotations

import struct

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.formats.containers.compound_file import OLE_MAGIC, OleFile
from nutch2py.parser.formats.document_parser import (
    DocumentParser,
    EncryptedDocumentError,
    ParsedDocument,
    UnreadableDocumentError,
)
from nutch2py.parser.formats.embedded_documents import EmbeddedDocumentParser
from nutch2py.parser.formats.excel.biff import read_workbook
from nutch2py.parser.formats.excel.ooxml_decryption import decrypt_package
from nutch2py.parser.formats.office.outlook import read_message
from nutch2py.parser.formats.office.ppt import read_slides
from nutch2py.parser.formats.unpack_budget import UnpackBudget, unpack_budget
from nutch2py.parser.formats.word.msword import read_word
from nutch2py.records.webpage import WebPage


class OleParser(DocumentParser):
    """Reads Word, Excel, PowerPoint and Outlook files with their embedded documents."""

    content_types = (
        r"application/(?:msword|x-tika-msoffice(?:-.*)?"
        r"|vnd\.ms-(?:excel|powerpoint|outlook|works)(?:\.(?:sheet|workspace)\..*)?)"
    )

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._embedded_parser = EmbeddedDocumentParser(conf)

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read a compound file, or a plain sheet of Excel 2 to 4."""
        if content[:8] != OLE_MAGIC:
            self._read_non_compound(content, document)
            return
        ole = OleFile(content)
        ole.add_summary_metadata(document)
        folders: dict[str, list[tuple[list[str], str]]] = {}
        for path in ole.paths:
            folders.setdefault("/".join(path[:-1]), []).append((path[:-1], path[-1]))
        names = {name.lower() for _, name in folders.get("", [])}
        if "encryptedpackage" in names:
            package = decrypt_package(ole.get_stream([], "EncryptionInfo"), ole.get_stream([], "EncryptedPackage"))
            if package is not None and package[:2] == b"PK":
                self._embedded_parser.parse_into(document, "", package)
                return
        if "encryptedpackage" in names or "encryptedsummary" in names:
            raise EncryptedDocumentError("the file needs a password")
        found = False
        with unpack_budget(self.conf) as budget:
            for folder_path in sorted(folders, key=lambda name: (bool(name), name)):
                for folder, name in sorted(folders[folder_path]):
                    found |= self._read_stream(ole, folder, name, document, budget)
        if not found:
            raise UnreadableDocumentError(f"compound file without a document: {', '.join(sorted(names))[:200]}")

    def _read_stream(
        self, ole: OleFile, folder: list[str], name: str, document: ParsedDocument, budget: UnpackBudget
    ) -> bool:
        """Read the document whose main stream this is; return whether the stream belongs to a document."""
        lower = name.lower()
        inner = bool(folder)
        try:
            if lower == "worddocument":
                read_word(ole, folder, document)
            elif lower in ("workbook", "book"):
                read_workbook(ole.get_stream(folder, name), document)
            elif lower == "powerpoint document":
                for embedded in read_slides(ole.get_stream(folder, name), document, budget):
                    self._embedded_parser.parse_into(document, "", embedded)
            elif lower == "__properties_version1.0" and not any(part.startswith("__") for part in folder):
                for part in read_message(ole, folder, document):
                    self._embedded_parser.parse_into(document, part.name, part.content, part.declared)
            elif lower in ("package", "contents", "\x01ole10native"):
                data = ole.get_stream(folder, name)
                label, data = read_ole10_native(data) if lower.endswith("native") else ("", data)
                before = document.text_length
                self._embedded_parser.parse_into(document, label, data)
                return document.text_length > before
            else:
                return False
        except (UnreadableDocumentError, struct.error, IndexError) as error:
            if not inner:
                raise UnreadableDocumentError(str(error)) from None
        except EncryptedDocumentError:
            if not inner:
                raise
        return True

    def _read_non_compound(self, content: bytes, document: ParsedDocument) -> None:
        if content[:1] == b"\x09" and content[1:2] in (b"\x00", b"\x02", b"\x04", b"\x08"):
            read_workbook(content, document)
            return
        if content[:4] in (b"\xdb\xa5-\x00", b"\x31\xbe\x00\x00", b"\x9b\xa5\x21\x00"):
            raise UnreadableDocumentError("a Word file older than Word 6")
        before = document.text_length
        self._embedded_parser.parse_into(document, "", content)  # often HTML, RTF or a newer format with an old name
        if document.text_length == before:
            raise UnreadableDocumentError("not a compound file")


def read_ole10_native(data: bytes) -> tuple[str, bytes]:
    """Return name and content of an embedded file (stream Ole10Native); the raw data when it has another form."""
    try:
        position = 6
        name_end = data.index(b"\0", position)
        name = data[position:name_end].decode("cp1252", "replace")
        position = data.index(b"\0", name_end + 1) + 1 + 4
        (length,) = struct.unpack_from("<I", data, position)
        position += 4 + length
        (size,) = struct.unpack_from("<I", data, position)
        if position + 4 + size <= len(data):
            return name, data[position + 4 : position + 4 + size]
    except (ValueError, struct.error):
        pass
    return "", data[4:]
