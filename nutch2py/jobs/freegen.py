"""FreeGeneratorJob: a batch of the URLs of a seed file, whether they are due or not.

Nutch 1 makes a segment of them that its crawl db need not know. Here the batch is of rows, as every batch is: URLs that
the table does not have are injected, rows that it has stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.conf import Configuration
from nutch2py.jobs.beginning import CrawlTables
from nutch2py.jobs.due_rows import Looking
from nutch2py.jobs.generate import GenerateParameters, GenerateResult, GeneratorJob, checked_batch_id, make_batch
from nutch2py.jobs.inject import inject
from nutch2py.jobs.job_lines import JobLines
from nutch2py.jobs.seeds import named_seeds, parse_seed_line, seed_files
from nutch2py.jobs.selection import SEPARATOR, entry_text
from nutch2py.mapreduce.driver import map_tasks, reduce_tasks
from nutch2py.mapreduce.hadoop import local_copy
from nutch2py.mapreduce.job import Pair
from nutch2py.mapreduce.protocol import descending
from nutch2py.mapreduce.splits import FileSplit, read_lines, split_files
from nutch2py.plugin_guard import PluginError
from nutch2py.table.clock import now_ms
from nutch2py.url.keys import reverse_url
from nutch2py.url.partition import seed_of
from nutch2py.url.url_filters import URLFilters
from nutch2py.url.url_normalizers import URLNormalizers
from nutch2py.webpage import Mark

_ROWS = 1000  # looked up at once


class FreeGeneratorJob(GeneratorJob):
    """Lines of seed files to a batch list and marks."""

    title = "FreeGenerator"

    def map_file(self, split: FileSplit) -> Iterator[Pair]:
        """Yield the entries of the URLs that the table has, but for those of another batch that is open."""
        asked = self.parameters
        normalize = URLNormalizers(self.conf, "inject").normalize_or_raise if asked.normalize else str
        accept = URLFilters(self.conf).accept if asked.filter_urls else str
        pending: dict[str, str] = {}
        for line in read_lines(split):
            for seed in parse_seed_line(line.decode("utf-8", "replace").removeprefix("\ufeff")):
                if seed.sitemap:
                    continue  # a batch has sitemaps, or it has pages
                try:
                    url = accept(normalize(seed.url) or "")
                    key = reverse_url(url) if url else ""
                except (ValueError, PluginError):
                    key = ""  # inject has said why
                if key and url:
                    pending[key] = url
            if len(pending) >= _ROWS:
                yield from self._entries(pending)
            self.channel.advance()
        yield from self._entries(pending)

    def _entries(self, urls: dict[str, str]) -> Iterator[Pair]:
        for (key, url), row in zip(urls.items(), self.store.get_many([*urls], self.fields), strict=True):
            if row is None or not self.readable(key, row):
                continue
            mark = row.markers.get(Mark.GENERATE)
            if mark is not None and not self.free(mark):
                self.count("generator", "already_generated")
                continue
            yield self.bucket("", url), f"{entry_text(descending(row.score), url)}{SEPARATOR}"
        urls.clear()


def freegen(
    conf: Configuration, seed_dir: str, *, filter_urls: bool = False, normalize: bool = False, batch_id: str = ""
) -> GenerateResult:
    """Make a batch of the URLs of a file or folder; return what :func:`~nutch2py.jobs.generate.generate` does.

    ``filter_urls``, ``normalize``: whether filters and normalizers see them; a URL that they refuse is left out.
    """
    conf = conf.copy()
    conf.set("generate.max.count", -1)  # who names URLs wants them all
    batch_id = checked_batch_id(batch_id)
    parameters = GenerateParameters(
        batch_id=batch_id,
        now=now_ms(),
        filter_urls=filter_urls,
        normalize=normalize,
        partitions=reduce_tasks(conf),
        seed=seed_of(conf, batch_id),
    )
    with local_copy(conf, named_seeds(seed_dir)) as path:
        inject(conf, str(path), filter_urls=filter_urls, normalize=normalize)
        log = JobLines("FreeGenerator")

        def rows(_: CrawlTables) -> Looking:
            return Looking([*split_files(seed_files(path), map_tasks(conf))])

        made = make_batch(conf, log, FreeGeneratorJob, parameters, rows)
        if taken := made.count("generator", "already_generated"):
            log.line(f"{taken} URLs are in batches that are open, which readdb -batches lists")
        return made
