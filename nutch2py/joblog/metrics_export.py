"""Exports metrics at the end of a job: a file for node_exporter's textfile collector, a push to a Pushgateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_address
from nutch2py.errors import NutchError
from nutch2py.joblog.job_entry import JobEntry
from nutch2py.joblog.job_log_store import read_entries
from nutch2py.joblog.table_stats import TableStats
from nutch2py.records.webpage import DerivedRow
from nutch2py.support.reporting import warn
from nutch2py.table import DataStore

_PUSH_TIMEOUT = 5.0  # seconds
_MAX_REASON = 300  # characters of a response in a warning
_READ_BYTES = 4096  # of a rejection


class _JobLogSource(NamedTuple):
    """Metrics source over the job log; the table statistics are those of the newest job that has any."""

    store: DataStore[DerivedRow]

    def jobs(self, limit: int = 100) -> list[JobEntry]:
        return read_entries(self.store, limit)

    def table_stats(self) -> TableStats | None:
        return next(
            (entry.table_stats for entry in read_entries(self.store, 100) if entry.table_stats is not None), None
        )


def export_metrics(conf: Configuration, store: DataStore[DerivedRow]) -> None:
    """Write and push the metrics as configured; errors are warnings."""
    file, url = conf.get_trimmed("metrics.file"), conf.get_trimmed("metrics.push.url")
    if not (file or url):
        return
    from nutch2py.joblog.prometheus_metrics import render_exposition  # slow import

    crawl_id = conf.get_trimmed("storage.crawl.id")
    try:
        text = render_exposition(_JobLogSource(store), crawl_id)
    except NutchError as error:
        warn(f"cannot compute the metrics of this job ({error}): none are exported")
        return
    if file:
        _write_metrics_file(conf.absolute(file), text)
    if url:
        _push_metrics(url, crawl_id, text)


def _write_metrics_file(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # the collector ignores names that do not end in .prom
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(0o644)  # node_exporter is another user
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        warn(f"cannot write the metrics to {path} ({error.strerror}): correct metrics.file")


def pushgateway_path(crawl_id: str) -> str:
    """Return the Pushgateway path (grouping key) of a crawl's metrics.

    >>> pushgateway_path("news"), pushgateway_path("")
    ('/metrics/job/nutch2py/crawl/news', '/metrics/job/nutch2py/crawl@base64/=')
    """
    return (
        f"/metrics/job/nutch2py/crawl/{quote(crawl_id, safe='')}"
        if crawl_id
        else ("/metrics/job/nutch2py/crawl@base64/=")
    )


def _describe_rejection(status: int, text: str) -> str:
    """Return the status and the first line of a Pushgateway's response, which says what it rejects."""
    first_line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"it rejected them with status {status}" + (f": {first_line[:_MAX_REASON]}" if first_line else "")


def _push_metrics(url: str, crawl_id: str, text: str) -> None:
    import requests  # slow import
    from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

    headers = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
    push_url = f"{url.rstrip('/')}{pushgateway_path(crawl_id)}"
    try:
        with requests.put(push_url, text.encode(), headers=headers, timeout=_PUSH_TIMEOUT, stream=True) as response:
            start = b"" if response.ok else next(response.iter_content(_READ_BYTES), b"")
        problem = "" if response.ok else _describe_rejection(response.status_code, start.decode("utf-8", "replace"))
    except requests.RequestException as error:
        problem = type(error).__name__
    except ValueError as error:  # an invalid URL
        problem = type(error).__name__
    if problem:
        warn(f"cannot push the metrics to {redact_address(url)} ({problem}): correct metrics.push.url")
