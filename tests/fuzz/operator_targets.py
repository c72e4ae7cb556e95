"""Fuzz targets for operators' files and user input: cells, seeds, configuration, queries, requests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tempfile
import threading
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, InputError
from nutch2py.records.cells import CellError
from tests.fuzz.inputs import Run, conf, pieces, text


def cells() -> Run:
    from nutch2py.records.cells import decode_parse_status, decode_protocol_status
    from nutch2py.records.record import MapField
    from nutch2py.records.webpage import Host, WebPage
    from nutch2py.table.table_import import decode_row

    def run(data: bytes) -> None:
        for decode in (decode_parse_status, decode_protocol_status):
            with contextlib.suppress(CellError):
                decode(data)
        for kind in (WebPage, Host):
            for field in kind.FIELDS.values():
                cells = {field.family: {data[:8] if isinstance(field, MapField) else field.qualifier: data[8:]}}
                with contextlib.suppress(CellError):
                    value = getattr(kind(cells), field.attribute)
                    if isinstance(field, MapField):
                        list(value.items())
        with contextlib.suppress(ValueError):
            decode_row(data, lambda _: None)

    return run


def seeds() -> Run:
    from nutch2py.jobs.inject.seeds import parse_seed_line

    def run(data: bytes) -> None:
        for line in data.decode("utf-8", "surrogateescape").splitlines():
            parse_seed_line(line)

    return run


def xml_conf() -> Run:
    folder, defaults = Path(tempfile.mkdtemp(prefix="fuzz-conf-")), Configuration.load()

    def run(data: bytes) -> None:
        (folder / "nutch-site.xml").write_bytes(data)
        made = defaults.copy()
        made.conf_dirs = [folder]
        made.add_file(folder / "nutch-site.xml")
        made.unknown_properties()
        for name in [*made][:50]:
            made.get(name)
            made.get_redacted(name)
        for name in ("fetcher.threads.fetch", "http.timeout", "a"):
            with contextlib.suppress(ConfigurationError):
                made.get_int(name)
            with contextlib.suppress(ConfigurationError):
                made.get_float(name)
            with contextlib.suppress(ConfigurationError):
                made.get_bool(name)
        made.resource_xml("nutch-site.xml")

    return run


def _filled() -> Configuration:
    """Return a configuration with a table and an index of a few pages."""
    from tests.server.conftest import fill

    folder = tempfile.mkdtemp(prefix="fuzz-index-")
    made = conf(
        storage_embedded_path=f"{folder}/table",
        index_embedded_path=f"{folder}/index",
        storage_embedded_map_size=str(1 << 26),
    )
    fill(made)
    return made


def search() -> Run:
    from nutch2py.search.query.query_language import parse_query
    from nutch2py.search.query.query_plan import SearchOptions
    from nutch2py.search.search_backends import open_search_backend

    index = open_search_backend(_filled())

    def run(data: bytes) -> None:
        query, key = (text(piece)[:1000] for piece in pieces(data, 2))
        parse_query(query)
        with contextlib.suppress(InputError):
            index.search(query, 0, 5, SearchOptions.from_filters({"host": key} if key else {}), with_facets=True)
        with contextlib.suppress(InputError):
            index.explain(query, key or "org.a:http/zh")
        with contextlib.suppress(InputError):
            index.correct_query(query)

    return run


def server() -> Run:
    from uvicorn.server import ServerState

    from nutch2py.server.app import create_app
    from nutch2py.server.connection_limits import ConnectionLimitingProtocol, uvicorn_config

    config = uvicorn_config(create_app(_filled()))
    config.load()

    async def answered(ours: socket.socket) -> None:
        state = ServerState()
        made = ConnectionLimitingProtocol(config, state, {})
        await asyncio.get_running_loop().connect_accepted_socket(lambda: made, ours)
        while state.connections or state.tasks:
            await asyncio.sleep(0)

    def run(data: bytes) -> None:
        ours, theirs = socket.socketpair()
        reader = threading.Thread(target=_drain, args=(theirs,))
        with theirs:
            theirs.sendall(data[:60_000])
            theirs.shutdown(socket.SHUT_WR)
            reader.start()
            try:
                asyncio.run(answered(ours))
            finally:
                ours.close()
                reader.join()

    return run


def _drain(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(65536):
            pass
