"""SendingJob: what the jobs that send documents to the index have in common."""

from __future__ import annotations

from nutch2py.conf import Configuration
from nutch2py.document import NutchDocument
from nutch2py.indexer.building import DocumentBuilder, IndexAction
from nutch2py.indexer.index_writers import IndexWriters, local_indexes
from nutch2py.mapreduce.driver import JobResult
from nutch2py.mapreduce.job import P, TableJob
from nutch2py.plugin_guard import PluginError
from nutch2py.webpage import WebPage

STATUS = "IndexerStatus"
"""The counter group of these jobs."""


class SendingJob(TableJob[P]):
    """A job whose map tasks make documents of rows, and send them."""

    reduce_steps = 0
    plugin_points = ("indexingfilter", "scoringfilter")

    @classmethod
    def local_outputs(cls, conf: Configuration, parameters: P) -> str:
        """Return the writers that run whose index is a folder or a file."""
        return local_indexes(conf)

    def prepare(self) -> None:
        """Load the filters."""
        self.builder = DocumentBuilder(self.conf)

    def decided(self, key: str, page: WebPage) -> tuple[IndexAction, NutchDocument | None] | None:
        """Return what is done with a row, and its document; None when a plug-in failed: the row is left as it was."""
        self.failures.pages += 1
        try:
            return self.builder.decide(key, page)
        except PluginError as error:
            self.failures.note(error)
            self.count(STATUS, "failed")
            return None

    def commit(self, writers: IndexWriters) -> None:
        """Commit at the end of a task, and count what the index has refused."""
        writers.commit()
        if writers.refused:
            self.count(STATUS, "refused", writers.refused)


def not_sent(result: JobResult) -> str:
    """Return what was refused or failed, to be put behind what a job says that it has done; "" for none."""
    refused, failed = (result.count(STATUS, name) for name in ("refused", "failed"))
    return (f", {refused} refused by the index" if refused else "") + (
        f", {failed} failed in a plug-in" if failed else ""
    )
