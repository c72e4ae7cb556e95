"""What an exception of the Thrift client means: whether trying again can help, and what to tell the user.

A gateway sends of a Java exception its stack trace as text (``ThriftHBaseServiceHandler.getIOError``). What it is, is
told by the names of the classes in it; ``_CONDITIONS`` is the one place where words of HBase count, since HBase throws
the same class for several things there. Names and words are those of HBase 1.2.6 and 2.6.4.
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
"""Errors that came as a proper answer: the connection is as good as before. After any other its next answer could
belong to another question, so it must not be used again."""
CALL_ERRORS = (TException, OSError, EOFError)
"""Everything that a call can raise, ``ANSWERS`` included."""


class ErrorCondition(Enum):
    """What only HBase's words tell."""

    CONNECTION_CLOSED = auto()
    """A gateway has ended a connection that was in use for long; the next call makes a new one."""
    ZOOKEEPER_UNAVAILABLE = auto()
    """The gateway cannot ask ZooKeeper where the table is: so it is while HBase starts again."""
    SCANNER_GONE = auto()
    """The gateway does not know the scanner (any more)."""
    SCANNER_OUT_OF_ORDER = auto()
    """An answer of the scanner to the gateway was lost."""
    TOO_LARGE = auto()
    """A cell is larger than the gateway (``hbase.client.keyvalue.maxsize``) or a region server takes."""
    NO_CODEC = auto()
    """The compression that a table is to have is not there."""


_CONDITIONS = (
    # HBase 1.2, ConnectionManager.locateRegion; 2.6 has LocalConnectionClosedException for it
    (re.compile(r"DoNotRetryIOException: hconnection-\w+ closed"), ErrorCondition.CONNECTION_CLOSED),
    # 2.6, ReadOnlyZKClient, whose other failures are KeeperExceptions; 1.2 has those only
    (
        re.compile(r"DoNotRetryIOException: Zookeeper \w+ could not be completed in \d+ ms"),
        ErrorCondition.ZOOKEEPER_UNAVAILABLE,
    ),
    # the IllegalArgument of both gateways' own handler, which has no Java class
    (re.compile(r"scanner ID is invalid"), ErrorCondition.SCANNER_GONE),
    # ClientScanner of the gateway
    (
        re.compile(r"DoNotRetryIOException: Failed after retry of OutOfOrderScannerNextException"),
        ErrorCondition.SCANNER_OUT_OF_ORDER,
    ),
    # HTable.validatePut of the gateway; RSRpcServices.checkCellSizeLimit of a region server
    (re.compile(r"IllegalArgumentException: KeyValue size too large"), ErrorCondition.TOO_LARGE),
    (re.compile(r"with size \d+ exceeds limit of \d+ bytes"), ErrorCondition.TOO_LARGE),
    # CompressionTest, the codecs of Hadoop, and a class that is not there
    (re.compile(r"(?i)compression|native|noclassdeffound|codec"), ErrorCondition.NO_CODEC),
)

_STACK_FRAME = re.compile(r"^[ \t]+at .*\n?", re.MULTILINE)

_TRANSIENT = frozenset({
    # the scanner is gone, a new one goes on: regionserver, exceptions, and client (1.2)
    "UnknownScannerException", "OutOfOrderScannerNextException", "ScannerResetException", "LeaseException",
    "ScannerTimeoutException",
    # a connection of the gateway is: client.ConnectionImplementation, ipc
    "LocalConnectionClosedException", "StoppedRpcClientException",
    # servers come and go: exceptions, hbase, client
    "MasterStoppedException", "NotAllMetaRegionsOnlineException", "NoServerForRegionException",
    # there is too much to do: client, ipc, quotas, exceptions (1.2)
    "OperationTimeoutExceededException", "ServerTooBusyException", "ThrottlingException", "LockTimeoutException",
})  # fmt: skip
"""Those of HBase's DoNotRetryIOExceptions that a call after a while does not meet again.

HBase's client does not try such a call again, as its own part of it is over; ours begins anew. They make what is
named beside them in a stack trace pass, too.
"""
_TRANSIENT_CONDITIONS = frozenset(
    {ErrorCondition.CONNECTION_CLOSED, ErrorCondition.ZOOKEEPER_UNAVAILABLE, ErrorCondition.SCANNER_OUT_OF_ORDER}
)

