"""IndexWriters: the writers that ``plugin.includes`` or a server address enables, several at once.

index-writers.xml has Nutch 1's format: ``<writer id= class=><parameters><param name= value=/>…</parameters>
<mapping>…</mapping></writer>``. A writer in it runs if its plug-in is enabled, twice if it is listed twice. An enabled
writer that the file lacks runs with its defaults (Nutch 1 skips it), so that a file for one index does not disable
another. The file itself enables none: Nutch 1's lists every writer. Parameters can also be properties:
``<plugin id>.<parameter>``, such as ``indexer-csv.fields``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, NoReturn, Self

from nutch2py.conf.configuration import Configuration
from nutch2py.conf.redaction import redact_property
from nutch2py.errors import ConfigurationError, IndexingError, NutchError
from nutch2py.indexer.field_mapping import FieldMapping
from nutch2py.interfaces import IndexWriter
from nutch2py.plugins.loading import PluginClass, enabled_plugins
from nutch2py.plugins.plugin_failures import describe_exception
from nutch2py.records.document import NutchDocument
from nutch2py.support.reporting import warn

_ADDRESS_PROPERTIES = {"solr.server.url": "indexer-solr", "elastic.host": "indexer-elastic"}
_FLOAT_PRECISION = 1e-6  # relative precision of a 4-byte float as text
_LOCAL_WRITERS = ("indexer-embedded", "indexer-csv", "indexer-jsonl")


class WriterParameters:
    """The settings of one writer: index-writers.xml, then the property ``<prefix>.<name>``, then the default."""

    def __init__(self, conf: Configuration, prefix: str, parameters: Mapping[str, str]) -> None:
        self._conf, self._prefix, self._parameters = conf, prefix, parameters

    def get(self, name: str, default: str) -> str:
        """Return a text with its white space: a separator may be a space."""
        value = self._parameters.get(name)
        return self._conf.get(f"{self._prefix}.{name}", default) if value is None else value

    def get_path(self, name: str, default: str) -> Path:
        """Return a path; a relative one is relative to the working directory of the command."""
        return self._conf.absolute(self.get(name, default).strip())

    def get_int(self, name: str, default: int) -> int:
        """Return a whole number."""
        text = self.get(name, "").strip()
        try:
            return int(text) if text else default
        except ValueError:
            shown = redact_property(name, text)
            raise ConfigurationError(f"parameter {name} of {self._prefix} is {shown!r}, not a whole number") from None

    def get_bool(self, name: str, default: bool) -> bool:
        """Return ``true`` or ``false``."""
        text = self.get(name, "").strip().lower()
        if text not in ("", "true", "false"):
            raise ConfigurationError(f"parameter {name} of {self._prefix} is {text!r}: write true or false")
        return text == "true" if text else default


class _ConfiguredWriter(NamedTuple):
    """A writer with its settings in index-writers.xml."""

    name: str
    writer: IndexWriter
    parameters: Mapping[str, str]
    mapping: FieldMapping


class IndexWriters:
    """All enabled writers as one; a context manager that opens them, and closes them in any case."""

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf
        self._writers = list(_iter_configured_writers(conf))
        self._open: list[_ConfiguredWriter] = []
        self._committed = False

    @property
    def writer_ids(self) -> list[str]:
        """Ids of the writers, from index-writers.xml or of the plug-ins."""
        return [each.name for each in self._writers]

    @property
    def rejected(self) -> int:
        """Number of documents that indexes have rejected so far."""
        return sum(each.writer.rejected for each in self._writers)

    def prepare(self, reindex: bool = False) -> None:
        """Prepare the indexes for a job; called once, before the job's tasks open their writers."""
        _warn_about_unused_addresses(self.conf)
        for each in self._writers:
            try:
                each.writer.prepare(self.conf, each.parameters, reindex)
            except Exception as error:  # noqa: BLE001 - named
                _raise_writer_error(each, "when it prepares", error)

    def check(self) -> None:
        """Raise an error when an index cannot accept documents; create and change nothing."""
        for each in self._writers:
            try:
                each.writer.check(self.conf, each.parameters)
            except Exception as error:  # noqa: BLE001 - named
                _raise_writer_error(each, "when it is checked", error)

    def open(self) -> Self:
        """Open the writers; close the opened ones when one fails."""
        try:
            for each in self._writers:
                try:
                    each.writer.open(self.conf, each.parameters)
                except Exception as error:  # noqa: BLE001 - named
                    _raise_writer_error(each, "when it opens", error)
                self._open.append(each)
        except BaseException:
            self._close_quietly()
            raise
        return self

    def write(self, document: NutchDocument) -> None:
        """Add a document to every index, with the field names of each."""
        self._committed = False
        for each in self._open:
            try:
                each.writer.write(each.mapping.apply(document))
            except Exception as error:  # noqa: BLE001 - named
                _raise_writer_error(each, f"on {document.get('url')}", error)

    def update(self, document: NutchDocument) -> None:
        """Replace a document in every index."""
        self._committed = False
        for each in self._open:
            try:
                each.writer.update(each.mapping.apply(document))
            except Exception as error:  # noqa: BLE001 - named
                _raise_writer_error(each, f"on {document.get('url')}", error)

    def delete(self, document_id: str) -> None:
        """Delete a document from every index."""
        self._committed = False
        for each in self._open:
            try:
                each.writer.delete(document_id)
            except Exception as error:  # noqa: BLE001 - named
                _raise_writer_error(each, f"on {document_id}", error)

    def count_documents(self) -> dict[str, int]:
        """Return the number of documents by writer, for each index that can be queried."""
        counts: dict[str, int] = {}
        for each in self._open:
            try:
                count = each.writer.count_documents()
            except Exception as error:  # noqa: BLE001 - named
                _raise_writer_error(each, "when it counts documents", error)
            if count is not None:
                counts[each.name] = counts.get(each.name, 0) + count
        return counts

    def find_documents(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the documents among ``ids`` that an index has, with the names of their writers.

        An index that cannot be queried may have each of them: its name does not occur.
        """
        found: dict[str, list[str]] = {}
        for each in self._open:
            try:
                is_known = each.writer.count_documents() is not None
                for document_id in each.writer.find_documents(ids) if is_known else ids:
                    found.setdefault(document_id, []).extend([each.name] if is_known else [])
            except Exception as error:  # noqa: BLE001 - named
                _raise_writer_error(each, "when it looks up documents", error)
        return found

    @property
    def writers_without_scores(self) -> list[str]:
        """Ids of writers that can only replace whole documents, or that map ``pagerank``."""
        return [
            each.name for each in self._writers if not (each.writer.supports_scores and _preserves_score(each.mapping))
        ]

    def update_scores(
        self,
        scores: Mapping[str, float],
        tolerance: float,
        make_documents: Callable[[Sequence[str]], list[NutchDocument]],
        click_factors: Mapping[str, float] | None = None,
    ) -> Counter[str]:
        """Replace the scores of documents that differ by more than a tolerance, in every index.

        Args:
            scores: New scores by document id.
            tolerance: Relative difference up to which a score stays.
            make_documents: Builds the documents of ids, for an index that cannot update scores alone.
            click_factors: Factors that documents with the field ``clicks`` have now, by id; a document whose factor
                has changed is written as a whole. None: documents have no such field.

        Returns:
            The number of documents updated ``alone`` and as a ``whole``, up to date (``same``) and not indexed
            (``absent``).

        """
        self._committed = False
        counts: Counter[str] = Counter()
        for each in self._open:
            try:
                whole: list[str] = []
                known = each.writer.get_scores([*scores])
                old_factors = each.writer.get_click_factors([*known]) if click_factors is not None else {}
                for document_id, old_score in known.items():
                    score = scores[document_id]
                    factor = click_factors.get(document_id) if click_factors is not None else None
                    if not _is_near(factor, old_factors.get(document_id), tolerance):
                        whole.append(document_id)
                    elif _is_near(score, old_score, tolerance):
                        counts["same"] += 1
                    elif each.writer.set_score(document_id, score):
                        counts["alone"] += 1
                    else:
                        whole.append(document_id)
                counts["absent"] += len(scores) - len(known)
                for document in make_documents(whole) if whole else ():
                    each.writer.write(each.mapping.apply(document))
                    counts["whole"] += 1
            except Exception as error:  # noqa: BLE001 - named
                _raise_writer_error(each, "on scores", error)
        return counts

    def commit(self) -> None:
        """Make all writes searchable in every index, unless that is done already."""
        if self._committed:
            return
        for each in self._open:
            try:
                each.writer.commit()
            except Exception as error:  # noqa: BLE001 - named
                _raise_writer_error(each, "when it commits", error)
        self._committed = True

    def close(self) -> None:
        """Close every writer, also when closing one of them fails; raise the first failure at the end."""
        failures: list[Exception] = []
        while self._open:
            each = self._open.pop(0)
            try:
                each.writer.close()
            except Exception as error:  # noqa: BLE001 - close the other writers, too
                try:
                    _raise_writer_error(each, "when it closes", error)
                except (NutchError, OSError, MemoryError) as failure:
                    failures.append(failure)
        if failures:
            raise failures[0]

    def _close_quietly(self) -> None:
        try:
            self.close()
        except (NutchError, OSError):
            return  # the first failure is reported

    def describe(self) -> str:
        """Return the active writers, in Nutch 2's layout."""
        if not self._writers:
            return "No IndexWriters activated - check your configuration\n"
        return "Active IndexWriters :\n" + "".join(f"{each.writer.describe()}\n" for each in self._writers)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._close_quietly()


def _is_near(new: float | None, old: float | None, tolerance: float) -> bool:
    """Return whether a number differs from the one of the index by the tolerance at most."""
    if new is None or old is None:
        return new is old
    return abs(new - old) <= max(tolerance, _FLOAT_PRECISION) * abs(old)


def _preserves_score(mapping: FieldMapping) -> bool:
    touched = {*mapping.copy, *mapping.rename, *mapping.remove, *mapping.rename.values()}
    copies = {name for names in mapping.copy.values() for name in names}
    return (touched | copies).isdisjoint({"id", "pagerank"})


def _raise_writer_error(each: _ConfiguredWriter, action: str, error: Exception) -> NoReturn:
    """Raise a writer's error with the name of the writer, which stops the job: its documents are not sent.

    The project's own errors and those of the system (such as a full disk) are raised unchanged.
    """
    if isinstance(error, NutchError | OSError | MemoryError):
        raise error
    raise IndexingError(f"plug-in {each.name} failed {action}: {describe_exception(error)}") from error


def enabled_writers(conf: Configuration) -> dict[str, PluginClass]:
    """Return the enabled writers by plugin id: those in ``plugin.includes``.

    When it has none, as the shipped one, writers with an address (``solr.server.url``, ``elastic.host``) are enabled;
    without an address indexer-embedded. ``plugin.excludes`` always applies.
    """
    named = enabled_plugins(conf, "indexwriter")
    if named:
        return named
    ids = [plugin_id for name, plugin_id in _ADDRESS_PROPERTIES.items() if conf.get_trimmed(name)] or [
        "indexer-embedded"
    ]
    without_choice = conf.copy()
    without_choice.set("plugin.includes", "|".join(ids))
    return enabled_plugins(without_choice, "indexwriter")


def describe_local_writers(conf: Configuration) -> str:
    """Return the names of enabled writers whose index is a local directory or file, joined by "and"."""
    return " and ".join(name for name in enabled_writers(conf) if name in _LOCAL_WRITERS)


def _iter_configured_writers(conf: Configuration) -> Iterator[_ConfiguredWriter]:
    plugins = enabled_writers(conf)
    root = conf.resource_xml(conf.get_trimmed("indexer.indexwriters.file", "index-writers.xml"))
    named: set[str] = set()
    for element in root.iter("writer") if root is not None else ():
        class_name = (element.get("class") or "").strip()
        plugin_id = next((i for i, plugin in plugins.items() if class_name in plugin.names), None)
        if plugin_id is None:
            continue  # as in Nutch 1: its plug-in is not enabled
        named.add(plugin_id)
        parameters = {p.get("name", ""): p.get("value", "") for p in element.iterfind("parameters/param")}
        mapping = FieldMapping.from_writer_xml(element.find("mapping"))
        yield _ConfiguredWriter(element.get("id") or plugin_id, plugins[plugin_id](conf), parameters, mapping)
    for plugin_id, plugin in plugins.items():
        if plugin_id not in named:
            yield _ConfiguredWriter(plugin_id, plugin(conf), {}, FieldMapping())


def _warn_about_unused_addresses(conf: Configuration) -> None:
    """Warn about a server address whose writer does not run because ``plugin.includes`` names others."""
    running = enabled_writers(conf)
    for name, plugin_id in _ADDRESS_PROPERTIES.items():
        alternative = conf.copy()
        alternative.set("plugin.includes", plugin_id)
        if conf.get_trimmed(name) and plugin_id not in running and enabled_plugins(alternative, "indexwriter"):
            warn(
                f"{name} is set, but plugin.includes names {' and '.join(running)}: nothing is sent there; "
                f"add {plugin_id} to plugin.includes, or remove the writers from it"
            )


def missing_id_error(document: NutchDocument) -> IndexingError:
    """Return the error for a document without an id, due to a mapping or a filter."""
    return IndexingError(
        f"the document of {document.get('url') or 'a page'} has no field id: "
        "do not rename or remove id in index-writers.xml"
    )
