"""Creates tables with Nutch's families, the site's options and pre-split regions.

The first Thrift interface creates tables with one region only. Pre-split tables and namespaces need the second one
(``hbase thrift2 start``); ``tables.thrift`` has the required part of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TBufferedTransport

from nutch2py.errors import ConfigurationError, StoreError
from nutch2py.support.reporting import print_output
from nutch2py.table.hbase.gora_mapping import ColumnMapping
from nutch2py.table.hbase.thrift_client.gateway_connection import GatewayConnection, make_socket
from nutch2py.table.hbase.thrift_client.hbase_errors import (
    CALL_ERRORS,
    SERVER_ERRORS,
    ErrorCondition,
    error_conditions,
    first_line,
    has_java_exception,
    table_disabled_error,
    to_store_error,
)
from nutch2py.table.hbase.thrift_client.hbase_settings import GatewayAddress, HBaseSettings
from nutch2py.table.hbase.thrift_client.thrift_gateway_pool import ThriftGatewayPool
from nutch2py.table.hbase.thrift_client.thrift_types import AlreadyExists, ColumnDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPORTED_PAUSE = 0.8
"""Poll interval in seconds at which the wait for a table is reported."""
_BLOOM = ("NONE", "ROW", "ROWCOL")
_COMPRESSION = ("NONE", "GZ", "SNAPPY", "LZO", "LZ4", "BZIP2", "ZSTD")


class ColumnFamily(NamedTuple):
    """A column family of a new table; ``time_to_live`` in seconds, -1 for unlimited."""

    name: bytes
    versions: int = 1
    compression: str = "NONE"
    bloom_filter: str = "ROW"
    in_memory: bool = False
    block_cache: bool = True
    time_to_live: int = -1

    def to_shell(self) -> str:
        """Return the family in the syntax of the hbase shell."""
        options = [
            f"NAME => '{self.name.decode()}'",
            f"VERSIONS => {self.versions}",
            f"BLOOMFILTER => '{self.bloom_filter}'",
        ]
        if self.compression != "NONE":
            options.append(f"COMPRESSION => '{self.compression}'")
        if self.time_to_live > 0:
            options.append(f"TTL => {self.time_to_live}")
        if self.in_memory:
            options.append("IN_MEMORY => true")
        return f"{{{', '.join(options)}}}"


def new_table_families(mapping: ColumnMapping, settings: HBaseSettings) -> list[ColumnFamily]:
    """Return the families of a new table: Nutch's (one version, a row Bloom filter), with the site's options.

    ``hbase.compression`` overrides the mapping file.
    """
    found = []
    for name in sorted(mapping.site_families()):
        options = mapping.options.get(name, {})
        try:
            family = ColumnFamily(
                name,
                int(options.get("maxVersions") or 1),
                (settings.compression or options.get("compression") or "NONE").upper(),
                (options.get("bloomFilter") or "ROW").upper(),
                options.get("inMemory", "").lower() == "true",
                options.get("blockCache", "").lower() != "false",
                int(options.get("timeToLive") or -1),
            )
        except ValueError as error:
            raise ConfigurationError(f"gora-hbase-mapping.xml: family {name.decode()}: {error}") from None
        if family.compression not in _COMPRESSION or family.bloom_filter not in _BLOOM:
            raise ConfigurationError(
                f"family {name.decode()}: compression {family.compression}, bloom filter {family.bloom_filter}: set "
                f"hbase.compression to one of {', '.join(_COMPRESSION)}, bloomFilter to one of {', '.join(_BLOOM)}"
            )
        found.append(family)
    return found


def create_table(
    gateways: ThriftGatewayPool, name: bytes, families: Sequence[ColumnFamily], splits: Iterable[bytes] = ()
) -> None:
    """Create the table ``name``; if another process creates it concurrently, wait until it is ready."""
    cuts = sorted({cut for cut in splits if cut})
    namespace = name.partition(b":")[0].decode() if b":" in name else ""
    try:
        if cuts:
            _create_split_table(gateways, name, families, cuts)
        else:
            gateways.call(lambda link: _create_unsplit_table(link, name, families))
    except SERVER_ERRORS as error:
        if has_java_exception(error, "NamespaceNotFoundException"):
            _create_namespace(gateways, namespace)
            create_table(gateways, name, families, cuts)
        elif not (isinstance(error, AlreadyExists) or has_java_exception(error, "TableExistsException")):
            raise _creation_error(error, gateways) from error
        else:
            await_enabled(gateways, name)
    else:
        if cuts:  # the second interface does not report that another process has created it
            await_enabled(gateways, name)


def await_enabled(gateways: ThriftGatewayPool, name: bytes, timeout: float = 60.0) -> None:
    """Wait until the existing table ``name`` is enabled, since another process may still be creating it.

    HBase lists a table before it has regions. Raises StoreError if it is not enabled within ``timeout`` seconds.
    """
    until, pause = time.monotonic() + timeout, 0.05
    while not _is_enabled(gateways, name):
        if time.monotonic() > until:
            raise table_disabled_error(gateways.table, gateways.where)
        if pause == _REPORTED_PAUSE:
            print_output(f"waiting for table {gateways.table}: it is being created, or disabled")
        time.sleep(pause)
        pause *= 2 if pause < 1 else 1


def _is_enabled(gateways: ThriftGatewayPool, name: bytes) -> bool:
    try:
        return bool(gateways.call(lambda link: link.is_table_enabled(name)))
    except SERVER_ERRORS as error:
        if has_java_exception(error, "TableNotFoundException"):  # HBase 2: the table has no state yet
            return False
        raise to_store_error(error, gateways.table, gateways.where) from error


def _create_unsplit_table(link: GatewayConnection, name: bytes, families: Sequence[ColumnFamily]) -> None:
    link.client.createTable(
        name,
        [
            ColumnDescriptor(
                name=family.name + b":",
                maxVersions=family.versions,
                compression=family.compression,
                bloomFilterType=family.bloom_filter,
                inMemory=family.in_memory,
                blockCacheEnabled=family.block_cache,
                timeToLive=family.time_to_live,
            )
            for family in families
        ],
    )


def _creation_error(error: BaseException, gateways: ThriftGatewayPool) -> StoreError:
    message = first_line(error)
    if ErrorCondition.NO_CODEC in error_conditions(error):
        return StoreError(
            f"cannot create table {gateways.table} at {gateways.where}: {message}: set hbase.compression to a codec "
            "that the region servers have (GZ always works)"
        )
    return to_store_error(error, gateways.table, gateways.where)


@lru_cache(maxsize=1)
def _load_thrift2_api() -> Any:
    import thriftpy2

    return thriftpy2.load(str(Path(__file__).with_name("tables.thrift")), module_name="nutch2py_tables_thrift")


@contextmanager
def _thrift2_client(address: GatewayAddress, settings: HBaseSettings) -> Iterator[Any]:
    buffered, binary = cast("tuple[Any, Any]", (TBufferedTransport, TBinaryProtocol))  # thriftpy2 is not typed
    transport = buffered(make_socket(address, settings))
    transport.open()
    try:
        yield TClient(_load_thrift2_api().THBaseService, binary(transport, decode_response=False))
    finally:
        transport.close()


def _call_thrift2(
    gateways: ThriftGatewayPool, purpose: str, shell_command: str, method: str, *arguments: object
) -> None:
    """Call the second interface at one of its gateways; if none responds, the error names an hbase shell command."""
    addresses = gateways.settings.thrift2_gateways
    problem = "hbase.thrift2.gateways is not set"
    for address in addresses:
        try:
            with _thrift2_client(address, gateways.settings) as client:
                getattr(client, method)(*arguments)
                return
        except _load_thrift2_api().TIOError as error:
            if has_java_exception(error, "TableExistsException", "NamespaceExistException"):
                return
            if has_java_exception(error, "NamespaceNotFoundException"):
                raise
            raise _creation_error(error, gateways) from error
        except CALL_ERRORS as error:
            problem = f"{address} does not respond ({first_line(error)})"
    raise StoreError(
        f"{purpose} needs a gateway of HBase's second Thrift interface, and {problem}: start one (hbase thrift2 start) "
        f"and name it in hbase.thrift2.gateways, or run in the hbase shell  {shell_command}"
    )


def _create_split_table(
    gateways: ThriftGatewayPool, name: bytes, families: Sequence[ColumnFamily], cuts: Sequence[bytes]
) -> None:
    api = _load_thrift2_api()
    namespace, _, qualifier = name.rpartition(b":")
    descriptor = api.TTableDescriptor(
        tableName=api.TTableName(ns=namespace or b"default", qualifier=qualifier),
        columns=[
            api.TColumnFamilyDescriptor(
                name=family.name,
                maxVersions=family.versions,
                compressionType=getattr(api.TCompressionAlgorithm, family.compression),
                bloomnFilterType=getattr(api.TBloomFilterType, family.bloom_filter),
                inMemory=family.in_memory,
                blockCacheEnabled=family.block_cache,
                timeToLive=family.time_to_live if family.time_to_live > 0 else None,
            )
            for family in families
        ],
    )
    shell = ", ".join(
        [
            f"create '{name.decode()}'",
            *(family.to_shell() for family in families),
            f"SPLITS => [{', '.join(_shell_key(cut) for cut in cuts)}]",
        ]
    )
    try:
        _call_thrift2(gateways, "a table with split regions", shell, "createTable", descriptor, list(cuts))
    except api.TIOError:  # the namespace is missing
        _create_namespace(gateways, namespace.decode())
        _call_thrift2(gateways, "a table with split regions", shell, "createTable", descriptor, list(cuts))


def _create_namespace(gateways: ThriftGatewayPool, namespace: str) -> None:
    descriptor = _load_thrift2_api().TNamespaceDescriptor(name=namespace)
    purpose = f"creating the namespace {namespace}"
    _call_thrift2(gateways, purpose, f"create_namespace '{namespace}'", "createNamespace", descriptor)


def _shell_key(key: bytes) -> str:
    """Return a key as a double-quoted string of the hbase shell."""
    printable = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\#' else f"\\x{b:02X}" for b in key)
    return f'"{printable}"'
