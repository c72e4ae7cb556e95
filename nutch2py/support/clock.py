"""The machine's time in milliseconds, the unit of Nutch's time fields."""

from __future__ import annotations

import time

MS_PER_DAY = 86_400_000


def now_ms() -> int:
    """Return the machine's time in milliseconds since 1970 (UTC)."""
    return int(time.time() * 1000)
