"""Stores the job log in the derived table: one row per job, newest first.

The key is ``job/`` and the entry's id with every hexadecimal digit replaced by its complement to 15. So a scan returns
the newest entries first and stops after the requested number. Only its own job writes a row; reads need no lock. A dead
job cannot log its end, so readers check whether jobs in state ``running`` are alive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from nutch2py.errors import InputError, StoreError
from nutch2py.joblog.job_entry import JobEntry, JobState, StoredJobEntry
from nutch2py.joblog.job_liveness import is_dead
from nutch2py.joblog.stored_json import decode_stored, rename_counters
from nutch2py.mapreduce.lock_check import LOCKS_KEY, decode_holders
from nutch2py.records.webpage import DerivedRow
from nutch2py.table import DataStore, KeyRange, TableQuery, prefix_range

KEY_PREFIX = "job/"
_COMPLEMENT = str.maketrans("0123456789abcdef", "fedcba9876543210")
_ENTRY_ID = re.compile(r"[0-9]{13}-[0-9a-f]{6}")
_DATA = frozenset({DerivedRow.data})


def entry_key(entry_id: str) -> str:
    """Return the row key of an entry.

    >>> entry_key("0000000000009-00000a") < entry_key("0000000000008-00000b")
    True
    """
    return KEY_PREFIX + entry_id.translate(_COMPLEMENT)


def encode_entry(stored: StoredJobEntry) -> DerivedRow:
    """Return the row of an entry."""
    row = DerivedRow()
    row.data = msgspec.json.encode(stored)
    return row


def _decode_entry(key: str, row: DerivedRow | None) -> StoredJobEntry | None:
    """Return the decoded row; None for a row that another program or a later version wrote."""
    stored = decode_stored((row.data if row is not None else None) or b"", StoredJobEntry)
    if stored is None or entry_key(stored.entry.id) != key:
        return None
    counters = rename_counters(stored.entry.counters)
    if counters is stored.entry.counters:
        return stored
    return msgspec.structs.replace(stored, entry=replace(stored.entry, counters=counters))


def read_entries(store: DataStore[DerivedRow], limit: int, before: str | None = None) -> list[JobEntry]:
    """Return up to ``limit`` newest entries; with ``before`` only entries older than that id."""
    if before is not None and not _ENTRY_ID.fullmatch(before):
        raise InputError(f"{before!a} is not the id of a job: nutch2py jobs lists them")
    found: list[StoredJobEntry] = []
    if limit > 0 and store.exists():
        for stored in _scan_entries(store, before):
            found.append(stored)
            if len(found) >= limit:
                break
    return _with_actual_state(store, found)


def read_entry(store: DataStore[DerivedRow], entry_id: str) -> JobEntry | None:
    """Return one entry, or None if it does not exist."""
    stored = _get_entry(store, entry_id) if _ENTRY_ID.fullmatch(entry_id) and store.exists() else None
    return None if stored is None else _with_actual_state(store, [stored])[0]


def _scan_entries(store: DataStore[DerivedRow], before: str | None) -> Iterator[StoredJobEntry]:
    all_entries = prefix_range(KEY_PREFIX)
    key_range = all_entries if before is None else KeyRange(f"{entry_key(before)}\x00", all_entries.stop)
    for key, row in store.scan(TableQuery(_DATA, key_range)):
        stored = _decode_entry(key, row)
        if stored is not None:
            yield stored


def _get_entry(store: DataStore[DerivedRow], entry_id: str) -> StoredJobEntry | None:
    key = entry_key(entry_id)
    return _decode_entry(key, store.get(key, _DATA))


def _with_actual_state(store: DataStore[DerivedRow], found: list[StoredJobEntry]) -> list[JobEntry]:
    """Return the entries; running entries of dead jobs get the state ``killed``."""
    if all(stored.entry.state != JobState.RUNNING for stored in found):
        return [stored.entry for stored in found]
    held_tokens = read_held_tokens(store)
    entries = []
    for stored in found:
        latest = stored
        if is_dead(stored, held_tokens):
            # or it finished after the read: a job logs its end before it releases its lock
            latest = _get_entry(store, stored.entry.id) or stored
        killed = latest.entry.state == JobState.RUNNING and is_dead(latest, held_tokens)
        entries.append(replace(latest.entry, state=JobState.KILLED) if killed else latest.entry)
    return entries


def read_held_tokens(store: DataStore[DerivedRow]) -> frozenset[str] | None:
    """Return the tokens of the held locks; None if the lock row is unreadable."""
    row = store.get(LOCKS_KEY, _DATA)
    try:
        return frozenset(holder.token for holder in decode_holders(row.data if row is not None else None))
    except StoreError:
        return None


def delete_old_entries(store: DataStore[DerivedRow], max_entries: int) -> int:
    """Delete all but the newest ``max_entries`` rows of the log; return the number of deleted rows."""
    old_keys = [key for number, key in enumerate(store.keys(prefix_range(KEY_PREFIX))) if number >= max_entries]
    with store.batch() as batch:
        for key in old_keys:
            batch.delete(key)
    return len(old_keys)
