"""Runs one input of a target, in this process or a separate one."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.inputs import Run
from tests.fuzz.targets import Target

SECONDS = 10.0
"""CPU seconds that one input may take: inputs have at most ``LONGEST`` bytes."""
LONGEST = 16_384
MEMORY = 3 << 30
"""Bytes of address space that a process may have; libFuzzer's tables and an index's files are in it."""
_ROOT = str(Path(__file__).resolve().parent.parent.parent)


def tried(run: Run, target: Target, data: bytes) -> str:
    """Run one input; return the failure, or ""; equal causes give equal messages."""
    start = time.thread_time()
    try:
        run(data)
    except target.answers:
        pass
    except Exception as error:  # noqa: BLE001 - any exception is a finding
        return _cause(error)
    return f"more than {SECONDS:g} s" if time.thread_time() - start > SECONDS else ""


def _cause(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/nutch2py/" in frame.filename] or frames
    return f"{type(error).__name__} at {ours[-1].filename.removeprefix(_ROOT + '/')}:{ours[-1].lineno}"


def limited() -> None:
    """Limit this process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def tried_apart(run: Run, target: Target, data: bytes) -> str:
    """Run one input in a fork of this process, which it may terminate."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(3 * SECONDS))
        os.close(read)
        limited()
        os.write(write, tried(run, target, data).encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGALRM:
        return f"more than {SECONDS:g} s"
    return said if status == 0 else f"the process ended with {status}"


def smaller(data: bytes, still: Callable[[bytes], bool], seconds: float = 60) -> bytes:
    """Remove parts of an input that the finding does not need."""
    ends = time.monotonic() + seconds
    size = max(len(data) // 2, 1)
    while size and time.monotonic() < ends:
        at, shrunk = 0, False
        while at < len(data) and time.monotonic() < ends:
            less = data[:at] + data[at + size :]
            if less and still(less):
                data, shrunk = less, True
            else:
                at += size
        if not shrunk or size > 1:
            size //= 2
    return data


def saved(folder: Path, data: bytes) -> Path:
    """Save an input under a name derived from its bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


_PIECES = (
    b"\0", b"\xff\xff\xff\xff", b"\0\0\0\x80", b"<", b"</", b">", b"&", b"&#x110000;", b"'", b'"', b"{", b"}", b"\\",
    b"(", b"[", b"]", b"<!--", b"<![CDATA[", b"<!DOCTYPE", b"%", b"%00", b"\r\n", b"\n", b"\t", b":", b"//", b"..",
    b"9" * 5000,
    b"-1", b"1e999", b"\xed\xa0\x80", b"\xef\xbf\xbe", "٣".encode(), "İ".encode(), b"\x1b$B",
)  # fmt: skip


def mutations(target: Target, count: int, seed: int = 12) -> Iterator[bytes]:
    """Yield the seeds of a target, then damaged copies of them."""
    yield b""
    yield from target.seeds
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(chance.choice(target.seeds))
        for _ in range(chance.randint(1, 5)):
            at, to = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
            match chance.randrange(6):
                case 0:
                    data[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    del data[at:to]
                case 2:
                    data[at:at] = data[at:to] * chance.choice((1, 1, 3, 50))
                case 3:
                    data[at : at + 4] = struct.pack(
                        chance.choice("<>") + "I", chance.choice((0, 1, 1 << 31, (1 << 32) - 1, len(data)))
                    )
                case 4:
                    other = chance.choice(target.seeds)
                    data[at:to] = other[chance.randrange(len(other) + 1) :]
                case _:
                    data[at:at] = chance.choice(_PIECES)
        yield bytes(data[:LONGEST])


def report(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)
    sys.stdout.flush()
