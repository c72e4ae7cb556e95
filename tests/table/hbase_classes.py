"""Exception classes in HBase's own jars that extend DoNotRetryIOException.

``python -m tests.table.hbase_classes`` writes hbase_exceptions.txt from the jars that scripts/services has fetched.
"""

from __future__ import annotations

import re
import struct
import zipfile
from pathlib import Path

JARS = Path(__file__).resolve().parents[2] / ".cache" / "services" / "hbase" / "lib"
LIST = Path(__file__).with_name("hbase_exceptions.txt")
_ROOT, _UTF8, _CLASS, _WIDE = "org/apache/hadoop/hbase/DoNotRetryIOException", 1, 7, (5, 6)
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of a constant after its tag (JVM specification, 4.4)."""


def _class_and_parent(data: bytes) -> tuple[str, str]:
    """Return the names that a class file gives itself and the class that it extends ("" for none)."""
    count, at, number = struct.unpack_from(">H", data, 8)[0], 10, 1
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    while number < count:
        tag = data[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", data, at + 1)
            texts[number] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            if tag == _CLASS:
                (classes[number],) = struct.unpack_from(">H", data, at + 1)
            at += 1 + _SIZES[tag]
            number += tag in _WIDE
        number += 1
    this, parent = struct.unpack_from(">HH", data, at + 2)
    return texts[classes[this]], texts[classes[parent]] if parent else ""


def of_jars(folder: Path = JARS) -> list[str]:
    """Return the names of DoNotRetryIOException and of all that extend it, in order."""
    parents: dict[str, str] = {}
    for jar in folder.glob("hbase-*.jar"):
        with zipfile.ZipFile(jar) as archive:
            names = [name for name in archive.namelist() if re.match(r"org/apache/hadoop/hbase/.*\.class$", name)]
            parents.update(_class_and_parent(archive.read(name)) for name in names)

    def extends_it(name: str) -> bool:
        while name and name != _ROOT:
            name = parents.get(name, "")
        return bool(name)

    return sorted(filter(extends_it, parents))


def simple(name: str) -> str:
    """Return the last part of a class's name."""
    return re.split(r"[/$]", name)[-1]


if __name__ == "__main__":
    version = next(path.stem.removeprefix("hbase-client-") for path in JARS.glob("hbase-client-*.jar"))
    lines = [f"# HBase {version}: its DoNotRetryIOException and what extends it, by its jars", *of_jars()]
    LIST.write_text("\n".join(lines) + "\n")
