"""Web archives of an export: WARC files of bounded size, their index (CDXJ), and both in one file with pages (WACZ).

A WACZ (Webrecorder's Web Archive Collection Zipped 1.1.1) is written in one pass; lists of pages and of index lines
wait in temporary files. Memory does not depend on the number of pages.
"""

from __future__ import annotations

import time
import zipfile
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Self

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.export.cdxj_index import LineSorter, to_urlkey, write_blocks
from nutch2py.jobs.export.warc_records import (
    IDENTICAL_PROFILE,
    build_http_head,
    content_digest,
    make_record,
    to_uri,
)
from nutch2py.version import __version__

ARCHIVE_FORMATS = ("warc", "cdxj", "wacz")
"""Formats of an export that hold responses."""
ARCHIVE_COLUMNS = (
    "url", "url_protocol", "status", "fetch_time", "protocol_status", "fetch_status", "content_mime_detected", "title",
    "text", "headers", "content",
)  # fmt: skip
"""Columns that an archive is made of; title and text are only in WACZ."""
STATUSES_WITH_BODY = frozenset({"SUCCESS", "MOVED", "TEMP_MOVED", "NOTMODIFIED"})
"""Protocol statuses whose response is in the row with its body."""
_MAX_DIGESTS = 100_000  # remembered for revisit records
_COPY_BYTES = 1 << 20


def has_response(row: dict[str, object]) -> bool:
    """Return whether a row with the values of :data:`ARCHIVE_COLUMNS` holds a response, or enough of one."""
    if not row.get("url_protocol") or not row.get("fetch_time") or row.get("fetch_status") is None:
        return False
    return "content" in row or row.get("protocol_status") not in STATUSES_WITH_BODY


