"""Ranges of all numeric properties; the typed getters of the configuration check them.

A property that is not listed may be any number of its type: a 64-bit integer, or any finite float.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from nutch2py.errors import UsageError

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
_FLOAT_MAX = 3.4028234663852886e38  # the largest 32-bit integer


class NumberRange(NamedTuple):
    """A range from ``low`` to ``high``, both included; only integers if ``integer``."""

    low: float
    high: float
    integer: bool = True

    def contains(self, number: float) -> bool:
        """Return whether a number is in the range; NaN and infinity are in none."""
        return math.isfinite(number) and self.low <= number <= self.high

    def parse_integer(self, text: str | bytes) -> int | None:
        """Return the whole number in a text, None for one out of the range and for any other text."""
        try:
            number = int(text)
        except ValueError:
            return None
        return number if self.contains(number) else None

    def __str__(self) -> str:
        kind = "a whole number" if self.integer else "a number"
        return f"{kind} from {_format_bound(self.low)} to {_format_bound(self.high)}"


def check_number(name: str, value: object, allowed: NumberRange) -> None:
    """Raise UsageError unless an argument is a number in a range; booleans are not numbers."""
    kinds = (int,) if allowed.integer else (int, float)
    if not isinstance(value, kinds) or isinstance(value, bool) or not allowed.contains(value):
        raise UsageError(f"{name} is {value!r}: give {allowed}")


def _format_bound(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"


ANY_INTEGER, ANY_NUMBER = NumberRange(-LONG_MAX - 1, LONG_MAX), NumberRange(-_FLOAT_MAX, _FLOAT_MAX, integer=False)
_POSITIVE, _NON_NEGATIVE, _MINUS_ONE_OR_MORE = (
    NumberRange(1, INT_MAX),
    NumberRange(0, INT_MAX),
    NumberRange(-1, INT_MAX),
)
_ANY_INT = NumberRange(-INT_MAX - 1, INT_MAX)
_BYTES, _BYTES_OR_MINUS_ONE = NumberRange(1, LONG_MAX), NumberRange(-1, LONG_MAX)
_NON_NEGATIVE_SECONDS, _POSITIVE_SECONDS, _SECONDS_OR_MINUS_ONE = (
    NumberRange(0, INT_MAX, False),
    NumberRange(0.001, INT_MAX, False),
    NumberRange(-1, INT_MAX, False),
)
FRACTION, _SCORE, _POWER = NumberRange(0, 1, False), ANY_NUMBER, NumberRange(-100, 100, False)
COUNT, POSITIVE_COUNT, DAYS = _NON_NEGATIVE, _POSITIVE, NumberRange(-36_500, 36_500, False)
_PORT = NumberRange(1, 65535)
HOST_SETTING_RANGES = {"q_mt": _POSITIVE, "q_cd": _NON_NEGATIVE, "q_mcd": _NON_NEGATIVE}
"""Ranges of the fetch queue's settings in the host table: threads, crawl delay and minimum delay in ms."""

