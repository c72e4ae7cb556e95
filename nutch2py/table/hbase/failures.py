"""What an exception of the Thrift client means: whether trying again can help, and what to tell the user."""

from __future__ import annotations

from thriftpy2.thrift import TApplicationException, TException
from thriftpy2.transport import TTransportException

from nutch2py.errors import StoreError
from nutch2py.table.hbase.interface import AlreadyExists, HBaseError, IllegalArgument

ANSWERS = (HBaseError, IllegalArgument, AlreadyExists)
"""Errors that came as a proper answer: the connection is as good as before. After any other its next answer could
belong to another question, so it must not be used again."""
FAILURES = (TException, OSError, EOFError)
"""Everything that a call can raise, ``ANSWERS`` included."""

_HOPELESS = (
    "TableNotFoundException",
    "NoSuchColumnFamilyException",
    "TableNotEnabledException",
    "AccessDeniedException",
    "NamespaceNotFoundException",
    "DoNotRetryIOException",
    "IllegalArgumentException",
    "UnsupportedOperationException",
)
_PASSING = (
    "UnknownScannerException",
    "OutOfOrderScannerNextException",
    "ScannerResetException",
    "hconnection-",  # "… closed": gateways end a connection that was in use for long; the next call makes a new one
)
"""Said in one message with one of the former, they mean a scanner or a connection that is gone."""


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


def says(error: BaseException, *exceptions: str) -> bool:
    """Tell whether the server's message names one of these Java exceptions."""
    message = message_of(error)
    return any(name in message for name in exceptions)


def gateway_lost(error: BaseException) -> bool:
    """Tell whether the gateway itself did not answer."""
    return not isinstance(error, (*ANSWERS, TApplicationException))


def hopeless(error: BaseException) -> bool:
    """Tell whether the same call would fail in the same way for ever."""
    if isinstance(error, AlreadyExists):
        return True
    return isinstance(error, ANSWERS) and says(error, *_HOPELESS) and not says(error, *_PASSING)


def explained(error: BaseException, table: str, where: str) -> StoreError:
    """Return the error for the user: cause and repair in one line."""
    told = first_line(error)
    if says(error, "TableNotFoundException"):
        return no_table(table, where)
    if says(error, "TableNotEnabledException"):
        return StoreError(f"table {table} at {where} is disabled: run  enable '{table}'  in the hbase shell")
    if says(error, "AccessDeniedException"):
        return StoreError(f"table {table} at {where}: access denied ({told}): grant the gateway's user read and write")
    if gateway_lost(error):
        return StoreError(
            f"no HBase Thrift gateway answers at {where} ({told}): start one (hbase thrift start, or scripts/services "
            "start hbase), or correct storage.data.store, hbase.thrift.transport and hbase.thrift.protocol"
        )
    return StoreError(f"table {table} at {where}: HBase answered: {told}; its log says more")


def no_table(table: str, where: str) -> StoreError:
    """Return the error for a table that does not exist."""
    return StoreError(
        f"there is no table {table} at {where}: inject seeds first, or correct storage.data.store or -crawlId"
    )
