"""Classifies exceptions of the Thrift client: which are worth a retry, and the message for the user.

A gateway sends the stack trace of a Java exception as text (``ThriftHBaseServiceHandler.getIOError``). The class names
in it determine the error. ``_CONDITIONS`` matches message texts of HBase where it throws the same class for several
conditions. Names and texts are those of HBase 1.2.6 and 2.6.4.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from thriftpy2.thrift import TApplicationException, TException
from thriftpy2.transport import TTransportException

from nutch2py.errors import StoreError
from nutch2py.support.java_exceptions import find_java_exceptions
from nutch2py.table.hbase.thrift_client.thrift_types import AlreadyExists, HBaseError, IllegalArgument

SERVER_ERRORS = (HBaseError, IllegalArgument, AlreadyExists)
"""Errors in a regular response, after which the connection stays usable. After any other error its next response could
belong to another request, so the connection must not be reused."""
CALL_ERRORS = (TException, OSError, EOFError)
"""All errors that a call can raise, including ``SERVER_ERRORS``."""


class ErrorCondition(Enum):
    """Conditions that only the text of HBase's message shows."""

    CONNECTION_CLOSED = auto()
    """The gateway has closed its connection to HBase; the next call opens a new one."""
    ZOOKEEPER_UNAVAILABLE = auto()
    """The gateway cannot locate the table through ZooKeeper, as during a restart of HBase."""
    SCANNER_GONE = auto()
    """The gateway does not know the scanner (any more)."""
    SCANNER_OUT_OF_ORDER = auto()
    """A response of the scanner to the gateway was lost."""
    TOO_LARGE = auto()
    """A cell exceeds the limit of the gateway (``hbase.client.keyvalue.maxsize``) or of a region server."""
    NO_CODEC = auto()
    """The compression codec of a new table is not available."""


_CONDITIONS = (
    # HBase 1.2, ConnectionManager.locateRegion; 2.6 has LocalConnectionClosedException for it
    (re.compile(r"DoNotRetryIOException: hconnection-\w+ closed"), ErrorCondition.CONNECTION_CLOSED),
    # 2.6, ReadOnlyZKClient, whose other failures are KeeperExceptions; 1.2 has those only
    (
        re.compile(r"DoNotRetryIOException: Zookeeper \w+ could not be completed in \d+ ms"),
        ErrorCondition.ZOOKEEPER_UNAVAILABLE,
    ),
    # the IllegalArgument of the gateways' handlers, without a Java class
    (re.compile(r"scanner ID is invalid"), ErrorCondition.SCANNER_GONE),
    # ClientScanner of the gateway
    (
        re.compile(r"DoNotRetryIOException: Failed after retry of OutOfOrderScannerNextException"),
        ErrorCondition.SCANNER_OUT_OF_ORDER,
    ),
    # HTable.validatePut of the gateway; RSRpcServices.checkCellSizeLimit of a region server
    (re.compile(r"IllegalArgumentException: KeyValue size too large"), ErrorCondition.TOO_LARGE),
    (re.compile(r"with size \d+ exceeds limit of \d+ bytes"), ErrorCondition.TOO_LARGE),
    # CompressionTest, the codecs of Hadoop, and a missing class
    (re.compile(r"(?i)compression|native|noclassdeffound|codec"), ErrorCondition.NO_CODEC),
)

_STACK_FRAME = re.compile(r"^[ \t]+at .*\n?", re.MULTILINE)

TRANSIENT = frozenset({
    # the scanner is gone, a new one continues: regionserver, exceptions, and client (1.2)
    "UnknownScannerException", "OutOfOrderScannerNextException", "ScannerResetException", "LeaseException",
    "ScannerTimeoutException",
    # a connection of the gateway is closed: client.ConnectionImplementation, ipc
    "LocalConnectionClosedException", "StoppedRpcClientException",
    # servers restart: exceptions, hbase, client
    "MasterStoppedException", "NotAllMetaRegionsOnlineException", "NoServerForRegionException",
    # overload: client, ipc, quotas, exceptions (1.2)
    "OperationTimeoutExceededException", "ServerTooBusyException", "ThrottlingException", "LockTimeoutException",
})  # fmt: skip
"""Subclasses of HBase's DoNotRetryIOException for transient conditions.

HBase's client does not retry such a call, since its operation has ended; ours starts a new one. They also make other
exceptions in the same stack trace transient.
"""
_TRANSIENT_CONDITIONS = frozenset(
    {ErrorCondition.CONNECTION_CLOSED, ErrorCondition.ZOOKEEPER_UNAVAILABLE, ErrorCondition.SCANNER_OUT_OF_ORDER}
)

