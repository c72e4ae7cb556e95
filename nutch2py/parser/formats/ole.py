"""Office files before 2007 and Outlook messages: compound files (OLE), each told by the streams that it holds."""

from __future__ import annotations

import struct

from nutch2py.conf import Configuration
from nutch2py.parser.formats.biff import read_workbook
from nutch2py.parser.formats.compound_file import MAGIC, OleFile
from nutch2py.parser.formats.default_password import unlocked
from nutch2py.parser.formats.msword import read_word
from nutch2py.parser.formats.nested import Budget, NestedDocuments, unpacking
from nutch2py.parser.formats.outlook import read_message
from nutch2py.parser.formats.parsed_document import Document, DocumentParser, Encrypted, Unreadable
from nutch2py.parser.formats.powerpoint import read_slides
from nutch2py.webpage import WebPage


class OleParser(DocumentParser):
    """Word, Excel, PowerPoint and Outlook files, with what is embedded in them."""

    content_types = (
        r"application/(?:msword|x-tika-msoffice(?:-.*)?"
        r"|vnd\.ms-(?:excel|powerpoint|outlook|works)(?:\.(?:sheet|workspace)\..*)?)"
    )

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._nested = NestedDocuments(conf)

    def read(self, content: bytes, document: Document, page: WebPage) -> None:
        """Read a compound file, or a sheet of Excel 2 to 4, which is none."""
        if content[:8] != MAGIC:
            self._read_other(content, document)
            return
        ole = OleFile(content)
        ole.describe(document)
        folders: dict[str, list[tuple[list[str], str]]] = {}
        for path in ole.paths:
            folders.setdefault("/".join(path[:-1]), []).append((path[:-1], path[-1]))
        names = {name.lower() for _, name in folders.get("", [])}
        if "encryptedpackage" in names:
            package = unlocked(ole.get([], "EncryptionInfo"), ole.get([], "EncryptedPackage"))
            if package is not None and package[:2] == b"PK":
                self._nested.add(document, "", package)
                return
        if "encryptedpackage" in names or "encryptedsummary" in names:
            raise Encrypted("the file needs a password")
        found = False
        with unpacking(self.conf) as budget:
            for place in sorted(folders, key=lambda place: (bool(place), place)):
                for folder, name in sorted(folders[place]):
                    found |= self._read_stream(ole, folder, name, document, budget)
        if not found:
            raise Unreadable(f"compound file without a document: {', '.join(sorted(names))[:200]}")

    def _read_stream(self, ole: OleFile, folder: list[str], name: str, document: Document, budget: Budget) -> bool:
        """Read the document that a stream is the main one of; tell whether it was one."""
        lower = name.lower()
        inner = bool(folder)
        try:
            if lower == "worddocument":
                read_word(ole, folder, document)
            elif lower in ("workbook", "book"):
                read_workbook(ole.get(folder, name), document)
            elif lower == "powerpoint document":
                for embedded in read_slides(ole.get(folder, name), document, budget):
                    self._nested.add(document, "", embedded)
            elif lower == "__properties_version1.0" and not any(part.startswith("__") for part in folder):
                for part in read_message(ole, folder, document):
                    self._nested.add(document, part.name, part.content, part.declared)
            elif lower in ("package", "contents", "\x01ole10native"):
                data = ole.get(folder, name)
                label, data = native(data) if lower.endswith("native") else ("", data)
                before = document.length
                self._nested.add(document, label, data)
                return document.length > before
            else:
                return False
        except (Unreadable, struct.error, IndexError) as error:
            if not inner:
                raise Unreadable(str(error)) from None
        except Encrypted:
            if not inner:
                raise
        return True

    def _read_other(self, content: bytes, document: Document) -> None:
        if content[:1] == b"\x09" and content[1:2] in (b"\x00", b"\x02", b"\x04", b"\x08"):
            read_workbook(content, document)
            return
        if content[:4] in (b"\xdb\xa5-\x00", b"\x31\xbe\x00\x00", b"\x9b\xa5\x21\x00"):
            raise Unreadable("a Word file older than Word 6")
        before = document.length
        self._nested.add(document, "", content)  # often HTML, RTF or a newer format under an old name
        if document.length == before:
            raise Unreadable("not a compound file")


def native(data: bytes) -> tuple[str, bytes]:
    """Return name and content of an embedded file (stream Ole10Native); the data itself when it is of another form."""
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
