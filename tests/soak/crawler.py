"""The process that crawls: one :class:`nutch2py.Crawl`, used round after round, in which what leaks adds up.

    python -m tests.soak.crawler FILE

The file is JSON: ``store``, ``properties``, ``seeds``, ``batch`` (pages of a round), ``web``. For each line of standard
input the process does what it says (``round``, ``end``) and answers with a line of JSON: it rests when it has answered.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nutch2py import Crawl
from nutch2py.crawl_reader import CrawlReader
from nutch2py.records.webpage import CrawlStatus, Mark, ParseStatusCode, ProtocolStatusCode, WebPage
from tests.soak.web import Web

_AGAIN = 5  # one of this number of rounds also fetches pages due in a month: the same pages again
_FIELDS = frozenset({WebPage.status, WebPage.markers, WebPage.protocol_status, WebPage.parse_status})


def main() -> None:
    """Inject, then do a round for each line that requests one."""
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    warned: Counter[str] = Counter()
    crawl = Crawl(asked["store"], asked["properties"], on_warning=lambda text: warned.update([text[:60]]))
    with crawl:
        crawl.inject(asked["seeds"])
        _say({"ready": True})
        for number, line in enumerate(sys.stdin, 1):
            if line.strip() == "end":
                _say({"ended": endings(crawl, Web.of(asked["web"])), "warned": dict(warned.most_common(20))})
                return
            _say(_round(crawl, number, asked["batch"]))


def _round(crawl: Crawl, number: int, pages: int) -> dict[str, Any]:
    """Do one round; return the counters of its jobs."""
    add_days = 40 if number % _AGAIN == 0 else 0
    made = crawl.generate(top_n=pages, add_days=add_days)
    if not made.urls:
        raise SystemExit("the web has come to its end: take more hosts (--hosts)")
    fetched = crawl.fetch(made.batch_id)
    parsed = crawl.parse(made.batch_id)
    updated = crawl.updatedb(made.batch_id)
    indexed = crawl.index(made.batch_id)
    found = crawl.search("kalo").total
    return {
        "generated": made.urls,
        "fetched": fetched.group("FetcherStatus"),
        "parsed": parsed.group("ParserStatus"),
        "updated": updated.group("updatedb"),
        "indexed": indexed.group("IndexerStatus"),
        "found": found,
    }


def endings(crawl: CrawlReader, web: Web) -> dict[str, Any]:
    """Return how the rows of the crawl have ended.

    ``tricks``: how often each trick ended with which status; ``open``: URLs that were to be fetched and have no status;
    ``lost``: honest pages that were requested and are missing; ``good``: those that exist; ``rows``: all.
    """
    ended: dict[str, Counter[str]] = {}
    still_open, lost, good, rows = [], [], 0, 0
    for url, page in crawl.pages(fields=_FIELDS):
        rows += 1
        status = page.protocol_status
        if status is None:
            if page.markers.get(Mark.GENERATE) is not None:
                still_open.append(url)
            continue
        parts = urlsplit(url)
        trick = web.found(parts.hostname or "")[1]
        if trick is not None:
            ended.setdefault(trick.name, Counter())[_label(page)] += 1
        elif parts.hostname and web.is_good(parts.hostname, parts.path):
            if page.status in (CrawlStatus.FETCHED, CrawlStatus.NOTMODIFIED) and page.parse_status is not None:
                good += 1
            else:
                lost.append(f"{url} {_label(page)} {' '.join(status.args)}")
    return {"tricks": ended, "open": still_open, "lost": lost, "good": good, "rows": rows}


def _label(page: WebPage) -> str:
    fetched, parsed = page.protocol_status, page.parse_status
    assert fetched is not None
    label = ProtocolStatusCode(fetched.code).name.lower()
    if parsed is not None and label == "success":
        label = f"parse {ParseStatusCode(parsed.major).name.lower()}"
        if parsed.major == ParseStatusCode.FAILED:
            label += f" {parsed.minor}"
    return label


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
