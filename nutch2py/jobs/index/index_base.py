"""SendingJob: what the jobs that send documents to the index have in common."""

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
"""The counter group of these jobs."""


class BaseIndexJob(TableJob[ParametersT]):
    """A job whose map tasks make documents of rows, and send them."""

    reduce_steps = 0
    plugin_points = ("indexingfilter", "scoringfilter")

    @classmethod
    def describe_local_outputs(cls, conf: Configuration, parameters: ParametersT) -> str:
        """Return the writers that run whose index is a folder or a file."""
        return describe_local_writers(conf)

    def prepare(self) -> None:
        """Load the filters."""
        self.builder = DocumentBuilder(self.conf)

    def decide(self, key: str, page: WebPage) -> tuple[IndexAction, NutchDocument | None] | None:
        """Return what is done with a row, and its document; None when a plug-in failed: the row is left as it was."""
        self.plugin_failures.pages += 1
        try:
            return self.builder.decide_action(key, page)
        except PluginError as error:
            self.plugin_failures.record(error)
            self.count(STATUS_GROUP, "failed")
            return None

    def commit(self, writers: IndexWriters) -> None:
        """Commit at the end of a task, and count what the index has refused."""
        writers.commit()
        if writers.rejected:
            self.count(STATUS_GROUP, "refused", writers.rejected)


def format_unsent(result: JobResult) -> str:
    """Return what was refused or failed, to be put behind what a job says that it has done; "" for none."""
    refused, failed = (result.count(STATUS_GROUP, name) for name in ("refused", "failed"))
    return (f", {refused} refused by the index" if refused else "") + (
        f", {failed} failed in a plug-in" if failed else ""
    )
