"""Writes WARC files of a fetch (``fetch -warc DIR``): requests and responses, for archives and other tools.

A page produces a ``response`` (or a ``revisit`` after a 304 or for content already in the file), its ``request`` and a
``metadata`` record; a file fetched by another protocol produces a ``resource``. Bodies are those in the row: decoded
and truncated at the limit. As in the archives of Common Crawl, the headers of the encoded body are kept as
``X-Crawler-…``, and ``Content-Length`` is the length of the record's body.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from base64 import b32encode
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from hashlib import sha1
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.fetcher.protocols.fetch_response import FetchResponse
from nutch2py.fetcher.protocols.http_settings import build_user_agent
from nutch2py.fetcher.queues.fetch_queues import FetchItem
from nutch2py.records.webpage import Mark
from nutch2py.support.disk_errors import disk_error_message
from nutch2py.version import __version__

if TYPE_CHECKING:
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

_REMEDY = "choose another directory with -warc or fetcher.warc.dir"
_writer_numbers = itertools.count()
"""Numbers of writers in file names; id() could repeat and overwrite the file of an earlier task."""
_MAX_DIGESTS = 100_000  # digests remembered for revisit records
_REPLACED_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})
_IDENTICAL_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_NOT_MODIFIED_PROFILE = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"


def _build_http_headers(response: FetchResponse) -> StatusAndHeaders:
    from warcio.statusandheaders import StatusAndHeaders

    protocol, _, statusline = response.status_line.strip().decode("latin-1").partition(" ")
    headers = []
    for name, value in response.iter_headers():
        headers.append((f"X-Crawler-{name}" if name.lower() in _REPLACED_HEADERS else name, value))
    headers.append(("Content-Length", str(len(response.content))))
    http_headers = StatusAndHeaders(statusline or str(response.status), headers, protocol=protocol or "HTTP/1.0")
    # keep the bytes: warcio escapes non-ASCII values and fails at such a reason or name
    http_headers.to_ascii_bytes = partial(http_headers.to_bytes, encoding="latin-1")
    return http_headers


def _build_metadata_block(item: FetchItem, response: FetchResponse) -> bytes:
    """Return the fields of a metadata record."""
    fields = [f"fetchTimeMs: {response.elapsed_ms}"]
    batch = item.page.markers.get(Mark.GENERATE)
    if batch:
        fields.append(f"nutch.batchId: {batch}")
    fields += [f"via: {url}" for url in item.redirect_chain[-1:]]
    return "".join(f"{line}\r\n" for line in fields).encode()


def check_warc_dir(warc_dir: str) -> None:
    """Raise ConfigurationError unless a directory is writable or can be created; creates nothing."""
    existing = next(path for path in (Path(warc_dir), *Path(warc_dir).parents) if os.path.lexists(path))
    if not existing.is_dir():
        raise _unwritable_error(warc_dir, f"{existing} is not a directory")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise _unwritable_error(warc_dir, f"this user cannot write to {existing}")


@contextmanager
def _translate_os_errors(folder: Path) -> Iterator[None]:
    """Convert OSError into an error that names the directory; a full disk is a StoreError."""
    try:
        yield
    except OSError as error:
        if (message := disk_error_message(error, f"WARC files in {folder}", _REMEDY)) is not None:
            raise StoreError(message) from error
        raise _unwritable_error(folder, error.strerror) from error


def _unwritable_error(folder: str | Path, reason: str | None) -> ConfigurationError:
    return ConfigurationError(f"WARC files cannot be written to {folder}: {reason}: {_REMEDY}")


class WarcFileWriter:
    """Writes WARC files of about ``fetcher.warc.size`` bytes; for use in a single thread.

    The current file is named ``….open`` until it is full or the fetch finishes.

    Raises:
        ConfigurationError: The directory is not writable.
    """

    def __init__(self, conf: Configuration, warc_dir: str) -> None:
        self._dir = Path(warc_dir)
        self._max_file_size = conf.get_int("fetcher.warc.size", 1_000_000_000)
        self._agent = build_user_agent(conf)
        self._robots_policy = "obey"
        self._file: BinaryIO | None = None
        self._writer: WARCWriter | None = None
        self._path = self._dir
        self._file_count = 0
        self._seen_digests: OrderedDict[str, tuple[str, str]] = OrderedDict()
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime())
        self._prefix = (
            f"nutch2py-{stamp}-{socket.gethostname().partition('.')[0]}-{os.getpid()}-{next(_writer_numbers)}"
        )

    def _open_writer(self) -> WARCWriter:
        if self._writer is not None and self._file is not None:
            if self._file.tell() < self._max_file_size:
                return self._writer
            self.close()
        from warcio.warcwriter import WARCWriter

        name = f"{self._prefix}-{self._file_count:05d}.warc.gz"
        self._file_count += 1
        self._path = self._dir / name
        self._dir.mkdir(parents=True, exist_ok=True)
        self._file = self._path.with_name(name + ".open").open("wb")
        self._writer = WARCWriter(self._file, gzip=True, warc_version="1.1")
        # records are in memory; warcio would leave temporary files to the garbage collector
        self._writer._create_temp_file = BytesIO
        about = {
            "software": f"nutch2py/{__version__}",
            "http-header-user-agent": self._agent,
            "robots": self._robots_policy,
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        }
        self._writer.write_record(self._writer.create_warcinfo_record(name, about))
        self._seen_digests.clear()
        return self._writer

    def write(self, item: FetchItem, response: FetchResponse) -> None:
        """Write the records of a page; a failed request has none."""
        if response.failure is None:
            with _translate_os_errors(self._dir):
                self._write_records(self._open_writer(), item, response)

    def _write_records(self, writer: WARCWriter, item: FetchItem, response: FetchResponse) -> None:
        date = datetime.fromtimestamp(time.time() - response.elapsed_ms / 1000, UTC)
        headers = {"WARC-Date": date.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        if response.ip:
            headers["WARC-IP-Address"] = response.ip
        if not item.url.startswith("http"):
            media_type = response.get_header("Content-Type") or "application/octet-stream"
            record = writer.create_warc_record(
                item.url, "resource", BytesIO(response.content), warc_content_type=media_type, warc_headers_dict=headers
            )
            writer.write_record(record)
            return
        response_record = self._build_response_record(writer, item.url, response, headers)
        writer.write_record(response_record)
        linked_headers = {"WARC-Date": headers["WARC-Date"]}
        linked_headers["WARC-Concurrent-To"] = response_record.rec_headers.get_header("WARC-Record-ID")
        if response.raw_request:
            request_type = "application/http; msgtype=request"
            self._write_concurrent_record(
                writer, item.url, "request", response.raw_request, request_type, linked_headers
            )
        self._write_concurrent_record(
            writer,
            item.url,
            "metadata",
            _build_metadata_block(item, response),
            "application/warc-fields",
            linked_headers,
        )

    def _build_response_record(
        self, writer: WARCWriter, url: str, response: FetchResponse, headers: dict[str, str]
    ) -> Any:
        digest = "sha1:" + b32encode(sha1(response.content, usedforsecurity=False).digest()).decode()
        http = _build_http_headers(response)
        warc_headers = dict(headers)
        if response.truncated:
            warc_headers["WARC-Truncated"] = response.truncated
        if response.status == 304:
            warc_headers["WARC-Profile"] = _NOT_MODIFIED_PROFILE
            return writer.create_warc_record(url, "revisit", http_headers=http, warc_headers_dict=warc_headers)
        original = self._seen_digests.get(digest)
        warc_headers["WARC-Payload-Digest"] = digest
        if original is not None and response.content:
            warc_headers |= {
                "WARC-Profile": _IDENTICAL_PROFILE,
                "WARC-Refers-To-Target-URI": original[0],
                "WARC-Refers-To-Date": original[1],
            }
            return writer.create_warc_record(url, "revisit", http_headers=http, warc_headers_dict=warc_headers)
        self._seen_digests[digest] = url, headers["WARC-Date"]
        if len(self._seen_digests) > _MAX_DIGESTS:
            self._seen_digests.popitem(last=False)
        return writer.create_warc_record(
            url, "response", BytesIO(response.content), http_headers=http, warc_headers_dict=warc_headers
        )

    @staticmethod
    def _write_concurrent_record(
        writer: WARCWriter, url: str, kind: str, block: bytes, media_type: str, headers: dict[str, str]
    ) -> None:
        """Write a record linked to a response."""
        record = writer.create_warc_record(
            url, kind, BytesIO(block), warc_content_type=media_type, warc_headers_dict=dict(headers)
        )
        writer.write_record(record)

    def close(self) -> None:
        """Finish the open file."""
        if self._file is not None:
            file, self._file, self._writer = self._file, None, None
            with _translate_os_errors(self._dir):
                file.close()
                self._path.with_name(self._path.name + ".open").rename(self._path)