_PERMANENT = frozenset({
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
    # ipc: the gateway and HBase do not understand each other
    "FatalConnectionException", "BadAuthException", "EmptyServiceNameException", "UnknownServiceException",
    "UnsupportedCellCodecException", "UnsupportedCompressionCodecException", "UnsupportedCryptoException",
    "WrongVersionException",
    # of commands that we do not give: master, snapshots, labels, replication
    "MergeRegionException", "HBaseSnapshotException", "CorruptedSnapshotException", "ExportSnapshotException",
    "RestoreSnapshotException", "SnapshotCreationException", "SnapshotDoesNotExistException",
    "SnapshotExistsException", "SnapshotTTLExpiredException", "UnknownSnapshotException",
    "LabelAlreadyExistsException", "ReplicationPeerNotFoundException",
    # java.lang: what was asked for cannot be
    "IllegalArgumentException", "UnsupportedOperationException",
})  # fmt: skip
"""HBase's DoNotRetryIOException and what extends it by its jars, but for those that pass, and two of Java's.

All others are tried again: NotServingRegionException, PleaseHoldException, CallQueueTooBigException,
RegionTooBusyException, RetriesExhaustedException, KeeperException …, which extend IOException or Java's own.
"""


def message_of(error: BaseException) -> str:
    """Return what the server said, its Java stack trace included, or the text of the exception."""
    message = getattr(error, "message", None)
    if isinstance(message, bytes):
        return message.decode("utf-8", "replace")
    return str(message) if message else str(error) or type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of the server's message, at most 300 characters; of a failed connection also its cause."""
    line = message_of(error).partition("\n")[0].strip()
    cause = error.__context__
    if isinstance(error, TTransportException) and isinstance(cause, OSError):
        line = f"{line}: {cause.strerror or cause}"
    return line if len(line) <= 300 else line[:299] + "…"


def has_java_exception(error: BaseException, *exceptions: str) -> bool:
    """Tell whether the server threw one of these Java exceptions, or met it on the way."""
    return not find_java_exceptions(message_of(error)).isdisjoint(exceptions)


def error_conditions(error: BaseException) -> frozenset[ErrorCondition]:
    """Return what the server's words tell beyond the classes; those of the stack's frames do not count."""
    message = _STACK_FRAME.sub("", message_of(error))
    return frozenset(condition for words, condition in _CONDITIONS if words.search(message))


def is_gateway_lost(error: BaseException) -> bool:
    """Tell whether the gateway itself did not answer."""
    return not isinstance(error, (*SERVER_ERRORS, TApplicationException))


def is_permanent(error: BaseException) -> bool:
    """Tell whether the same call would fail in the same way for ever."""
    if isinstance(error, AlreadyExists):
        return True
    if not isinstance(error, SERVER_ERRORS) or not has_java_exception(error, *_PERMANENT):
        return False
    return not has_java_exception(error, *_TRANSIENT) and error_conditions(error).isdisjoint(_TRANSIENT_CONDITIONS)


def to_store_error(error: BaseException, table: str, where: str) -> StoreError:
    """Return the error for the user: cause and repair in one line."""
    told = first_line(error)
    if has_java_exception(error, "TableNotFoundException"):
        return table_missing_error(table, where)
    if has_java_exception(error, "TableNotEnabledException"):
        return table_disabled_error(table, where)
    if has_java_exception(error, "AccessDeniedException"):
        return StoreError(f"table {table} at {where}: access denied ({told}): grant the gateway's user read and write")
    if is_gateway_lost(error):
        return StoreError(
            f"no HBase Thrift gateway answers at {where} ({told}): start one (hbase thrift start, or scripts/services "
            "start hbase), or correct storage.data.store, hbase.thrift.transport and hbase.thrift.protocol"
        )
    return StoreError(f"table {table} at {where}: HBase answered: {told}; its log says more")


def table_disabled_error(table: str, where: str) -> StoreError:
    """Return the error for a table that is there and not enabled."""
    return StoreError(f"table {table} at {where} is disabled: run  enable '{table}'  in the hbase shell")


def table_missing_error(table: str, where: str) -> StoreError:
    """Return the error for a table that does not exist."""
    return StoreError(
        f"there is no table {table} at {where}: inject seeds first, or correct storage.data.store or -crawlId"
    )
