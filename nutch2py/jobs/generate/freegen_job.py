"""FreeGeneratorJob: make a batch of the URLs of a seed file, whether they are due or not.

Nutch 1 makes a segment that is independent of its crawl db. Here every batch consists of rows: URLs that the table does
not have are injected, and existing rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.jobs.generate.due_scan import GenerateInput
from nutch2py.jobs.generate.generate_job import (
    GenerateParameters,
    GenerateResult,
    GeneratorJob,
    make_batch,
    validate_batch_id,
)
from nutch2py.jobs.generate.top_n import SEPARATOR, format_entry
from nutch2py.jobs.inject.inject_job import inject
from nutch2py.jobs.inject.seeds import find_seed_files, parse_seed_line, require_seed_path
from nutch2py.jobs.job_context import CrawlTables
from nutch2py.jobs.nutch_log_lines import JobLogger
from nutch2py.mapreduce.driver import map_task_count, reduce_task_count
from nutch2py.mapreduce.input_splits import FileSplit, read_split_lines, split_files
from nutch2py.mapreduce.mrjob_protocols import descending_sort_key
from nutch2py.mapreduce.runners.hadoop.hadoop_client import download_input
from nutch2py.mapreduce.table_job import KeyValuePair
from nutch2py.plugins.plugin_failures import PluginError
from nutch2py.records.webpage import Mark
from nutch2py.support.clock import now_ms
from nutch2py.url.filters.url_filters import URLFilters
from nutch2py.url.keys import reverse_url
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.url_partitioner import choose_partition_seed

_ROWS_PER_READ = 1000  # rows looked up at once


class FreeGeneratorJob(GeneratorJob):
    """Lines of seed files to the candidates of a batch."""

    title = "FreeGenerator"

    def map_file(self, split: FileSplit) -> Iterator[KeyValuePair]:
        """Yield the entries of the URLs that the table has, except those of another open batch."""
        parameters = self.parameters
        normalize = URLNormalizers(self.conf, "inject").normalize_or_raise if parameters.normalize else str
        accept = URLFilters(self.conf).filter_link if parameters.filter_urls else str
        pending: dict[str, str] = {}
        for line in read_split_lines(split):
            for seed in parse_seed_line(line.decode("utf-8", "replace").removeprefix("\ufeff")):
                if seed.sitemap:
                    continue  # a batch contains either sitemaps or pages
                try:
                    url = accept(normalize(seed.url) or "")
                    key = reverse_url(url) if url else ""
                except (ValueError, PluginError):
                    key = ""  # inject has logged the reason
                if key and url:
                    pending[key] = url
            if len(pending) >= _ROWS_PER_READ:
                yield from self._iter_entries(pending)
            self.channel.advance()
        yield from self._iter_entries(pending)

    def _iter_entries(self, urls: dict[str, str]) -> Iterator[KeyValuePair]:
        for (key, url), row in zip(urls.items(), self.store.get_many([*urls], self.fields), strict=True):
            if row is None or not self.is_readable(key, row):
                continue
            mark = row.markers.get(Mark.GENERATE)
            if mark is not None and not self.is_free(mark):
                self.count("generator", "already_generated")
                continue
            yield self.bucket_key("", url), f"{format_entry(descending_sort_key(row.score), url)}{SEPARATOR}"
        urls.clear()


def freegen(
    conf: Configuration, seed_dir: str, *, filter_urls: bool = False, normalize: bool = False, batch_id: str = ""
) -> GenerateResult:
    """Make a batch of the URLs of a file or folder; see :func:`~nutch2py.jobs.generate.generate_job.generate`.

    ``filter_urls``, ``normalize``: whether to apply filters and normalizers; a rejected URL is skipped.
    """
    conf = conf.copy()
    conf.set("generate.max.count", -1)  # explicitly listed URLs are all wanted
    batch_id = validate_batch_id(batch_id)
    now = now_ms()
    parameters = GenerateParameters(
        batch_id=batch_id,
        now=now,
        due=now,
        filter_urls=filter_urls,
        normalize=normalize,
        partitions=reduce_task_count(conf),
        seed=choose_partition_seed(conf, batch_id),
    )
    with download_input(conf, require_seed_path(seed_dir)) as path:
        inject(conf, str(path), filter_urls=filter_urls, normalize=normalize)
        log = JobLogger("FreeGenerator")

        def make_input(_: CrawlTables) -> GenerateInput:
            return GenerateInput([*split_files(find_seed_files(path), map_task_count(conf))])

        result = make_batch(conf, log, FreeGeneratorJob, parameters, make_input)
        if skipped := result.count("generator", "already_generated"):
            log.log(f"{skipped} URLs are in other open batches: readdb -batches lists these")
        return result
