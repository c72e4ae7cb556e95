"""A crawler that leaks, for tests of the soak: each round keeps 30 MB, an open file and a file for temporary use."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

_ENDED = {"tricks": {"none": {"success": 1}}, "open": [], "lost": [], "good": 1, "rows": 1}
_kept: list[Any] = []


def main() -> None:
    """Answer as :mod:`tests.soak.crawler` does."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        if line.strip() == "end":
            print(json.dumps({"ended": _ENDED, "warned": {}}), flush=True)
            return
        _kept.append(b"x" * (30 << 20))
        _kept.extend(tempfile.NamedTemporaryFile() for _ in range(5))  # noqa: SIM115 - left open
        print(json.dumps({"generated": 1, "fetched": {"SUCCESS": 1}}), flush=True)


if __name__ == "__main__":
    main()
