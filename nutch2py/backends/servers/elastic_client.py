"""ElasticClient: HTTP client for an index of Elasticsearch or OpenSearch.

The official clients reject each other's servers. The part of the API that a crawl needs is the same since
Elasticsearch 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from nutch2py.backends.servers.index_schema import parse_number
from nutch2py.backends.servers.server_retry import (
    DEFAULT_RESPONSE_BYTES,
    RequestFailure,
    RequestRejectedError,
    RetryingClient,
    describe_connection_error,
)
from nutch2py.errors import ConfigurationError, IndexingError

T = TypeVar("T")

ELASTIC_SERVER_NAME = "The search server"
"""Name of Elasticsearch or OpenSearch in messages."""

_CONNECT_SECONDS = 10.0
_MAX_ERROR_TYPES = 32
_DOCUMENT_MISSING = "document_missing_exception"
_INDEX_EXISTS = "resource_already_exists_exception"
TOO_MANY_CLAUSES = frozenset({"too_many_clauses", "too_many_nested_clauses"})
"""Errors of a query of more than ``indices.query.bool.max_clause_count`` words and fields."""
_TRANSIENT_STATUSES = (429, 502, 503, 504)
_BULK_PATH = "/_bulk?filter_path=errors,items.*.status,items.*.error"


class BulkAction(NamedTuple):
    """One operation of a bulk request: the key of the page, the lines to send, and whether it adds or deletes."""

    document_id: str
    lines: bytes
    is_document: bool


class RejectedItem(NamedTuple):
    """An operation that the server rejected, with the server's reason."""

    document_id: str
    reason: str


class _ElasticRequestError(Exception):
    """A request failed."""

    def __init__(self, status: int, message: str, error: Any = None) -> None:
        super().__init__(message)
        self.failure = RequestFailure(status, message, _error_types(error))


