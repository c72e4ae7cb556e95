"""Connection to one gateway: happybase's, with larger buffers, a connect timeout, TLS, keepalive and a byte count."""

from __future__ import annotations

import os
import socket
import ssl
import time
from typing import Any, cast

from thriftpy2.thrift import TClient
from thriftpy2.transport import TSocket, TSSLSocket, create_thriftpy_context

from nutch2py.errors import ConfigurationError
from nutch2py.table.hbase.thrift_client.hbase_settings import GatewayAddress, HBaseSettings
from nutch2py.table.hbase.thrift_client.thrift_types import HappyBaseConnection, Hbase
from nutch2py.table.hbase.thrift_client.wire import RowMutations, batch_mutations, binary_message

_MAX_READ_BYTES = 96 << 10
_BUFFER_BYTES = 1 << 16


_KEEPALIVE_OPTIONS = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""TCP keepalive options (s, s, probes, ms), where supported: a dead machine is detected within a minute."""


class _KeepaliveMixin:
    """Enable TCP keepalive, count the bytes received, and limit a read to 96 KiB.

    A live gateway may take minutes to respond, while a dead machine never does; keepalive tells the two apart. The
    client's buffer may have grown to the size of a large cell, hence the limit.
    """

    received = 0
    sock: socket.socket

    def open(self) -> None:
        super().open()  # type: ignore[misc]
        for name, value in _KEEPALIVE_OPTIONS.items():
            if hasattr(socket, name):
                self.sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def read(self, size: int) -> bytes:
        data: bytes = super().read(min(size, _MAX_READ_BYTES))  # type: ignore[misc]
        self.received += len(data)
        return data


class _Socket(_KeepaliveMixin, TSocket):
    pass


class _SecureSocket(_KeepaliveMixin, TSSLSocket):
    pass


_socket, _secure_socket, _new_context = cast("tuple[Any, Any, Any]", (_Socket, _SecureSocket, create_thriftpy_context))


def make_socket(address: GatewayAddress, settings: HBaseSettings) -> Any:
    """Return an unconnected thriftpy2 socket that counts the bytes received in ``received``."""
    options: dict[str, object] = {
        "socket_family": socket.AF_INET6 if ":" in address.host else socket.AF_INET,
        "socket_timeout": round(settings.timeout * 1000) or None,
        "connect_timeout": round(settings.connect_timeout * 1000) or None,
    }
    if settings.tls:
        return _secure_socket(*address, ssl_context=_tls_context(settings), **options)
    return _socket(*address, **options)


class GatewayConnection(HappyBaseConnection):  # type: ignore[misc]
    """A happybase connection to one gateway, with larger buffers, a connect timeout, TLS, and a byte count."""

    def __init__(self, address: GatewayAddress, settings: HBaseSettings) -> None:
        self.address, self._settings = address, settings
        self.last_used, self.is_new = time.monotonic(), True
        super().__init__(
            address.host,
            address.port,
            timeout=round(settings.timeout * 1000) or None,
            transport=settings.transport,
            protocol=settings.protocol,
        )

    def _refresh_thrift_client(self) -> None:
        self.socket = make_socket(self.address, self._settings)
        buffers = (_BUFFER_BYTES,) if self._settings.transport == "buffered" else ()
        self.transport = self._transport_class(self.socket, *buffers)
        self.client = TClient(Hbase, self._protocol_class(self.transport, decode_response=False))

    def detach(self) -> None:
        """Close the inherited socket of a parent's connection without closing the connection itself."""
        if self.socket.sock is not None:
            os.close(self.socket.sock.detach())
            self.socket.sock = None

    def send_rows(self, table: bytes, timestamp: int, rows: RowMutations) -> None:
        """Send ``mutateRowsTs``; the caller receives the response with ``client._recv``."""
        if self._settings.protocol == "binary":
            message = binary_message(table, timestamp, rows)
            if self._settings.transport == "buffered":  # the buffer is empty between two calls
                self.socket.write(message)
            else:
                self.transport.write(message)
                self.transport.flush()
        else:
            batches = batch_mutations(rows)
            self.client._send("mutateRowsTs", tableName=table, rowBatches=batches, timestamp=timestamp, attributes={})


def _tls_context(settings: HBaseSettings) -> ssl.SSLContext:
    context: ssl.SSLContext = _new_context(server_side=False)
    try:
        if settings.tls_ca:
            context.load_verify_locations(cafile=settings.tls_ca)
        else:
            context.load_default_certs()
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"property hbase.thrift.ssl.ca.file names {settings.tls_ca}, which cannot be read as certificates ({error})"
        ) from error
    context.verify_mode, context.check_hostname = ssl.CERT_REQUIRED, True
    return context
