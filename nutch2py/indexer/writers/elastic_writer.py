"""indexer-elastic: documents to Elasticsearch or OpenSearch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from nutch2py.backends.attempts import Refusal
from nutch2py.backends.elastic_client import SERVER, Action, ElasticClient, addresses
from nutch2py.backends.elastic_mapping import ElasticMapping
from nutch2py.backends.field_types import columns_of
from nutch2py.backends.index_folder import NEAR, TERMS
from nutch2py.conf import Configuration, data_folder
from nutch2py.document import NutchDocument, clean_text, java_float
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.indexer.index_writers import Parameters, no_id
from nutch2py.indexer.search_fields import ServerTerms, Weights, without_terms
from nutch2py.indexer.writers.delivery import Batch, ServerIndexWriter, json_fields, send_halving
from nutch2py.outages import service_wait
from nutch2py.reporting import warn

T = TypeVar("T")

_MAX_ID = 512  # bytes of UTF-8
_TRANSPORT_PORT = 9300
_OF_CONTENT = (400, 413, 500)
"""Answers to a whole request that may be due to one document in it."""


class ElasticIndexWriter(ServerIndexWriter):
    """Sends documents and deletes to an index of Elasticsearch (7 or later) or OpenSearch, at ``elastic.host``.

    They go by ``_bulk``, ``elastic.max.bulk.docs`` documents or ``elastic.max.bulk.size`` characters at once, and are
    searchable after :meth:`commit` (``_refresh``). A server that is away is waited for, ``service.wait.seconds``
    seconds; one that is overloaded (429) is tried ``elastic.exponential.backoff.retries`` times, beginning after
    ``elastic.exponential.backoff.millis``. A document that it objects to is named, counted in ``refused``, and left
    out; the others go in.

    An index that is not there is made as the file ``elastic.index.file`` says (``schema/elastic/index.json``). The
    fields of one that is there are looked at before the first document; those that do not take what is sent are an
    :class:`IndexingError` that names them all. In index-writers.xml, the parameters of Nutch 1: the properties without
    ``elastic.``.
    """

    java_class = "org.apache.nutch.indexwriter.elastic.ElasticIndexWriter"
    server = SERVER
    tells_scores = True

    def __init__(self, conf: Configuration) -> None:
        self._sent = self._exists = self._looked = False
        self._known: set[str] = set()  # fields that were looked up
        self._mappings: list[ElasticMapping] = []
        self._client: ElasticClient | None = None
        self._scores: list[Action] = []
        self._configure(conf, {})

    def _configure(self, conf: Configuration, given: Mapping[str, str]) -> None:
        parameters = Parameters(conf, "indexer-elastic", given)

        def given_or(name: str, default: str) -> str:
            return parameters.get(name, "").strip() or default  # an empty one, as in the template, says nothing

        whole = parameters.get_int
        scheme = given_or("scheme", conf.get_trimmed("elastic.scheme", "http")).lower()
        port = whole("port", conf.get_int("elastic.port", 9200))
        self.urls = addresses(given_or("host", conf.get_trimmed("elastic.host")), port, scheme)
        self.index = given_or("index", conf.get_trimmed("elastic.index", "nutch"))
        self._batch = Batch(
            whole("max.bulk.docs", conf.get_int("elastic.max.bulk.docs", 250)),
            whole("max.bulk.size", conf.get_int("elastic.max.bulk.size", 2_500_500)),
        )
        millis = conf.get_int("elastic.exponential.backoff.millis", 100)
        self.first_wait = whole("exponential.backoff.millis", millis) / 1000
        retries = conf.get_int("elastic.exponential.backoff.retries", 10)
        self.overloads = whole("exponential.backoff.retries", retries)
        self.patience = conf.get_float("elastic.bulk.close.timeout", service_wait(conf))
        if (patience := whole("bulk.close.timeout", -1)) >= 0:
            self.patience = patience
        self.timeout = conf.get_float("elastic.timeout", 120.0)
        user = given_or("username", conf.get_trimmed("elastic.username"))
        password = parameters.get("password", "") or conf.get("elastic.password", "")
        self.auth = (user, password) if parameters.get_bool("auth", bool(user and password)) else None
        if parameters.get("trust.store.path", "").strip() or parameters.get("key.store.path", "").strip():
            raise ConfigurationError(
                "trust.store.path and key.store.path of indexer-elastic name key stores of Java: export the "
                "certificate authority as PEM (keytool -exportcert -rfc), and name that file in tls.ca"
            )
        authority = given_or("tls.ca", conf.get_trimmed("elastic.tls.ca"))
        self.ca = str(conf.absolute(authority)) if authority else ""
        if self.ca and not Path(self.ca).is_file():
            raise ConfigurationError(f"elastic.tls.ca names {self.ca}, which is not a file: correct the path")
        self._terms, self._weights = ServerTerms(conf), Weights(conf)
        self.index_file = conf.get_trimmed("elastic.index.file")
        self._conf = conf

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Check the address, make the index if there is none and look at its fields, before the job's tasks start."""
        self.open(conf, parameters)
        if any(urlsplit(url).port == _TRANSPORT_PORT for url in self.urls):
            warn(
                f"elastic.port is {_TRANSPORT_PORT}, which is a server's port for other servers and for Nutch 2: "
                "its port for HTTP is 9200 unless it was changed"
            )
        try:
            self._look(create=True)
        finally:
            self.close()

    def check(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Raise an error unless the server answers, and its index, if there is one, fits."""
        self.open(conf, parameters)
        try:
            self._look(create=False)
        finally:
            self.close()

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Take over the parameters; the first batch connects."""
        self._configure(conf, parameters)
        self._client = self.connect(self.timeout, self.patience)
        self._exists = self._looked = False
        self._known.clear()

    def connect(self, timeout: float, patience: float) -> ElasticClient:
        """Return a connection of its own; ConfigurationError when no server is named."""
        if not self.urls:
            raise ConfigurationError("elastic.host is not set: name the server, such as -D elastic.host=localhost")
        return ElasticClient(
            self.urls,
            self.index,
            auth=self.auth,
            ca=self.ca,
            timeout=timeout,
            patience=patience,
            first_wait=self.first_wait,
            overloads=self.overloads,
        )

    @property
    def client(self) -> ElasticClient:
        """The connection, between :meth:`open` and :meth:`close`."""
        if self._client is None:
            raise IndexingError("indexer-elastic is not open")
        return self._client

    def write(self, document: NutchDocument) -> None:
        """Gather a document; it replaces one with the same id."""
        if not document.get("id"):
            raise no_id(document)
        document_id = clean_text(document.id)
        if self._batch.add(document_id, json_fields(document) | {"id": document_id} | self._terms.of(document)):
            self._flush()

    def scores(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``pagerank`` of the documents that are there."""
        self._look(create=False)
        if not self._exists:
            return {}
        names = {index_id(clean_text(each)): each for each in ids}
        found = self._ask("scores", lambda: self.client.values([*names], "pagerank"))
        return {names[name]: score for name, score in found.items()}

    def set_score(self, document_id: str, score: float) -> bool:
        """Gather a partial update, where the server makes the document anew of all its fields."""
        weighed = any(mapping.takes_terms for mapping in self._mappings)
        if not all(mapping.keeps_all for mapping in self._mappings) or (
            weighed and self._weights.powers.keys() - {"pagerank"}
        ):
            return False
        fields = {"pagerank": java_float(score)}  # as texts, as they are sent with documents
        if weighed:
            fields[f"{TERMS}weight"] = str(self._weights.of(NutchDocument({"pagerank": [repr(score)]})))
        self._scores.append(_update(clean_text(document_id), fields))
        return True

    def _flush(self) -> None:
        added, deleted = self._batch.take()
        scores, self._scores = self._scores, []
        if scores:
            self._sent = True
            for start in range(0, len(scores), self._batch.documents):
                send_halving(scores[start : start + self._batch.documents], self._bulk, self._refused)
        if not (added or deleted):
            return
        self._look(create=bool(added))
        if not self._exists:
            return  # there is nothing to delete from
        if not all(mapping.takes_terms for mapping in self._mappings):  # others take words for whole values
            added = {document_id: without_terms(fields) for document_id, fields in added.items()}
        elif any(mapping.field(NEAR) is None for mapping in self._mappings):  # strict, and made before there was one
            for fields in added.values():
                fields.pop(NEAR, None)
        self._check_fields([*added.values()])
        actions = [_delete(document_id) for document_id in deleted]
        actions += [_index(document_id, fields) for document_id, fields in added.items()]
        self._sent = True
        send_halving(actions, self._bulk, self._refused)

    def _bulk(self, actions: Sequence[Action]) -> None:
        try:
            refusals = self.client.bulk(actions)
        except Refusal as refusal:
            if refusal.status in _OF_CONTENT:
                raise
            raise IndexingError(
                f"{SERVER} at {self.client.url} refuses documents: {refusal} (HTTP {refusal.status})"
            ) from refusal
        self.accepted += sum(action.document for action in actions) - len(refusals)
        for refused in refusals:
            self.refuse(self.client.url, refused.document_id, refused.reason)

    def _refused(self, action: Action, refusal: Refusal) -> None:
        self.refuse(self.client.url, action.document_id, f"{refusal} (HTTP {refusal.status})")

    def commit(self) -> None:
        """Send what is gathered; make it searchable."""
        self._flush()
        if self._sent:
            self._ask("a refresh", self.client.refresh)
            self._sent = False

    def close(self) -> None:
        """Send what is left, and close the connections."""
        try:
            self._flush()
        finally:
            if self._client is not None:
                self._client.close()
            self._client = None
        self.tell_refused()

    def describe(self) -> str:
        """Return the settings."""
        return (
            f"ElasticIndexWriter\n\telastic.host : addresses of the cluster ({', '.join(self.urls) or 'not set'})\n"
            f"\telastic.index : {self.index}\n"
            f"\telastic.max.bulk.docs : documents sent at once ({self._batch.documents})\n"
            f"\telastic.max.bulk.size : characters sent at once ({self._batch.characters})\n"
            f"\telastic.username : use authentication ({str(self.auth is not None).lower()})\n"
        )

    def _look(self, create: bool) -> None:
        """Find out whether there is an index, and its fields; make it when there is none and one is needed."""
        if self._exists or (self._looked and not create):
            return
        found = self._ask("a look at its fields", self.client.mappings)
        if found is None and create:
            definition = self._definition()
            self._ask("to make it", lambda: self.client.create(definition))
            found = self._ask("a look at its fields", self.client.mappings)
        self._mappings = [ElasticMapping(each) for each in (found or {}).values()]
        self._exists, self._looked = found is not None, True
        self._demand([mapping.unfit() for mapping in self._mappings])

    def _check_fields(self, documents: list[dict[str, Any]]) -> None:
        if all(document.keys() <= self._known for document in documents):
            return
        columns = columns_of(documents, self._known)
        self._demand([mapping.problems(columns, {}) for mapping in self._mappings])

    def _demand(self, problems: Sequence[Mapping[str, str]]) -> None:
        wrong = {name: problem for each in problems for name, problem in each.items()}
        if wrong:
            raise IndexingError(
                f"the index {self.client.url} does not fit: {'; '.join(wrong.values())}. Name a new one with "
                "elastic.index, which is made as it must be, or rename fields in index-writers.xml"
            )

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except Refusal as refusal:
            raise IndexingError(
                f"{SERVER} refuses {what}, the index {self.client.url}: {refusal} (HTTP {refusal.status})"
            ) from refusal

    def _definition(self) -> bytes:
        """Return the JSON of a new index. ConfigurationError when the file is not there or is none."""
        import orjson

        shipped = data_folder("schema") / "elastic" / "index.json"
        path = self._conf.resource(self.index_file) if self.index_file else shipped
        if path is None:
            raise ConfigurationError(
                f"elastic.index.file names {self.index_file}, which is not in the configuration folder: put it there"
            )
        try:
            definition = path.read_bytes()
            orjson.loads(definition)
        except (OSError, orjson.JSONDecodeError) as error:
            raise ConfigurationError(f"cannot read {path}: {error}: repair the file's JSON") from error
        return definition


def index_id(document_id: str) -> str:
    """Return the ``_id`` of a document: its id, the end of one of more than 512 bytes replaced by a digest of it all.

    >>> index_id("org.example:http/"), len(index_id("org.example:http/" + 600 * "x"))
    ('org.example:http/', 512)
    """
    encoded = document_id.encode()
    if len(encoded) <= _MAX_ID:
        return document_id
    digest = hashlib.sha256(encoded).hexdigest()
    return f"{encoded[: _MAX_ID - len(digest) - 1].decode(errors='ignore')}#{digest}"


def _index(document_id: str, fields: Mapping[str, Any]) -> Action:
    import orjson

    try:
        source = orjson.dumps(fields)
    except TypeError:  # text that a plug-in put in past NutchDocument.add
        source = orjson.dumps(NutchDocument.from_json(fields).to_json())
    return Action(document_id, b'{"index":{"_id":%b}}\n%b\n' % (orjson.dumps(index_id(document_id)), source), True)


def _update(document_id: str, fields: Mapping[str, str]) -> Action:
    import orjson

    lines = b'{"update":{"_id":%b}}\n{"doc":%b}\n' % (orjson.dumps(index_id(document_id)), orjson.dumps(fields))
    return Action(document_id, lines, True)


def _delete(document_id: str) -> Action:
    import orjson

    return Action(document_id, b'{"delete":{"_id":%b}}\n' % orjson.dumps(index_id(document_id)), False)
