"""Archives (ZIP, tar) and compressed files (gzip, bzip2, xz, zstd): parses each document inside with its own parser."""

from __future__ import annotations

import bz2
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.parser.charset.encoding_detector import decode_unlabeled
from nutch2py.parser.formats.containers.zip_package import ZipPackage, reject_unsupported
from nutch2py.parser.formats.document_parser import (
    DocumentLimitError,
    DocumentParser,
    EncryptedDocumentError,
    ParsedDocument,
    UnreadableDocumentError,
)
from nutch2py.parser.formats.embedded_documents import EmbeddedDocumentParser
from nutch2py.parser.formats.unpack_budget import PackageBudget, unpack_budget
from nutch2py.parser.gzip_decoder import gzip_decompressor
from nutch2py.records.webpage import WebPage

_CHUNK_BYTES = 1 << 16
_UTF8_FLAG = 0x800
MAX_PAX_HEADERS = 1000
"""PAX headers of a tar shared by all files: tarfile copies them for each file."""


class ArchiveParser(DocumentParser):
    """Extracts name, title, text and links of every document inside, including nested archives.

    ``parser.unpack.max.bytes``, ``….documents`` and ``….depth`` bound all unpacking. When a limit is exceeded, the text
    read so far is kept; the parse fails only when there is none.
    """

    content_types = (
        r"application/(?:zip|java-archive|x-tar|x-gtar|gzip|x-bzip2|x-xz|zstd|vnd\.android\.package-archive)"
    )

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._embedded_parser = EmbeddedDocumentParser(conf)

    def read(self, content: bytes, document: ParsedDocument, page: WebPage) -> None:
        """Read an archive or a compressed file."""
        try:
            with unpack_budget(self.conf) as budget:
                if content[:2] == b"PK":
                    self._read_zip(ZipPackage(content, budget), document)
                elif (pieces := decompress_chunks(content)) is not None:
                    self._read_compressed_file(pieces, len(content), document)
                else:
                    self._read_tar(content, document)
        except DocumentLimitError:
            if not document.text:
                raise
            document.set_metadata("parser.unpack.limit", "exceeded")

    def _read_zip(self, package: ZipPackage, document: ParsedDocument) -> None:
        reject_unsupported(package)
        if "[Content_Types].xml" in package:
            from nutch2py.parser.formats.office.ooxml import OoxmlParser

            if any(name.lower().startswith(("word/", "xl/", "ppt/")) for name in package.names):
                OoxmlParser(self.conf).read_package(package, document)
                return
        if "mimetype" in package:
            kind = package.read("mimetype")[:200]
            if b"opendocument" in kind or b"sun.xml" in kind:
                from nutch2py.parser.formats.office.opendocument import OpenDocumentParser

                OpenDocumentParser(self.conf).read_package(package, document)
                return
            if b"epub" in kind or b"ibooks" in kind:
                from nutch2py.parser.formats.epub import EpubParser

                EpubParser(self.conf).read_package(package, document)
                return
        locked = broken = 0
        entries = [entry for entry in package.entries if not entry.filename.endswith("/")]
        for entry, name in zip(entries, decode_entry_names(entries), strict=True):
            if not entry.file_size:
                document.add_text(name)
            try:
                self._embedded_parser.parse_into(document, name, package.read_entry(entry))
            except EncryptedDocumentError:
                locked += 1
                document.add_text(name)
            except UnreadableDocumentError:
                broken += 1
        if entries and locked == len(entries):
            raise EncryptedDocumentError("every file of the archive needs a password")
        if entries and broken == len(entries):
            raise UnreadableDocumentError("no file of the archive can be unpacked")

    def _read_tar(self, content: bytes, document: ParsedDocument) -> None:
        try:
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:", errors="replace") as archive, unpack_budget(
                self.conf
            ) as page_budget:  # fmt: skip
                budget = PackageBudget(page_budget, len(content))
                for member in archive:
                    if len(archive.pax_headers) > MAX_PAX_HEADERS:
                        raise UnreadableDocumentError(f"tar: {len(archive.pax_headers)} headers for every file")
                    file = archive.extractfile(member) if member.isreg() else None
                    if file is not None:
                        budget.spend(member.size)
                        self._embedded_parser.parse_into(document, member.name, file.read())
        except (DocumentLimitError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - tarfile raises arbitrary exceptions for invalid numbers
            if not document.text_length:
                raise UnreadableDocumentError(f"tar: {error}") from None

    def _read_compressed_file(self, pieces: Iterator[bytes], size: int, document: ParsedDocument) -> None:
        """Read a compressed file of ``size`` bytes."""
        with unpack_budget(self.conf) as page_budget:
            budget, output, parts = PackageBudget(page_budget, size), io.BytesIO(), 0
            try:
                for data in pieces:
                    budget.spend(len(data))
                    output.write(data)
                    parts += bool(data)
            except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError) as error:
                if not parts:
                    raise UnreadableDocumentError(f"compressed file: {error}") from None
        name = document.base.partition("?")[0].rpartition("/")[2]
        for ending, new in ((".tgz", ".tar"), (".tbz2", ".tar"), (".txz", ".tar"), (".svgz", ".svg")):
            name = name.removesuffix(ending) + new if name.lower().endswith(ending) else name
        inner = name.rpartition(".")[0] if name.lower().endswith((".gz", ".bz2", ".xz", ".zst")) else name
        self._embedded_parser.parse_into(document, inner, output.getvalue())


def decode_entry_names(entries: list[zipfile.ZipInfo]) -> list[str]:
    """Return the names of entries; those without the UTF-8 flag share one code page, which is guessed."""
    names = [entry.filename for entry in entries]
    unmarked = [
        index
        for index, entry in enumerate(entries)
        if not entry.flag_bits & _UTF8_FLAG and not entry.filename.isascii()
    ]
    if unmarked:
        joined = decode_unlabeled("\n".join(names[index] for index in unmarked).encode("cp437", "replace")).split("\n")
        if len(joined) == len(unmarked):
            for index, name in zip(unmarked, joined, strict=True):
                names[index] = name
    return names


def decompress_chunks(content: bytes) -> Iterator[bytes] | None:
    """Return the decompressed content in chunks, or None for a file that is not compressed."""
    if content[:2] == b"\x1f\x8b":
        decompress = gzip_decompressor()
        return (decompress(content[start : start + _CHUNK_BYTES]) for start in range(0, len(content), _CHUNK_BYTES))
    if content[:3] == b"BZh":
        return _decompress(bz2.BZ2Decompressor(), content)
    if content[:6] == b"\xfd7zXZ\0":
        return _decompress(lzma.LZMADecompressor(memlimit=256 << 20), content)
    return _decompress_zstd(content) if content[:4] == b"\x28\xb5\x2f\xfd" else None


def _decompress(decoder: bz2.BZ2Decompressor | lzma.LZMADecompressor, content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), _CHUNK_BYTES):
        piece = content[start : start + _CHUNK_BYTES]
        while not decoder.eof:  # a small input can decompress to a gigabyte
            yield decoder.decompress(piece, _CHUNK_BYTES)
            if decoder.needs_input:
                break
            piece = b""


def _decompress_zstd(content: bytes) -> Iterator[bytes]:
    import zstandard

    try:
        with zstandard.ZstdDecompressor(max_window_size=128 << 20).stream_reader(content) as reader:
            while piece := reader.read(_CHUNK_BYTES):
                yield piece
    except zstandard.ZstdError as error:
        raise OSError(str(error)) from None