class ElasticClient:
    """One index, at one or several addresses (``http://HOST:9200``) of a cluster.

    Failures are handled as in :class:`RetryingClient`. 401, 403 and an untrusted certificate raise
    :class:`IndexingError` at once. An object serves one thread.

    Args:
        urls: Addresses of the cluster.
        index: Name of the index.
        auth: User name and password.
        ca_file: File of trusted certificates (PEM); "" for Python's defaults.
        timeout: Seconds to wait for a response, and for its body.
        max_retry_seconds: See :class:`RetryingClient`.
        first_delay: Seconds before the first retry.
        max_overloads: Allowed number of 429 responses.
        max_response_bytes: See :func:`open_bounded_session`.

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
        max_response_bytes: int = DEFAULT_RESPONSE_BYTES,
    ) -> None:
        from requests.auth import HTTPBasicAuth

        from nutch2py.backends.servers.bounded_session import open_bounded_session

        self.index = index
        self.session = open_bounded_session(ELASTIC_SERVER_NAME, max_response_bytes, timeout)
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
            fatal_error_types=TOO_MANY_CLAUSES,
        )

    @property
    def url(self) -> str:
        """The address in use, with the index."""
        return f"{self._retrying_client.url}/{self.index}"

    def get_mappings(self) -> dict[str, Any] | None:
        """Return the mapping of each index behind the name, by its own name; None when the index does not exist."""
        try:
            return self._request("GET", "/_mapping")
        except RequestRejectedError as error:
            if error.status == 404:
                return None
            raise

    def create_index(self, definition: bytes) -> None:
        """Create the index; keep one that another process has created meanwhile."""
        try:
            self._request("PUT", "", definition)
        except RequestRejectedError as error:
            if _INDEX_EXISTS not in error.error_types:
                raise

    def bulk(self, actions: Sequence[BulkAction]) -> list[RejectedItem]:
        """Carry out operations and return those that the server rejects.

        Operations rejected with 429 are sent again; a whole request rejected with 429 is sent in smaller parts.

        Raises:
            RequestRejectedError: The server rejects a whole request; some operations may be done by then.

        """
        waiting, rejected, batch_size = [*actions], list[RejectedItem](), len(actions)

        def send(at: int) -> None:
            nonlocal waiting, batch_size
            while waiting:
                part, rest = waiting[:batch_size], waiting[batch_size:]
                try:
                    response = self._send(at, "POST", _BULK_PATH, b"".join(action.lines for action in part))
                except _ElasticRequestError as failure:
                    if failure.failure.status == 429:
                        batch_size = max(1, len(part) // 2)
                    raise
                postponed, failed = self._check_bulk_response(part, response, rejected)
                waiting = postponed + rest
                if failed is not None:
                    raise failed

        self._call_with_retry(send)
        return rejected

    def _check_bulk_response(
        self, sent: Sequence[BulkAction], response: Mapping[str, Any], rejected: list[RejectedItem]
    ) -> tuple[list[BulkAction], _ElasticRequestError | None]:
        """Return the operations to send again, and the failure; add rejected operations to ``rejected``."""
        outcomes = [outcome for item in response.get("items", ()) for outcome in item.values()]
        if len(outcomes) != len(sent):
            raise _ElasticRequestError(0, "the response is not a search server's")
        postponed: list[BulkAction] = []
        failed: _ElasticRequestError | None = None
        for action, outcome in zip(sent, outcomes, strict=True):
            status, error = int(outcome["status"]), outcome.get("error")
            if error is None or _DOCUMENT_MISSING in _error_types(error):
                continue  # done; or 404: no document to delete or update
            reason = _error_reason(error)
            if status in _TRANSIENT_STATUSES:
                postponed.append(action)
                failed = _ElasticRequestError(status, reason, error)
            elif status in (401, 403, 404):  # permission, block or index: concerns every document
                raise IndexingError(
                    f"{ELASTIC_SERVER_NAME} at {self.url} does not accept documents (HTTP {status}): {reason}"
                )
            else:
                rejected.append(RejectedItem(action.document_id, reason))
        return postponed, failed

    def post_json(self, path: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to a query of the index, such as ``/_search``."""
        import orjson

        return self._request("POST", path, orjson.dumps(payload))

    def get_field_values(self, ids: Sequence[str], field: str) -> dict[str, float | None]:
        """Return a numeric field of the existing documents by ``_id``; None for a document without it."""
        query = {"query": {"ids": {"values": [*ids]}}, "size": len(ids), "_source": False, "docvalue_fields": [field]}
        hits = self.post_json("/_search", query)["hits"]["hits"]
        return {hit["_id"]: hit.get("fields", {}).get(field, [None])[0] for hit in hits}

    def get_source_values(self, ids: Sequence[str], field: str) -> dict[str, float | None]:
        """Return a number of the stored documents by ``_id``, whatever its type in the index; None without a number."""
        response = self.post_json(f"/_mget?_source={quote(field)}", {"ids": [*ids]}) if ids else {"docs": []}
        found = (each for each in response["docs"] if each.get("found"))
        return {each["_id"]: parse_number(each.get("_source", {}).get(field)) for each in found}

    def count_documents(self) -> int:
        """Return the number of searchable documents."""
        return int(self.post_json("/_count", {})["count"])

    def find_ids(self, ids: Sequence[str]) -> list[str]:
        """Return those of ``ids`` whose documents exist, whether a search finds them or not."""
        response = self.post_json("/_mget?_source=false", {"ids": [*ids]})
        return [each["_id"] for each in response["docs"] if each.get("found")]

    def refresh(self) -> None:
        """Make sent documents searchable."""

        def send(at: int) -> None:
            if self._send(at, "POST", "/_refresh").get("_shards", {}).get("failed"):
                raise _ElasticRequestError(503, "a part of the index cannot be refreshed")

        self._call_with_retry(send)

    def close(self) -> None:
        """Close the connections."""
        self.session.close()

    def _request(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        return self._call_with_retry(lambda at: self._send(at, method, path, body))

    def _call_with_retry(self, send: Callable[[int], T]) -> T:
        import requests

        return self._retrying_client.call(send, (_ElasticRequestError, requests.RequestException), self._to_failure)

    def _send(self, at: int, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        """Return the JSON object of a response; raise _ElasticRequestError when it is none, or not a success."""
        kind = "application/x-ndjson" if path == _BULK_PATH else "application/json"
        response = self.session.request(
            method,
            f"{self._retrying_client.urls[at]}/{quote(self.index, safe=',')}{path}",
            data=body,
            headers={"Content-Type": kind} if body is not None else {},
            auth=self._auth,
            timeout=self._timeout,
            verify=self._verify,  # per request: REQUESTS_CA_BUNDLE overrides the session's
            allow_redirects=False,
        )
        try:
            content = response.json()
        except ValueError:
            content = None
        if response.status_code >= 300:
            error = content.get("error") if isinstance(content, dict) else None
            reason = _error_reason(error) if error else response.reason or "no reason given"
            raise _ElasticRequestError(response.status_code, reason, error)
        if not isinstance(content, dict):
            raise _ElasticRequestError(0, "the response is not a search server's")
        return content

    def _to_failure(self, error: Exception) -> RequestFailure:
        """Return the meaning of a failure; raise IndexingError when a retry cannot help."""
        import requests

        text = " ".join(str(error).split())[:300]
        if isinstance(error, _ElasticRequestError):
            status = error.failure.status
            if status in (401, 403):
                raise IndexingError(
                    f"{ELASTIC_SERVER_NAME} at {self.url} rejects the login (HTTP {status}, {text}): set "
                    "elastic.username and elastic.password"
                ) from error
            return error.failure._replace(message=text)
        if isinstance(error, requests.exceptions.SSLError):
            match = re.search(r"(certificate verify failed[^(]*|\[SSL[^(]*)", text)
            raise IndexingError(
                f"no trusted connection with {self.url} ({match[1].strip() if match else 'TLS'}): set elastic.tls.ca "
                "to the file of the server's certificate authority (PEM), or correct elastic.scheme"
            ) from error
        hint = ", perhaps because the server requires elastic.scheme https" if self.url.startswith("http:") else ""
        return RequestFailure(0, describe_connection_error(error) or f"the connection was cut{hint}")


def parse_elastic_addresses(hosts: str, port: int, scheme: str) -> list[str]:
    """Return the addresses in ``elastic.host``: names with or without a port, or whole URLs, kept unchanged.

    >>> parse_elastic_addresses("a, b:9201 https://c.example/search/", 9200, "http")
    ['http://a:9200', 'http://b:9201', 'https://c.example/search']
    """
    if scheme not in ("http", "https"):
        raise ConfigurationError(f"elastic.scheme is {scheme!r}: write http or https")
    addresses: list[str] = []
    for entry in filter(None, re.split(r"[,\s]+", hosts)):
        if "@" in entry:  # not shown: it may contain a password
            raise ConfigurationError("elastic.host contains a login: move it to elastic.username and elastic.password")
        try:
            url = urlsplit(entry if "://" in entry else f"{scheme}://{entry}")
            valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:
            valid = False
        if not valid or url.query or url.fragment:
            raise ConfigurationError(f"elastic.host has {entry!r}: write HOST, HOST:9200 or https://HOST:9200")
        suffix = "" if "://" in entry or url.port else f":{port}"
        addresses.append(f"{url.scheme}://{url.netloc}{suffix}{url.path.rstrip('/')}")
    return addresses


def _error_reason(error: Any) -> str:
    """Return the server's reason of an error and its causes, in one line."""
    parts: list[str] = []
    while isinstance(error, Mapping) and len(parts) < 3:
        parts.append(f"{error.get('type', 'error')}: {error.get('reason', '')}")
        error = error.get("caused_by")
    text = "; ".join(parts) if parts else str(error)
    return " ".join(text.split())[:300]


def _error_types(error: Any) -> frozenset[str]:
    """Return the server's types of an error, its root causes and its causes."""
    types = set[str]()
    waiting = [error]
    while waiting and len(types) < _MAX_ERROR_TYPES:
        one = waiting.pop()
        if isinstance(one, Mapping):
            types.add(str(one.get("type", "")))
            waiting += [one.get("caused_by"), *(one.get("root_cause") or ())]
    return frozenset(types)
