"""Location of an HBase store, and the settings in ``hbase.*`` properties."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, Self

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.support.retry import service_wait_seconds

DEFAULT_PORT = 9090
_NAMESPACE = re.compile(r"[A-Za-z0-9_]+")
_MAX_FRAME_BYTES = 1_500_000
"""Maximum bytes of a write through a framed transport: gateways accept frames of 2 MiB by default."""


class GatewayAddress(NamedTuple):
    """Host and port of a gateway."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, default_port: int = DEFAULT_PORT) -> Self:
        """Parse ``host``, ``host:port`` or ``[IPv6 address]:port``; raise ``ValueError`` for any other text."""
        match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/\[\]]+))(?::(\d{1,5}))?", text.strip())
        if match is None or not 0 < int(match[3] or default_port) < 65536:
            raise ValueError(text)
        return cls(match[1] or match[2], int(match[3] or default_port))


class HBaseLocation(NamedTuple):
    """A parsed location ``hbase://host[:port][,host[:port]…][/namespace]``."""

    gateways: tuple[GatewayAddress, ...]
    namespace: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a location; raise :class:`ConfigurationError` if it is malformed."""
        hosts, _, namespace = text.removeprefix("hbase:").removeprefix("//").partition("/")
        try:
            gateways = tuple(GatewayAddress.parse(part) for part in hosts.split(",") if part.strip())
        except ValueError as error:
            raise ConfigurationError(
                f"storage.data.store is {text!r}, where {error.args[0]!r} is not a host and port: "
                "write hbase://HOST:PORT[,HOST:PORT…][/NAMESPACE]"
            ) from None
        if not gateways or (namespace and not _NAMESPACE.fullmatch(namespace)):
            raise ConfigurationError(
                f"storage.data.store is {text!r}: write hbase://HOST:PORT[,HOST:PORT…][/NAMESPACE], the namespace "
                "in letters, digits and '_'"
            )
        return cls(gateways, namespace)

    def full_name(self, table: str) -> str:
        """Return the table's name in HBase, with the namespace."""
        return f"{self.namespace}:{table}" if self.namespace and self.namespace != "default" else table


@dataclass(frozen=True)
class HBaseSettings:
    """Values of the ``hbase.*`` properties. Times are in seconds, unlike the properties, which are in milliseconds."""

    transport: str = "buffered"
    protocol: str = "binary"
    tls: bool = False
    tls_ca: str = ""
    timeout: float = 300.0
    connect_timeout: float = 10.0
    max_wait: float = 600.0
    gateway_rest: float = 30.0
    max_idle: float = 20.0
    scan_rows: int = 1000
    scan_bytes: int = 4 << 20
    write_rows: int = 1000
    write_bytes: int = 4 << 20
    max_cell_bytes: int = 10 << 20
    compression: str = ""
    split_keys: tuple[str, ...] = ()
    thrift2_gateways: tuple[GatewayAddress, ...] = ()

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Return the settings in ``conf``."""
        transport = conf.get_trimmed("hbase.thrift.transport", "buffered").lower()
        protocol = conf.get_trimmed("hbase.thrift.protocol", "binary").lower()
        for name, value, allowed in (
            ("hbase.thrift.transport", transport, ("buffered", "framed")),
            ("hbase.thrift.protocol", protocol, ("binary", "compact")),
        ):
            if value not in allowed:
                raise ConfigurationError(f"property {name} is {value!r}: write {allowed[0]} or {allowed[1]}")
        write_bytes = min(
            conf.get_int("hbase.thrift.write.bytes", 4 << 20), conf.get_int("storage.buffer.write.bytes", 32 << 20)
        )
        return cls(
            transport=transport,
            protocol=protocol,
            tls=conf.get_bool("hbase.thrift.ssl.enabled", False),
            tls_ca=str(conf.absolute(ca)) if (ca := conf.get_trimmed("hbase.thrift.ssl.ca.file")) else "",
            timeout=conf.get_int("hbase.thrift.timeout", 300_000) / 1000,
            connect_timeout=conf.get_int("hbase.thrift.connect.timeout", 10_000) / 1000,
            max_wait=service_wait_seconds(conf),
            gateway_rest=conf.get_int("hbase.thrift.gateway.rest", 30_000) / 1000,
            max_idle=conf.get_int("hbase.thrift.idle", 20_000) / 1000,
            scan_rows=max(
                1, min(conf.get_int("hbase.thrift.scan.rows", 1000), conf.get_int("gora.buffer.read.limit", 10_000))
            ),
            scan_bytes=conf.get_int("hbase.thrift.scan.bytes", 4 << 20),
            write_rows=max(
                1, min(conf.get_int("hbase.thrift.write.rows", 1000), conf.get_int("gora.buffer.write.limit", 10_000))
            ),
            write_bytes=max(1, write_bytes if transport == "buffered" else min(write_bytes, _MAX_FRAME_BYTES)),
            max_cell_bytes=conf.get_int("hbase.client.keyvalue.maxsize", 10 << 20),
            compression=conf.get_trimmed("hbase.compression").upper(),
            split_keys=tuple(conf.get_strings("hbase.create.splits")),
            thrift2_gateways=_parse_thrift2_addresses(conf.get_strings("hbase.thrift2.gateways")),
        )


def _parse_thrift2_addresses(texts: list[str]) -> tuple[GatewayAddress, ...]:
    try:
        return tuple(GatewayAddress.parse(text, 9095) for text in texts)
    except ValueError as error:
        raise ConfigurationError(
            f"property hbase.thrift2.gateways holds {error.args[0]!r}, which is not HOST:PORT"
        ) from None