PERMANENT = frozenset({
    "DoNotRetryIOException",
    # org.apache.hadoop.hbase
    "TableNotFoundException", "TableNotEnabledException", "TableNotDisabledException", "TableExistsException",
    "NamespaceNotFoundException", "NamespaceExistException", "InvalidFamilyOperationException",
    "UnknownRegionException", "DoNotRetryRegionException", "ConcurrentTableModificationException",
    # regionserver, client, exceptions, io.hfile, constraint, coprocessor
    "NoSuchColumnFamilyException", "RowTooBigException", "FailedSanityCheckException", "RequestTooBigException",
    "UnknownProtocolException", "CorruptHFileException", "ConstraintException", "CoprocessorException",
    # security, quotas
    "AccessDeniedException", "InvalidLabelException", "QuotaExceededException", "SpaceLimitingException",
    # ipc: the gateway and HBase are incompatible
    "FatalConnectionException", "BadAuthException", "EmptyServiceNameException", "UnknownServiceException",
    "UnsupportedCellCodecException", "UnsupportedCompressionCodecException", "UnsupportedCryptoException",
    "WrongVersionException",
    # of operations that are not used here: master, snapshots, labels, replication
    "MergeRegionException", "HBaseSnapshotException", "CorruptedSnapshotException", "ExportSnapshotException",
    "RestoreSnapshotException", "SnapshotCreationException", "SnapshotDoesNotExistException",
    "SnapshotExistsException", "SnapshotTTLExpiredException", "UnknownSnapshotException",
    "LabelAlreadyExistsException", "ReplicationPeerNotFoundException",
    # java.lang: invalid requests
    "IllegalArgumentException", "UnsupportedOperationException",
})  # fmt: skip
"""HBase's DoNotRetryIOException and its subclasses in HBase's jars, without the transient ones, and two of Java's.

All others are retried: NotServingRegionException, PleaseHoldException, CallQueueTooBigException,
RegionTooBusyException, RetriesExhaustedException, KeeperException …, which extend IOException or Java's classes.
"""


def message_of(error: BaseException) -> str:
    """Return the server's message including its Java stack trace, or the text of the exception."""
    message = getattr(error, "message", None)
    if isinstance(message, bytes):
        return message.decode("utf-8", "replace")
    return str(message) if message else str(error) or type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of the server's message, at most 300 characters; for connections with the cause."""
    line = message_of(error).partition("\n")[0].strip()
    cause = error.__context__
    if isinstance(error, TTransportException) and isinstance(cause, OSError):
        line = f"{line}: {cause.strerror or cause}"
    return line if len(line) <= 300 else line[:299] + "…"


def has_java_exception(error: BaseException, *exceptions: str) -> bool:
    """Return whether one of these Java exceptions, or a cause of it, is in the server's message."""
    return not find_java_exceptions(message_of(error)).isdisjoint(exceptions)


def error_conditions(error: BaseException) -> frozenset[ErrorCondition]:
    """Return the conditions in the text of the server's message, without its stack frames."""
    message = _STACK_FRAME.sub("", message_of(error))
    return frozenset(condition for words, condition in _CONDITIONS if words.search(message))


def is_gateway_lost(error: BaseException) -> bool:
    """Return whether the gateway did not respond."""
    return not isinstance(error, (*SERVER_ERRORS, TApplicationException))


def is_permanent(error: BaseException) -> bool:
    """Return whether a retry of the call would fail in the same way."""
    if isinstance(error, AlreadyExists):
        return True
    if not isinstance(error, SERVER_ERRORS) or not has_java_exception(error, *PERMANENT):
        return False
    return not has_java_exception(error, *TRANSIENT) and error_conditions(error).isdisjoint(_TRANSIENT_CONDITIONS)


def to_store_error(error: BaseException, table: str, where: str) -> StoreError:
    """Return the error for the user, with cause and remedy in one line."""
    message = first_line(error)
    if has_java_exception(error, "TableNotFoundException"):
        return table_missing_error(table, where)
    if has_java_exception(error, "TableNotEnabledException"):
        return table_disabled_error(table, where)
    if has_java_exception(error, "AccessDeniedException"):
        return StoreError(
            f"table {table} at {where}: access denied ({message}): grant the gateway's user read and write"
        )
    if is_gateway_lost(error):
        return StoreError(
            f"no HBase Thrift gateway responds at {where} ({message}): start one (hbase thrift start, or "
            "scripts/services start hbase), or correct storage.data.store, hbase.thrift.transport and "
            "hbase.thrift.protocol"
        )
    return StoreError(f"table {table} at {where}: HBase failed: {message}; see its log")


def table_disabled_error(table: str, where: str) -> StoreError:
    """Return the error for a disabled table."""
    return StoreError(f"table {table} at {where} is disabled: run  enable '{table}'  in the hbase shell")


def table_missing_error(table: str, where: str) -> StoreError:
    """Return the error for a table that does not exist."""
    return StoreError(
        f"there is no table {table} at {where}: run nutch2py crawl or inject first, "
        "or correct storage.data.store or -crawlId"
    )