_PROPERTY_NAMES: Mapping[NumberRange, str] = {
    _POSITIVE: """
        rest.jobs.running rest.stored.items
        hbase.thrift.timeout hbase.thrift.connect.timeout hbase.thrift.scan.rows hbase.thrift.write.rows
        gora.buffer.read.limit gora.buffer.write.limit mapreduce.task.timeout
        db.fetch.interval.default db.fetch.interval.max db.signature.text_profile.min_token_len
        fetcher.threads.fetch fetcher.threads.per.queue fetcher.queue.depth.multiplier
        fetcher.throughput.threshold.sequence fetcher.throughput.threshold.retries fetcher.threads.timeout.divisor
        fetcher.follow.outlinks.depth.divisor fetcher.maxNum.threads fetcher.bandwidth.target.check.everyNSecs
        fetcher.scrapy.requests.max
        http.timeout http.header.limit http.header.max.count ftp.timeout ftp.server.timeout
        sitemap.entries.max hostdb.num.resolvers.threads index.embedded.batch
        lang.ngram.min.length lang.ngram.max.length lang.analyze.max.length
        browser.tabs browser.requests.limit browser.loads.limit browser.context.pages browser.restart.pages
        solr.commit.size elastic.max.bulk.docs elastic.max.bulk.size hbase.indexer.commit.size plugin.failures.minimum
    """,
    _NON_NEGATIVE: """
        rest.jobs.keep search.cached.max.characters parser.document.max.characters fetcher.local.failure.interval
        indexer.delete.max.count
        hbase.thrift.gateway.rest hbase.thrift.idle
        mapreduce.job.maps mapreduce.job.reduces db.fetch.retry.max db.update.max.inlinks
        fetcher.threads.slow fetcher.threads.start.delay fetcher.follow.outlinks.num.links
        fetcher.redirect.dedupcache.size http.max.delays http.redirect.max
        http.robots.503.defer.visits.delay http.robots.503.defer.visits.retries http.robots.redirect.max
        http.robots.rules.max http.robots.sitemaps.max parser.child.memory.mb
        parser.html.max.attributes parser.html.max.copies parser.html.max.depth
        parser.unpack.max.documents parser.unpack.max.depth
        parser.unpack.max.ratio sitemap.redir.max urlnormalizer.loop.count
        scoring.depth.max pagerank.iterations link.analyze.num.iterations hostdb.purge.failed.hosts.threshold
        elastic.exponential.backoff.millis elastic.exponential.backoff.retries
    """,
    _MINUS_ONE_OR_MORE: """
        db.max.anchor.length generate.max.count generate.max.distance generate.min.interval fetcher.max.crawl.delay
        fetcher.timelimit.mins fetcher.max.exceptions.per.queue fetcher.max.pages.per.queue
        fetcher.throughput.threshold.pages fetcher.follow.outlinks.depth fetcher.bandwidth.target
        fetcher.redirect.dedupcache.seconds indexer.max.title.length indexer.max.content.length solr.commit.within
        urlfilter.fast.url.max.length urlfilter.fast.url.path.max.length urlfilter.fast.url.query.max.length
        parser.html.outlinks.max.target.length scoring.depth.max.override urlfilter.tld.length
    """,
    _ANY_INT: """
        db.max.outlinks.per.page db.max.outlink.length partition.url.seed http.url.limit hbase.client.keyvalue.maxsize
    """,
    _BYTES: """
        search.response.max.bytes index.response.max.bytes rest.body.max.bytes rest.audit.max.bytes
        rest.job.output.bytes rest.jobs.bytes rest.stored.bytes
        storage.buffer.write.bytes storage.embedded.map.size storage.import.line.bytes hbase.thrift.scan.bytes
        hbase.thrift.write.bytes fetcher.warc.size browser.bytes.limit browser.context.bytes http.robots.cache.bytes
        parser.unpack.max.bytes parser.structured.max.bytes sitemap.size.max
    """,
    NumberRange(0, 36_500, False): "hbase.due.look.days index.search.freshness search.log.keep.days",
    NumberRange(0, LONG_MAX): "crawl.gen.delay hostdb.recheck.interval pagerank.memory.limit",
    _BYTES_OR_MINUS_ONE: "http.content.limit file.content.limit ftp.content.limit sitemap.content.limit",
    _NON_NEGATIVE_SECONDS: """
        rest.requests.per.second serve.store.wait.seconds search.log.requests.per.second
        fetcher.server.delay fetcher.server.min.delay fetcher.min.crawl.delay fetcher.exceptions.per.queue.delay
        fetcher.threads.slow.after
        fetcher.exceptions.per.queue.clear.after fetcher.throughput.threshold.check.after index.lock.timeout
        service.wait.seconds elastic.bulk.close.timeout pagerank.tolerance libselenium.page.load.delay
    """,
    _POSITIVE_SECONDS: """
        solr.timeout elastic.timeout http.dns.timeout browser.time.limit browser.idle.limit browser.start.timeout
        fetcher.scrapy.time.limit search.worker.idle.seconds
    """,
    _SECONDS_OR_MINUS_ONE: """
        http.time.limit parser.timeout sitemap.parser.timeout fetcher.max.retry.after fetcher.max.trouble.per.queue
        fetcher.hold.seconds fetcher.tail.seconds parser.domain.seconds
    """,
    NumberRange(0, 1_000_000, True): "joblog.keep",
    NumberRange(0, 64, True): "search.worker.processes",
    NumberRange(1, 12, True): "search.worker.queue",
    NumberRange(0.01, 3_600, False): "search.worker.cpu.seconds",
    NumberRange(0, 3_600_000, False): "search.worker.min.millis",
    NumberRange(0, 10_000_000, True): "search.log.keep.entries",
    NumberRange(
        0.001, 600, False
    ): "crawl.lock.lease",  # how long a job waits for the lock of a job that died on another machine
    NumberRange(1, INT_MAX, False): "db.fetch.schedule.adaptive.min_interval db.fetch.schedule.adaptive.max_interval",
    NumberRange(
        0, 1000, False
    ): "db.fetch.schedule.adaptive.inc_rate",  # one second to one week, as two fetch intervals
    NumberRange(1, 1000, False): "parser.timeout.wall.factor",
    NumberRange(0, 100, False): "index.search.together index.search.coordination index.search.vector.weight",
    FRACTION: """
        storage.import.bad.share generate.due.share hbase.due.exact.share
        plugin.failures.share db.fetch.schedule.adaptive.dec_rate
        fetcher.local.failure.share indexer.delete.max.share
        index.scores.share crawl.pagerank.share crawl.reindex.share
        db.fetch.schedule.adaptive.sync_delta_rate db.signature.text_profile.quant_rate
        pagerank.base pagerank.external.weight pagerank.navigation.share link.analyze.damping.factor
        index.search.freshness.share
    """,
    _SCORE: """
        db.score.injected db.score.link.external db.score.link.internal generate.min.score pagerank.initial
        link.analyze.normalize.score link.analyze.initial.score link.score.updater.clear.score
    """,
    _POWER: "indexer.score.power index.weight.power",
    NumberRange(-1, 100): "encodingdetector.charset.min.confidence",
    NumberRange(0, 7): "deduplication.simhash.threshold",
    NumberRange(0, 65535): "serve.port nutchserver.port",
    NumberRange(64, INT_MAX): "browser.memory.limit",
    NumberRange(1, 100): "browser.screenshot.quality",
    NumberRange(100, 10_000): "browser.width browser.height",
    _PORT: "http.proxy.port elastic.port hbase.indexer.zookeeper.property.clientPort",
}

PROPERTY_RANGES: Mapping[str, NumberRange] = {
    name: each for each, names in _PROPERTY_NAMES.items() for name in names.split()
}
"""The range of each numeric property, by name."""
