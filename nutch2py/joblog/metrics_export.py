"""Metrics at a job's end: a file for node_exporter's textfile collector, a push to a Pushgateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_address
from nutch2py.errors import NutchError
from nutch2py.joblog.crawl_metrics import CONTENT_TYPE, render_exposition
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.joblog.job_log_store import read_entries
from nutch2py.joblog.table_stats import TableStats
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.reporting import warn
from nutch2py.table import DataStore

_PUSH_TIMEOUT = 5.0  # seconds for a push


class _JobLogSource(NamedTuple):
    """The crawl as its job log shows it: the figures are those of the newest job that has some."""

    store: DataStore[DerivedRow]

    def jobs(self, limit: int = 100) -> list[JobEntry]:
        return read_entries(self.store, limit)

    def table_stats(self) -> TableStats | None:
        return next(
            (entry.table_stats for entry in read_entries(self.store, 100) if entry.table_stats is not None), None
        )


def export_metrics(conf: Configuration, store: DataStore[DerivedRow]) -> None:
    """Write and send the metrics where the configuration wants that; what goes wrong is warned of."""
    file, url = conf.get_trimmed("metrics.file"), conf.get_trimmed("metrics.push.url")
    if not (file or url):
        return
    crawl_id = conf.get_trimmed("storage.crawl.id")
    try:
        text = render_exposition(_JobLogSource(store), crawl_id)
    except NutchError as error:
        warn(f"there are no metrics of this job ({error})")
        return
    if file:
        _write_metrics_file(conf.absolute(file), text)
    if url:
        _push_metrics(url, crawl_id, text)


def _write_metrics_file(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")  # its name ends in no .prom: nobody reads it
    try:
        part.write_text(text, encoding="utf-8")
        part.chmod(0o644)  # node_exporter is another user
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        warn(f"the metrics cannot be written to {path} ({error.strerror}): correct metrics.file")


def pushgateway_path(crawl_id: str) -> str:
    """Return the path under which a Pushgateway keeps the metrics of a crawl.

    >>> pushgateway_path("news"), pushgateway_path("")
    ('/metrics/job/nutch2py/crawl/news', '/metrics/job/nutch2py/crawl@base64/=')
    """
    return (
        f"/metrics/job/nutch2py/crawl/{quote(crawl_id, safe='')}"
        if crawl_id
        else ("/metrics/job/nutch2py/crawl@base64/=")
    )


def _push_metrics(url: str, crawl_id: str, text: str) -> None:
    import requests  # costs start-up

    where = f"{url.rstrip('/')}{pushgateway_path(crawl_id)}"
    try:
        answer = requests.put(where, text.encode(), headers={"Content-Type": CONTENT_TYPE}, timeout=_PUSH_TIMEOUT)
        why = "" if answer.ok else f"it answers {answer.status_code}"
    except requests.RequestException as error:
        why = type(error).__name__
    except ValueError as error:  # a URL that is none
        why = type(error).__name__
    if why:
        warn(f"the metrics cannot be sent to {redact_address(url)} ({why}): correct metrics.push.url")
