"""``python -m tests.site.hostile [--port N] [--table]``: serve the tricks and print the seed list.

The list consists of comments, which ``inject`` ignores, and seeds: it can be injected unchanged.
"""

from __future__ import annotations

import argparse
import contextlib
import threading

from tests.site.hostile.server import TRICKS, HostileServer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.site.hostile", description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8899, help="the port of all addresses; 0: a free one")
    parser.add_argument(
        "--sitemaps", action="store_true", help="print the sitemaps, for inject -sitemap, in place of pages"
    )
    parser.add_argument("--table", action="store_true", help="print what each trick must end as, and serve nothing")
    asked = parser.parse_args()
    if asked.table:
        for trick in TRICKS:
            print(f"{trick.name:26} {trick.fetched or 'left due':26} {trick.parsed or '-':22} {trick.what}")
        return
    with contextlib.suppress(KeyboardInterrupt), HostileServer(port=asked.port) as server:
        for trick, seed in zip(TRICKS, server.seeds(), strict=True):
            print(f"# {trick.what}\n{seed}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
