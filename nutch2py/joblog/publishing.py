"""Metrics at a job's end: a file for node_exporter's textfile collector, a push to a Pushgateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from nutch2py.conf import Configuration
from nutch2py.errors import NutchError
from nutch2py.joblog.entry import JobEntry
from nutch2py.joblog.figures import Figures
from nutch2py.joblog.metrics import CONTENT_TYPE, exposition
from nutch2py.joblog.stored import read_entries
from nutch2py.reporting import warn
from nutch2py.secrets import shown_address
from nutch2py.table import DataStore
from nutch2py.webpage import BatchEntry

_PATIENCE = 5.0  # seconds for a push


class _Log(NamedTuple):
    """The crawl as its job log shows it: the figures are those of the newest job that has some."""

    store: DataStore[BatchEntry]

    def jobs(self, limit: int = 100) -> list[JobEntry]:
        return read_entries(self.store, limit)

    def figures(self) -> Figures | None:
        return next((entry.figures for entry in read_entries(self.store, 100) if entry.figures is not None), None)


def publish(conf: Configuration, store: DataStore[BatchEntry]) -> None:
    """Write and send the metrics where the configuration wants that; what goes wrong is warned of."""
    file, url = conf.get_trimmed("metrics.file"), conf.get_trimmed("metrics.push.url")
    if not (file or url):
        return
    crawl_id = conf.get_trimmed("storage.crawl.id")
    try:
        text = exposition(_Log(store), crawl_id)
    except NutchError as error:
        warn(f"there are no metrics of this job ({error})")
        return
    if file:
        _write(conf.absolute(file), text)
    if url:
        _push(url, crawl_id, text)


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")  # its name ends in no .prom: nobody reads it
    try:
        part.write_text(text, encoding="utf-8")
        part.chmod(0o644)  # node_exporter is another user
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        warn(f"the metrics cannot be written to {path} ({error.strerror}): correct metrics.file")


def grouping(crawl_id: str) -> str:
    """Return the path under which a Pushgateway keeps the metrics of a crawl.

    >>> grouping("news"), grouping("")
    ('/metrics/job/nutch2py/crawl/news', '/metrics/job/nutch2py/crawl@base64/=')
    """
    return (
        f"/metrics/job/nutch2py/crawl/{quote(crawl_id, safe='')}"
        if crawl_id
        else ("/metrics/job/nutch2py/crawl@base64/=")
    )


def _push(url: str, crawl_id: str, text: str) -> None:
    import requests  # costs start-up

    where = f"{url.rstrip('/')}{grouping(crawl_id)}"
    try:
        answer = requests.put(where, text.encode(), headers={"Content-Type": CONTENT_TYPE}, timeout=_PATIENCE)
        why = "" if answer.ok else f"it answers {answer.status_code}"
    except requests.RequestException as error:
        why = type(error).__name__
    except ValueError as error:  # a URL that is none
        why = type(error).__name__
    if why:
        warn(f"the metrics cannot be sent to {shown_address(url)} ({why}): correct metrics.push.url")
