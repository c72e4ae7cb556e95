"""Base class of jobs that send documents to the index."""

from __future__ import annotations

from nutch2py.conf.configuration import Configuration
from nutch2py.indexer.document_builder import DocumentBuilder, IndexAction
from nutch2py.indexer.index_writers import IndexWriters, describe_local_writers
from nutch2py.mapreduce.driver import JobResult
from nutch2py.mapreduce.table_job import ParametersT, TableJob
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.document import NutchDocument
from nutch2py.records.webpage import WebPage

STATUS_GROUP = "IndexerStatus"
"""Counter group of these jobs."""


class BaseIndexJob(TableJob[ParametersT]):
    """A job in which map tasks build documents from rows and send them."""

    reduce_steps = 0
    plugin_points = ("indexingfilter", "scoringfilter")

    @classmethod
    def describe_local_outputs(cls, conf: Configuration, parameters: ParametersT) -> str:
        """Return the enabled writers with a local folder or file as index."""
        return describe_local_writers(conf)

    def prepare(self) -> None:
        """Load the filters."""
        self.builder = DocumentBuilder(self.conf)

    def decide(self, key: str, page: WebPage) -> tuple[IndexAction, NutchDocument | None] | None:
        """Return the action for a row and its document; None if a plug-in failed, so the row stays unchanged."""
        self.plugin_failures.pages += 1
        try:
            return self.builder.decide_action(key, page)
        except PluginError as error:
            self.plugin_failures.record(error)
            self.count(STATUS_GROUP, "failed")
            return None

    def commit(self, writers: IndexWriters) -> None:
        """Commit at the end of a task, and count the documents that the index rejected."""
        writers.commit()
        if writers.rejected:
            self.count(STATUS_GROUP, "rejected", writers.rejected)


def format_unsent(result: JobResult) -> str:
    """Return the rejected and failed documents as suffix of a summary line; "" for none."""
    rejected, failed = (result.count(STATUS_GROUP, name) for name in ("rejected", "failed"))
    return (f", {rejected} rejected by the index" if rejected else "") + (
        f", {failed} failed in a plug-in" if failed else ""
    )
