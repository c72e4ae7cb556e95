"""ElasticClient: requests to an index of Elasticsearch or OpenSearch, over HTTP as both have it.

The clients of the two refuse each other's servers; what a crawl needs of the interface has been the same since
Elasticsearch 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from nutch2py.backends.servers.server_retry import (
    RequestFailure,
    RequestRejectedError,
    RetryingClient,
    describe_connection_error,
)
from nutch2py.errors import ConfigurationError, IndexingError

T = TypeVar("T")

ELASTIC_SERVER_NAME = "The search server"
"""What messages call Elasticsearch or OpenSearch."""

_CONNECT_SECONDS = 10.0
_MAX_ERROR_TYPES = 32
_DOCUMENT_MISSING = "document_missing_exception"
_INDEX_EXISTS = "resource_already_exists_exception"
_TRANSIENT_STATUSES = (429, 502, 503, 504)
_BULK_PATH = "/_bulk?filter_path=errors,items.*.status,items.*.error"


class BulkAction(NamedTuple):
    """One operation of a bulk: the key of the page, the lines to send, and whether they are a document or a delete."""

    document_id: str
    lines: bytes
    is_document: bool


class RejectedItem(NamedTuple):
    """An operation that the server did not take, and its words."""

    document_id: str
    reason: str


class _ElasticRequestError(Exception):
    """There is no success."""

    def __init__(self, status: int, message: str, error: Any = None) -> None:
        super().__init__(message)
        self.failure = RequestFailure(status, message, _error_types(error))


class ElasticClient:
    """One index, at one or several addresses (``http://HOST:9200``) of a cluster; failures as in :class:`RetryingClient`.

    ``auth``: user name and password. ``ca``: file of the certificates to trust (PEM), "" for those that Python trusts.
    ``timeout``: seconds to wait for an answer. ``patience``, ``first_wait`` (seconds) and ``overloads`` (how often a
    429): see :class:`RetryingClient`. 401 and 403 are an :class:`IndexingError` at once, as is a certificate that is not
    trusted. One object serves one thread.
    """

    def __init__(
        self,
        urls: Sequence[str],
        index: str,
        *,
        auth: tuple[str, str] | None = None,
        ca_file: str = "",
        timeout: float = 120.0,
        max_retry_seconds: float = 600.0,
        first_delay: float = 0.1,
        max_overloads: int = 10,
    ) -> None:
        import requests
        from requests.auth import HTTPBasicAuth

        self.index = index
        self.session = requests.Session()
        self._auth = None if auth is None else HTTPBasicAuth(auth[0].encode(), auth[1].encode())
        self._verify: bool | str = ca_file or True
        self._timeout = (_CONNECT_SECONDS, timeout)
        self._retrying_client = RetryingClient(
            urls,
            ELASTIC_SERVER_NAME,
            "elastic.host",
            max_retry_seconds,
            first_delay=max(0.001, first_delay),
            max_overloads=max_overloads,
        )

    @property
    def url(self) -> str:
        """The address in use, with the index."""
        return f"{self._retrying_client.url}/{self.index}"

    def get_mappings(self) -> dict[str, Any] | None:
        """Return the mapping of each index behind the name, by its own name; None when there is no index."""
        try:
            return self._request("GET", "/_mapping")
        except RequestRejectedError as refusal:
            if refusal.status == 404:
                return None
            raise

    def create_index(self, definition: bytes) -> None:
        """Make the index; one that another process has made meanwhile is kept."""
        try:
            self._request("PUT", "", definition)
        except RequestRejectedError as refusal:
            if _INDEX_EXISTS not in refusal.error_types:
                raise

    def bulk(self, actions: Sequence[BulkAction]) -> list[RejectedItem]:
        """Carry out all operations but those that the server objects to, which are returned.

        Operations that it is too busy for are sent again; a request that it is too busy for in smaller parts.
        :class:`RequestRejectedError` when it objects to a request as a whole, some operations being done then.
        """
        waiting, refused, most = [*actions], list[RejectedItem](), len(actions)

        def send(at: int) -> None:
            nonlocal waiting, most
            while waiting:
                part, rest = waiting[:most], waiting[most:]
                try:
                    answer = self._send(at, "POST", _BULK_PATH, b"".join(action.lines for action in part))
                except _ElasticRequestError as failure:
                    if failure.failure.status == 429:
                        most = max(1, len(part) // 2)
                    raise
                postponed, failed = self._check_bulk_response(part, answer, refused)
                waiting = postponed + rest
                if failed is not None:
                    raise failed

        self._call_with_retry(send)
        return refused

    def _check_bulk_response(
        self, sent: Sequence[BulkAction], response: Mapping[str, Any], rejected: list[RejectedItem]
    ) -> tuple[list[BulkAction], _ElasticRequestError | None]:
        """Return the operations that are to be sent again, and why; note those that are refused."""
        outcomes = [outcome for item in response.get("items", ()) for outcome in item.values()]
        if len(outcomes) != len(sent):
            raise _ElasticRequestError(0, "the answer is not a search server's")
        postponed: list[BulkAction] = []
        failed: _ElasticRequestError | None = None
        for action, outcome in zip(sent, outcomes, strict=True):
            status, error = int(outcome["status"]), outcome.get("error")
            if error is None or _DOCUMENT_MISSING in _error_types(error):
                continue  # done; 404: there was nothing to delete, or to set fields of
            reason = _error_reason(error)
            if status in _TRANSIENT_STATUSES:
                postponed.append(action)
                failed = _ElasticRequestError(status, reason, error)
            elif status in (401, 403, 404):  # a right, a block or the index: no matter which document
                raise IndexingError(
                    f"{ELASTIC_SERVER_NAME} at {self.url} does not let documents in (HTTP {status}): {reason}"
                )
            else:
                rejected.append(RejectedItem(action.document_id, reason))
        return postponed, failed

    def post_json(self, path: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question of the index, such as ``/_search``; :class:`RequestRejectedError` when it is refused."""
        import orjson

        return self._request("POST", path, orjson.dumps(payload))

    def get_field_values(self, ids: Sequence[str], field: str) -> dict[str, float | None]:
        """Return a number of each document that is there, by ``_id``; None of one that has none."""
        asked = {"query": {"ids": {"values": [*ids]}}, "size": len(ids), "_source": False, "docvalue_fields": [field]}
        hits = self.post_json("/_search", asked)["hits"]["hits"]
        return {hit["_id"]: hit.get("fields", {}).get(field, [None])[0] for hit in hits}

    def refresh(self) -> None:
        """Make what was sent searchable."""

        def send(at: int) -> None:
            if self._send(at, "POST", "/_refresh").get("_shards", {}).get("failed"):
                raise _ElasticRequestError(503, "a part of the index cannot be refreshed")

        self._call_with_retry(send)

    def close(self) -> None:
        """Give back the connections."""
        self.session.close()

    def _request(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        return self._call_with_retry(lambda at: self._send(at, method, path, body))

    def _call_with_retry(self, send: Callable[[int], T]) -> T:
        import requests

        return self._retrying_client.call(send, (_ElasticRequestError, requests.RequestException), self._to_failure)

    def _send(self, at: int, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        """Return the JSON object of an answer; _Failure when it is none, or not a success."""
        kind = "application/x-ndjson" if path == _BULK_PATH else "application/json"
        response = self.session.request(
            method,
            f"{self._retrying_client.urls[at]}/{quote(self.index, safe=',')}{path}",
            data=body,
            headers={"Content-Type": kind} if body is not None else {},
            auth=self._auth,
            timeout=self._timeout,
            verify=self._verify,  # each time: an environment's REQUESTS_CA_BUNDLE goes before the session's
            allow_redirects=False,
        )
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if response.status_code >= 300:
            error = answer.get("error") if isinstance(answer, dict) else None
            reason = _error_reason(error) if error else response.reason or "no reason given"
            raise _ElasticRequestError(response.status_code, reason, error)
        if not isinstance(answer, dict):
            raise _ElasticRequestError(0, "the answer is not a search server's")
        return answer

    def _to_failure(self, error: Exception) -> RequestFailure:
        """Return what a failure means; IndexingError when trying again cannot help."""
        import requests

        text = " ".join(str(error).split())[:300]
        if isinstance(error, _ElasticRequestError):
            status = error.failure.status
            if status in (401, 403):
                raise IndexingError(
                    f"{ELASTIC_SERVER_NAME} at {self.url} wants another login (HTTP {status}, {text}): set elastic.username "
                    "and elastic.password"
                ) from error
            return error.failure._replace(message=text)
        if isinstance(error, requests.exceptions.SSLError):
            found = re.search(r"(certificate verify failed[^(]*|\[SSL[^(]*)", text)
            raise IndexingError(
                f"no trusted connection with {self.url} ({found[1].strip() if found else 'TLS'}): name the file of "
                "the server's certificate authority (PEM) in elastic.tls.ca, or correct elastic.scheme"
            ) from error
        hint = ", perhaps because it wants elastic.scheme to be https" if self.url.startswith("http:") else ""
        return RequestFailure(0, describe_connection_error(error) or f"the connection was cut{hint}")


def parse_elastic_addresses(hosts: str, port: int, scheme: str) -> list[str]:
    """Return the addresses in ``elastic.host``: names with or without a port, or whole URLs, kept as they are.

    >>> addresses("a, b:9201 https://c.example/search/", 9200, "http")
    ['http://a:9200', 'http://b:9201', 'https://c.example/search']
    """
    if scheme not in ("http", "https"):
        raise ConfigurationError(f"elastic.scheme is {scheme!r}: write http or https")
    made: list[str] = []
    for entry in filter(None, re.split(r"[,\s]+", hosts)):
        if "@" in entry:  # not shown: a password may be in it
            raise ConfigurationError("elastic.host holds a login: move it to elastic.username and elastic.password")
        try:
            url = urlsplit(entry if "://" in entry else f"{scheme}://{entry}")
            good = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:
            good = False
        if not good or url.query or url.fragment:
            raise ConfigurationError(f"elastic.host has {entry!r}: write HOST, HOST:9200 or https://HOST:9200")
        suffix = "" if "://" in entry or url.port else f":{port}"
        made.append(f"{url.scheme}://{url.netloc}{suffix}{url.path.rstrip('/')}")
    return made


def _error_reason(error: Any) -> str:
    """Return what the server says of an error, with what it says caused it, in one line."""
    parts: list[str] = []
    while isinstance(error, Mapping) and len(parts) < 3:
        parts.append(f"{error.get('type', 'error')}: {error.get('reason', '')}")
        error = error.get("caused_by")
    text = "; ".join(parts) if parts else str(error)
    return " ".join(text.split())[:300]


def _error_types(error: Any) -> frozenset[str]:
    """Return the server's own names for an error, its root causes and what caused it."""
    found = set[str]()
    waiting = [error]
    while waiting and len(found) < _MAX_ERROR_TYPES:
        one = waiting.pop()
        if isinstance(one, Mapping):
            found.add(str(one.get("type", "")))
            waiting += [one.get("caused_by"), *(one.get("root_cause") or ())]
    return frozenset(found)