class _CountingFile:
    """A file that counts its bytes and computes their digest."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self.name = file, name
        self.size, self.digest = 0, sha256()

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)
        self.digest.update(data)

    def close(self) -> None:
        self._file.close()


class ArchiveWriter:
    """Writes the archive of an export; a context manager.

    Args:
        conf: Configuration of the crawl.
        export_format: One of :data:`ARCHIVE_FORMATS`.
        target_dir: Folder of the export.
        temp_dir: Folder for temporary files on the same disk.
    """

    def __init__(self, conf: Configuration, export_format: str, target_dir: Path, temp_dir: Path) -> None:
        self._format, self._target_dir, self._temp_dir = export_format, target_dir, temp_dir
        self._max_file_size = conf.get_int("fetcher.warc.size", 1_000_000_000)
        self._started = time.gmtime()
        self._prefix = f"nutch2py-{time.strftime('%Y%m%d%H%M%S', self._started)}"
        self.files = 0
        self._file: _CountingFile | None = None
        self._warc_count = 0
        self._digests: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        self._sorter = LineSorter(self._temp_dir)
        self._resources.callback(self._sorter.close)
        if self._format == "wacz":
            self._wacz_name = f"{self._prefix}.wacz"
            wacz = zipfile.ZipFile(self._target_dir / f".{self._wacz_name}", "w", allowZip64=True)
            self._zip = self._resources.enter_context(wacz)
            self._package_files: list[dict[str, object]] = []
            pages = (self._temp_dir / "pages.jsonl").open("w+b")
            self._pages = self._resources.enter_context(pages)
            self._write_page({"format": "json-pages-1.0", "id": "pages", "title": "All pages", "hasText": True})
        return self

    def __exit__(self, *_: object) -> None:
        with self._resources:
            if self._file is not None:
                self._file.close()
                self._file = None

    def add_rows(self, lines: Iterable[bytes]) -> None:
        """Add rows, which are JSON lines of :data:`ARCHIVE_COLUMNS`."""
        for line in lines:
            self._add(orjson.loads(line))

    def finish(self) -> None:
        """Write what follows the last row: the index, pages and package of the format."""
        if self._file is None and not self._warc_count:
            self._open_warc()
        self._close_warc()
        if self._format == "cdxj":
            path = self._target_dir / ".index.cdxj"
            with path.open("wb") as file:
                file.writelines(self._sorter)
            path.replace(self._target_dir / "index.cdxj")
            self.files += 1
        elif self._format == "wacz":
            self._finish_wacz()

    # WARC

    def _add(self, row: dict[str, Any]) -> None:
        url, date = to_uri(row["url"]), row["fetch_time"]
        is_stored = row["protocol_status"] in STATUSES_WITH_BODY
        content = b64decode(row.get("content") or "") if is_stored else b""
        status = 200 if row["fetch_status"] == 304 else row["fetch_status"]  # the row has the body of the 200
        media_type = row.get("content_mime_detected") or "" if is_stored else ""
        digest = content_digest(content)
        headers = [("WARC-Target-URI", url), ("WARC-Date", date), ("WARC-Payload-Digest", digest)]
        if row["url_protocol"] in ("http", "https"):
            fields = [(each["name"], each["value"]) for each in row.get("headers") or ()]
            head, truncated = build_http_head(status, fields, len(content), media_type)
            if not is_stored:
                truncated = "unspecified"
            if truncated:
                headers.append(("WARC-Truncated", truncated))
            headers.append(("Content-Type", "application/http; msgtype=response"))
            kind, block = "response", [head, content]
            original = self._digests.get(digest) if content else None
            if original is not None:
                kind, block = "revisit", [head]
                headers += [
                    ("WARC-Profile", IDENTICAL_PROFILE),
                    ("WARC-Refers-To-Target-URI", original[0]),
                    ("WARC-Refers-To-Date", original[1]),
                ]
            elif content:
                self._digests[digest] = url, date
                if len(self._digests) > _MAX_DIGESTS:
                    self._digests.popitem(last=False)
        else:
            kind, block = "resource", [content]
            headers.append(("Content-Type", media_type or "application/octet-stream"))
        record = make_record(kind, headers, *block)
        file = self._open_warc()
        if self._format != "warc":
            declared = next(
                (each["value"] for each in row.get("headers") or () if each["name"].lower() == "content-type"), ""
            )
            mime = _clean_media_type(declared) or media_type or "unk"
            self._add_index_line(url, date, "warc/revisit" if kind == "revisit" else mime, status, digest, record, file)
        if self._format == "wacz" and is_stored and status == 200:
            self._add_page(row, url, len(content))
        file.write(record)
        if file.size >= self._max_file_size:
            self._close_warc()

    def _open_warc(self) -> _CountingFile:
        if self._file is not None:
            return self._file
        name = f"{self._prefix}-{self._warc_count:05d}.warc.gz"
        self._warc_count += 1
        self._file = _CountingFile(self._open_target(name), name)
        about = {
            "software": f"nutch2py/{__version__}",
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "description": "pages of a nutch2py table; requests and status lines were not stored",
        }
        block = "".join(f"{name}: {value}\r\n" for name, value in about.items()).encode()
        headers = [
            ("WARC-Date", time.strftime("%Y-%m-%dT%H:%M:%SZ", self._started)),
            ("WARC-Filename", name),
            ("Content-Type", "application/warc-fields"),
        ]
        self._file.write(make_record("warcinfo", headers, block))
        return self._file

    def _open_target(self, name: str) -> IO[bytes]:
        if self._format == "wacz":
            return self._open_member(f"archive/{name}", zipfile.ZIP_STORED)
        return (self._target_dir / f".{name}").open("wb")

    def _close_warc(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        file.close()
        if self._format == "wacz":
            self._note_member(f"archive/{file.name}", file)
        else:
            (self._target_dir / f".{file.name}").replace(self._target_dir / file.name)
            self.files += 1

    def _add_index_line(
        self, url: str, date: str, mime: str, status: int, digest: str, record: bytes, file: _CountingFile
    ) -> None:
        values = {
            "url": url, "mime": mime, "status": str(status), "digest": digest, "length": str(len(record)),
            "offset": str(file.size), "filename": file.name,
        }  # fmt: skip
        stamp = "".join(each for each in date[:19] if each.isdigit())
        self._sorter.add(f"{to_urlkey(url)} {stamp} ".encode() + orjson.dumps(values) + b"\n")

    # WACZ

    def _add_page(self, row: dict[str, Any], url: str, size: int) -> None:
        page = {
            "id": sha256(f"{url} {row['fetch_time']}".encode()).hexdigest()[:24], "url": url, "ts": row["fetch_time"],
            "title": row.get("title"), "text": row.get("text"), "size": size, "mime": row.get("content_mime_detected"),
        }  # fmt: skip
        self._write_page({name: value for name, value in page.items() if value})

    def _write_page(self, values: dict[str, object]) -> None:
        self._pages.write(orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE))

    def _open_member(self, name: str, compression: int) -> IO[bytes]:
        about = zipfile.ZipInfo(name, self._started[:6])
        about.compress_type = compression
        about.external_attr = 0o644 << 16
        return self._zip.open(about, "w", force_zip64=True)

    @contextmanager
    def _member(self, name: str, compression: int = zipfile.ZIP_DEFLATED) -> Iterator[_CountingFile]:
        with self._open_member(name, compression) as member:
            file = _CountingFile(member, name)
            yield file
        self._note_member(name, file)

    def _note_member(self, name: str, file: _CountingFile) -> None:
        self._package_files.append(
            {"name": name.rpartition("/")[2], "path": name, "hash": f"sha256:{file.digest.hexdigest()}"}
            | {"bytes": file.size}
        )

    def _finish_wacz(self) -> None:
        with self._member("indexes/index.cdx.gz", zipfile.ZIP_STORED) as file:
            index = write_blocks(iter(self._sorter), file.write, "index.cdx.gz")
        with self._member("indexes/index.idx") as file:
            file.write(index)
        self._pages.seek(0)
        with self._member("pages/pages.jsonl") as file:
            while block := self._pages.read(_COPY_BYTES):
                file.write(block)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", self._started)
        package = orjson.dumps(
            {
                "profile": "data-package", "wacz_version": "1.1.1", "title": self._prefix, "created": now,
                "software": f"nutch2py {__version__}", "resources": self._package_files,
            },
            option=orjson.OPT_INDENT_2,
        )  # fmt: skip
        digest = {"path": "datapackage.json", "hash": f"sha256:{sha256(package).hexdigest()}"}
        for name, data in (
            ("datapackage.json", package),
            ("datapackage-digest.json", orjson.dumps(digest, option=orjson.OPT_INDENT_2)),
        ):
            with self._open_member(name, zipfile.ZIP_DEFLATED) as member:
                member.write(data)
        self._zip.close()
        (self._target_dir / f".{self._wacz_name}").replace(self._target_dir / self._wacz_name)
        self.files += 1


def _clean_media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()
