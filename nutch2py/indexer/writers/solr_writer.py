"""indexer-solr: documents to Solr."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nutch2py.backends.attempts import Refusal
from nutch2py.backends.field_types import columns_of
from nutch2py.backends.index_folder import TERMS
from nutch2py.backends.solr_client import SolrClient, SolrRefusal, addresses, login
from nutch2py.backends.solr_schema import EXPECTED, SolrSchema
from nutch2py.conf import Configuration
from nutch2py.document import NutchDocument, clean_text
from nutch2py.errors import IndexingError
from nutch2py.indexer.field_mapping import FieldMapping
from nutch2py.indexer.index_writers import Parameters, no_id
from nutch2py.indexer.search_fields import ServerTerms, Weights, without_terms
from nutch2py.indexer.writers.delivery import Batch, ServerIndexWriter, json_fields, send_halving
from nutch2py.outages import service_wait
from nutch2py.reporting import warn
from nutch2py.secrets import shown_address

_BATCH_CHARACTERS = 8_000_000
_SCORES = 1000  # in a request


class SolrIndexWriter(ServerIndexWriter):
    """Sends documents and deletes to one or several Solr collections (``solr.server.url``).

    They go in batches of ``solr.commit.size`` documents or 8 million characters, searchable after :meth:`commit` (a
    hard commit, unless ``solr.commit.index`` is false), or after ``solr.commit.within`` ms. A Solr that is away is
    waited for, ``service.wait.seconds``; see :class:`SolrClient`. A batch that Solr refuses is halved until the
    documents that it objects to are found: they are named, counted in ``refused``, and left out; the others go in.

    Before the first document the collection's schema is read; fields that are missing or do not take what is sent
    are an :class:`IndexingError` that names them all (``solr.schema.check``). Names of fields are mapped by
    ``solr.mapping.file``. In index-writers.xml, the parameters of Nutch 1: ``type``, ``url``, ``collection``,
    ``commitSize``, ``auth``, ``username``, ``password``, ``auth.header.name``, ``auth.header.value``.
    """

    java_class = "org.apache.nutch.indexwriter.solr.SolrIndexWriter"
    server = "Solr"
    tells_scores = True

    def __init__(self, conf: Configuration) -> None:
        self._sent = False
        self._scores: dict[str, float] = {}
        self._targets: list[_Collection] = []
        self._configure(conf, {})
        self._batch = Batch(self.commit_size, _BATCH_CHARACTERS)

    def _configure(self, conf: Configuration, given: Mapping[str, str]) -> None:
        parameters = Parameters(conf, "indexer-solr", given)
        self.url = parameters.get("url", conf.get_trimmed("solr.server.url"))
        self.kind = parameters.get("type", conf.get_trimmed("solr.server.type", "http")).strip()
        self.collection = parameters.get("collection", conf.get_trimmed("solr.collection")).strip()
        self.commit_size = max(1, parameters.get_int("commitSize", conf.get_int("solr.commit.size", 250)))
        self.commit_index = conf.get_bool("solr.commit.index", True)
        within = conf.get_int("solr.commit.within", -1)
        self.commit_within = within if within >= 0 else None
        self._terms = ServerTerms(conf)
        # else by terms_weight, an indexed field
        self.weighs_alone = Weights(conf).powers.keys() <= {"pagerank", "boost"}
        self.auth = login(conf)
        if parameters.get_bool("auth", self.auth is not None):
            user, password = self.auth or ("", "")
            self.auth = parameters.get("username", user), parameters.get("password", password)
        header = parameters.get("auth.header.name", "").strip()
        # Nutch 1 gives the scheme as the name: Authorization: Bearer 1234
        self.headers = (
            {"Authorization": f"{header} {parameters.get('auth.header.value', '').strip()}"} if header else {}
        )
        self.mapping_file = conf.get_trimmed("solr.mapping.file", "solrindex-mapping.xml")
        self.mapping, self.unique_key = _mapping(conf, self.mapping_file)

    def prepare(self, conf: Configuration, parameters: Mapping[str, str], reindex: bool) -> None:
        """Check the address and the schema, before the job's tasks start."""
        self.check(conf, parameters)

    def check(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Raise an error unless there is an address, Solr answers, and there is such a collection."""
        self.open(conf, parameters)
        try:
            for target in self._targets:
                target.schema()
        finally:
            self.close()

    def open(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        """Take over the parameters; the first batch connects."""
        self._configure(conf, parameters)
        self._batch = Batch(self.commit_size, _BATCH_CHARACTERS)
        timeout, patience = conf.get_float("solr.timeout", 120.0), service_wait(conf)
        check = conf.get_bool("solr.schema.check", True)
        self._targets = [
            _Collection(SolrClient(urls, self.auth, self.headers, timeout, patience), self, check)
            for urls in addresses(conf, self.url, self.kind, self.collection)
        ]

    @property
    def sends_terms(self) -> bool:
        """Whether documents have the fields ``terms_*``."""
        return self._terms.wanted

    def write(self, document: NutchDocument) -> None:
        """Gather a document; it replaces one with the same id."""
        if "id" not in document:
            raise no_id(document)
        document_id = clean_text(document.id)
        fields = {**json_fields(self.mapping.apply(document)), **self._terms.of(document)}
        fields[self.unique_key] = document_id
        if self._batch.add(document_id, fields):
            self._flush()

    @property
    def score_field(self) -> str:
        """The name of ``pagerank`` in the collection."""
        return self.mapping.rename.get("pagerank", "pagerank")

    def scores(self, ids: Sequence[str]) -> Mapping[str, float | None]:
        """Return the field ``pagerank`` of the documents there; None, too, where several collections disagree."""
        names = {clean_text(each): each for each in ids}
        found: dict[str, float | None] = {}
        for number, target in enumerate(self._targets):
            for name, score in target.scores([*names]).items():
                same = number == 0 or found.get(names[name]) == score
                found[names[name]] = score if same else None
        return found

    def set_score(self, document_id: str, score: float) -> bool:
        """Gather an in-place update; False in a collection that would make the document anew of what is stored."""
        touched = {*self.mapping.copy, *self.mapping.remove}
        if "pagerank" in touched or not all(target.sets_scores() for target in self._targets):
            return False
        self._scores[clean_text(document_id)] = score
        return True

    def _flush(self) -> None:
        added, deleted = self._batch.take()
        scores, self._scores = self._scores, {}
        self._sent = self._sent or bool(added or deleted or scores)
        for target in self._targets:
            target.send([*added.values()], deleted)
            target.send_scores(scores)

    def commit(self) -> None:
        """Send what is gathered; commit it, unless ``solr.commit.index`` is false."""
        self._flush()
        if self._sent and self.commit_index:
            for target in self._targets:
                target.commit()
            self._sent = False

    def close(self) -> None:
        """Send what is left, and close the connections."""
        try:
            self._flush()
        finally:
            for target in self._targets:
                target.client.close()
            self._targets = []
        self.tell_refused()

    def describe(self) -> str:
        """Return the settings."""
        within = "" if self.commit_within is None else f"\tsolr.commit.within : {self.commit_within} ms\n"
        return (
            f"SOLRIndexWriter\n\tsolr.server.url : URL of the SOLR instance ({shown_address(self.url) or 'not set'})\n"
            f"\tsolr.commit.size : buffer size when sending to SOLR ({self.commit_size})\n{within}"
            f"\tsolr.mapping.file : name of the mapping file for fields ({self.mapping_file})\n"
            f"\tsolr.auth : use authentication ({str(self.auth is not None).lower()})\n"
        )


class _Collection:
    """One collection that a writer sends to."""

    def __init__(self, client: SolrClient, writer: SolrIndexWriter, check: bool) -> None:
        self.client, self.writer = client, writer
        self._known: set[str] = set()  # fields that were looked up
        self._schema: SolrSchema | None = None
        self._check = check

    def schema(self) -> SolrSchema | None:
        """Return the collection's schema, None when it cannot be read; IndexingError when there is no collection."""
        if self._schema is None and self._check:
            try:
                self._schema = SolrSchema(self.client.get("schema?wt=json"))
            except SolrRefusal as refusal:
                if refusal.status == 404:
                    raise IndexingError(
                        f"there is no Solr collection at {self.client.url}: correct solr.server.url, or make the "
                        "collection with the configset schema/solr"
                    ) from refusal
                warn(f"the schema of {self.client.url} cannot be read ({refusal}): fields are not checked")
                self._check = False
            except KeyError:
                warn(f"{self.client.url} tells no schema: fields are not checked")
                self._check = False
        return self._schema

    def send(self, added: list[dict[str, Any]], deleted: list[str]) -> None:
        """Send a batch."""
        if added:
            if not self._takes_terms():
                added = [without_terms(document) for document in added]
            self._check_fields(added)
            send_halving(added, self._add, self._refused)
        for start in range(0, len(deleted), 1000):
            self._change("deletes", partial(self.client.delete, deleted[start : start + 1000]))

    def scores(self, ids: Sequence[str]) -> dict[str, float | None]:
        """Return the scores of documents that are there, by their ids."""
        try:
            return self.client.values(self.writer.unique_key, ids, self.writer.score_field)
        except SolrRefusal as refusal:
            raise IndexingError(f"Solr at {self.client.url} does not tell scores: {refusal}") from refusal

    def sets_scores(self) -> bool:
        """Tell whether a score can be set alone, and is all that relevance is multiplied by here."""
        schema = self.schema()
        known = schema is not None and schema.sets_in_place(self.writer.score_field)
        return known and (self.writer.weighs_alone or not self._takes_terms())

    def send_scores(self, scores: Mapping[str, float]) -> None:
        """Send scores."""
        key, field = self.writer.unique_key, self.writer.score_field
        documents = [{key: document_id, field: {"set": score}} for document_id, score in scores.items()]
        for start in range(0, len(documents), _SCORES):
            send_halving(documents[start : start + _SCORES], self._set, self._refused)

    def _set(self, documents: Sequence[dict[str, Any]]) -> None:
        self.client.set_values(documents, self.writer.commit_within)
        self.writer.accepted += len(documents)

    def _takes_terms(self) -> bool:
        """Tell whether the collection has our fields; others would take words for whole values."""
        schema = self.schema() if self.writer.sends_terms else None
        field = schema.field(f"{TERMS}content") if schema is not None else None
        return field is not None and field.kind == "text"

    def commit(self) -> None:
        """Commit."""
        self._change("a commit", self.client.commit)

    def _change(self, what: str, call: Callable[[], None]) -> None:
        try:
            call()
        except SolrRefusal as refusal:
            raise IndexingError(f"Solr at {self.client.url} refuses {what}: {refusal}") from refusal

    def _add(self, documents: Sequence[dict[str, Any]]) -> None:
        self.client.add([*documents], self.writer.commit_within)
        self.writer.accepted += len(documents)

    def _refused(self, document: dict[str, Any], refusal: Refusal) -> None:
        self.writer.refuse(self.client.url, str(document[self.writer.unique_key]), str(refusal))

    def _check_fields(self, documents: list[dict[str, Any]]) -> None:
        if not self._check or all(document.keys() <= self._known for document in documents):
            return
        schema = self.schema()
        if schema is None:
            return
        writer = self.writer
        rename, first = writer.mapping.rename, not self._known
        columns = columns_of(documents, self._known)
        wrong = schema.problems(columns, {solr: nutch for nutch, solr in rename.items()} | {writer.unique_key: "id"})
        if first:
            expected = {rename.get(name, name) for name in EXPECTED} - writer.mapping.remove
            wrong = {**schema.missing(sorted(expected)), **schema.demanded(columns.keys() | expected), **wrong}
            if schema.unique_key != writer.unique_key:
                wrong["uniqueKey"] = f"its uniqueKey is {schema.unique_key}, not {writer.unique_key}"
        if wrong:
            raise IndexingError(
                f"the Solr collection {self.client.url} does not fit: {'; '.join(wrong.values())}. Load the configset "
                f"schema/solr there, or rename fields in {writer.mapping_file} (solr.schema.check=false sends anyway)"
            )


def _mapping(conf: Configuration, name: str) -> tuple[FieldMapping, str]:
    root = conf.resource_xml(name)
    if root is None:
        return FieldMapping(), "id"
    mapping, unique_key = FieldMapping.of_solr_mapping(root)
    return mapping, unique_key if unique_key != "id" else mapping.rename.get("id", "id")
