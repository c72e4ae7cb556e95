"""The process that libFuzzer runs in: ``python -m tests.fuzz.worker TARGET FOLDER OPTIONS…`` of libFuzzer.

Findings that raise are saved and skipped afterwards, so that one run finds many. libFuzzer saves those that end the
process, and the next run continues.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["nutch2py"]):
    from tests.fuzz.running import LONGEST, limited, report, saved, tried
    from tests.fuzz.targets import TARGETS

    name, folder = sys.argv[1], Path(sys.argv[2])
    target = TARGETS[name]
    run = target.make()
    for seed in target.seeds:  # instruments late imports too
        tried(run, target, seed)


def main() -> None:
    """Run until the time is over."""
    known: set[str] = set(filter(None, os.environ.get("FUZZ_KNOWN", "").split("\n")))
    limited()

    def one(data: bytes) -> None:
        wrong = tried(run, target, data[:LONGEST])
        if wrong and wrong not in known:
            known.add(wrong)
            path = saved(folder / "found", data)
            path.with_suffix(".txt").write_text(wrong)
            report(f"{name}: {wrong}: {path}")

    atheris.Setup([sys.argv[0], *sys.argv[3:]], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
