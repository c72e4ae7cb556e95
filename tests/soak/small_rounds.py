"""The process of the soak in one process: one :class:`nutch2py.Crawl` that fetches the same pages in each round.

    python -m tests.soak.small_rounds FILE

It speaks with its driver as :mod:`tests.soak.crawler` does.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Any

from nutch2py import Crawl

_ADD_DAYS = 40
"""Every page is due in each round."""


def main() -> None:
    """Inject, then do a round for each line that requests one."""
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with Crawl(asked["store"], asked["properties"]) as crawl:
        crawl.inject(asked["seeds"])
        _say({"ready": True})
        for line in sys.stdin:
            if line.strip() == "end":
                rows = sum(1 for _ in crawl.pages())
                _say({"ended": {"tricks": {}, "open": [], "lost": [], "good": rows, "rows": rows}, "warned": {}})
                return
            _say(_round(crawl))


def _round(crawl: Crawl) -> dict[str, Any]:
    """Do the five jobs of a round and a search; return their counters."""
    made = crawl.generate(add_days=_ADD_DAYS)
    fetched = crawl.fetch(made.batch_id)
    crawl.parse(made.batch_id)
    crawl.updatedb(made.batch_id)
    indexed = crawl.index(made.batch_id)
    found = crawl.search("kalo").total
    return {
        "generated": made.urls,
        "fetched": fetched.group("FetcherStatus"),
        "indexed": indexed.group("IndexerStatus"),
        "found": found,
        "objects": len(gc.get_objects()),
    }


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
