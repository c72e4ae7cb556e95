"""SolrDeleteDuplicates: keeps the document with the highest boost of those in Solr with the same digest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from nutch2py.backends.servers.server_retry import max_response_bytes
from nutch2py.backends.servers.solr_client import (
    SolrClient,
    SolrRejectedError,
    resolve_solr_addresses,
    solr_credentials,
)
from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_address
from nutch2py.errors import IndexingError
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.support.retry import service_wait_seconds

_DOCUMENTS_PER_REQUEST = 1000
_FIELDS = ("id", "digest", "boost", "tstamp")


def solrdedup(conf: Configuration) -> int:
    """Delete duplicates from every collection of ``solr.server.url`` and commit; return how many were deleted.

    As in Nutch 2 the highest ``boost`` wins, then the newest ``tstamp``. Further ties are random in Nutch 2; here the
    shortest id wins, then the first in alphabetical order. Documents without a digest stay.
    """
    url = conf.get_trimmed("solr.server.url")
    log = JobLogger("SolrDeleteDuplicates", announce=False)
    log.log("starting...")
    log.log(f"Solr url: {redact_address(url)}")
    deleted = 0
    kind, collection = conf.get_trimmed("solr.server.type", "http"), conf.get_trimmed("solr.collection")
    for urls in resolve_solr_addresses(conf, url, kind, collection):
        client = SolrClient(
            urls,
            solr_credentials(conf),
            timeout=conf.get_float("solr.timeout", 120.0),
            max_retry_seconds=service_wait_seconds(conf),
            max_response_bytes=max_response_bytes(conf),
        )
        try:
            deleted += _delete_duplicates(client)
        except SolrRejectedError as error:
            raise IndexingError(
                f"Solr at {client.url} cannot list its duplicates ({error}): its schema needs the fields "
                f"{', '.join(_FIELDS)}; schema/solr has them"
            ) from error
        finally:
            client.close()
    log.log(f"{deleted} documents deleted")
    log.log("done.")
    return deleted


def _delete_duplicates(client: SolrClient) -> int:
    kept: dict[str, tuple[float, str, str]] = {}
    losers: list[str] = []
    deleted = 0
    for document in _iter_documents(client):
        digest = document.get("digest")
        if not digest:
            continue
        this = (float(document.get("boost", 0.0)), str(document.get("tstamp", "")), str(document["id"]))
        best = kept.setdefault(digest, this)
        if best is this:
            continue
        winner, loser = sorted((this, best), key=_sort_key)
        kept[digest] = winner
        losers.append(loser[2])
        if len(losers) >= _DOCUMENTS_PER_REQUEST:
            client.delete(losers)
            deleted, losers = deleted + len(losers), []
    if losers:
        client.delete(losers)
        deleted += len(losers)
    if deleted:
        client.commit()
    return deleted


def _sort_key(document: tuple[float, str, str]) -> tuple[float, float, int, str]:
    """Return a key that sorts the document to keep first."""
    boost, tstamp, document_id = document
    try:
        fetched = datetime.fromisoformat(tstamp).timestamp()
    except ValueError:
        fetched = 0.0
    return -boost, -fetched, len(document_id), document_id


def _iter_documents(client: SolrClient) -> Iterator[dict[str, Any]]:
    """Yield every document's id, digest, boost and tstamp. Deletes are visible after the commit only."""
    mark = "*"
    while True:
        response = client.search(
            "*:*", fl=",".join(_FIELDS), rows=_DOCUMENTS_PER_REQUEST, sort="id asc", cursorMark=mark
        )
        yield from response["response"]["docs"]
        next_mark = response.get("nextCursorMark", mark)
        if next_mark == mark:
            return
        mark = next_mark
