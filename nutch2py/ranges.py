"""What every property that is a number may be: the one place, which the typed getters of the configuration ask.

A property that is not here may be any number of its type: a whole one of 64 bits, any finite other one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

INT, LONG = 2**31 - 1, 2**63 - 1
_FLOAT = 3.4028234663852886e38  # the greatest of four bytes


class Range(NamedTuple):
    """From ``low`` to ``high``, both included; ``whole`` numbers only."""

    low: float
    high: float
    whole: bool = True

    def holds(self, number: float) -> bool:
        """Tell whether a number is in the range; NaN and infinity are in none."""
        return math.isfinite(number) and self.low <= number <= self.high

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {_shown(self.low)} to {_shown(self.high)}"


def _shown(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"


ANY_WHOLE, ANY_NUMBER = Range(-LONG - 1, LONG), Range(-_FLOAT, _FLOAT, whole=False)
_SEVERAL, _ANY_COUNT, _OR_NONE = Range(1, INT), Range(0, INT), Range(-1, INT)
_NEGATIVE_IS_ANY = Range(-INT - 1, INT)
_BYTES, _BYTES_OR_NONE = Range(1, LONG), Range(-1, LONG)
_SECONDS, _WAIT, _WAIT_OR_NONE = Range(0, INT, False), Range(0.001, INT, False), Range(-1, INT, False)
_SHARE, _SCORE, _POWER = Range(0, 1, False), ANY_NUMBER, Range(-100, 100, False)
COUNT, DAYS = Range(0, INT), Range(-36_500, 36_500, False)
_PORT = Range(1, 65535)

_NAMES: Mapping[Range, str] = {
    _SEVERAL: """
        rest.jobs.running
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
    _ANY_COUNT: """
        rest.jobs.keep
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
    _OR_NONE: """
        db.max.anchor.length generate.max.count generate.max.distance generate.min.interval fetcher.max.crawl.delay
        fetcher.timelimit.mins fetcher.max.exceptions.per.queue fetcher.max.pages.per.queue
        fetcher.throughput.threshold.pages fetcher.follow.outlinks.depth fetcher.bandwidth.target
        fetcher.redirect.dedupcache.seconds indexer.max.title.length indexer.max.content.length solr.commit.within
        urlfilter.fast.url.max.length urlfilter.fast.url.path.max.length urlfilter.fast.url.query.max.length
        parser.html.outlinks.max.target.length scoring.depth.max.override urlfilter.tld.length
    """,
    _NEGATIVE_IS_ANY: """
        db.max.outlinks.per.page db.max.outlink.length partition.url.seed http.url.limit hbase.client.keyvalue.maxsize
    """,
    _BYTES: """
        rest.body.max.bytes rest.audit.max.bytes
        storage.buffer.write.bytes storage.embedded.map.size storage.import.line.bytes hbase.thrift.scan.bytes
        hbase.thrift.write.bytes fetcher.warc.size browser.bytes.limit browser.context.bytes http.robots.cache.bytes
        parser.unpack.max.bytes parser.structured.max.bytes sitemap.size.max
    """,
    Range(0, 36_500, False): "hbase.due.look.days index.search.freshness",
    Range(0, LONG): "crawl.gen.delay hostdb.recheck.interval pagerank.memory.limit",
    _BYTES_OR_NONE: "http.content.limit file.content.limit ftp.content.limit sitemap.content.limit",
    _SECONDS: """
        rest.requests.per.second
        fetcher.server.delay fetcher.server.min.delay fetcher.min.crawl.delay fetcher.exceptions.per.queue.delay
        fetcher.threads.slow.after
        fetcher.exceptions.per.queue.clear.after fetcher.throughput.threshold.check.after index.lock.timeout
        service.wait.seconds elastic.bulk.close.timeout pagerank.tolerance libselenium.page.load.delay
    """,
    _WAIT: """
        solr.timeout elastic.timeout http.dns.timeout browser.time.limit browser.idle.limit browser.start.timeout
        fetcher.scrapy.time.limit
    """,
    _WAIT_OR_NONE: """
        http.time.limit parser.timeout sitemap.parser.timeout fetcher.max.retry.after fetcher.max.trouble.per.queue
        parser.domain.seconds
    """,
    Range(0, 1_000_000, True): "joblog.keep",
    Range(0.001, 600, False): "crawl.lock.lease",  # so long a job waits for one that has died on another machine
    Range(1, INT, False): "db.fetch.schedule.adaptive.min_interval db.fetch.schedule.adaptive.max_interval",
    Range(0, 1000, False): "db.fetch.schedule.adaptive.inc_rate",  # a second to a week in two fetches
    Range(0, 100, False): "index.search.together",
    _SHARE: """
        storage.import.bad.share generate.due.share plugin.failures.share db.fetch.schedule.adaptive.dec_rate
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
    Range(-1, 100): "encodingdetector.charset.min.confidence",
    Range(0, 7): "deduplication.simhash.threshold",
    Range(0, 65535): "serve.port nutchserver.port",
    Range(64, INT): "browser.memory.limit",
    Range(1, 100): "browser.screenshot.quality",
    Range(100, 10_000): "browser.width browser.height",
    _PORT: "http.proxy.port elastic.port hbase.indexer.zookeeper.property.clientPort",
}

RANGES: Mapping[str, Range] = {name: each for each, names in _NAMES.items() for name in names.split()}
"""The range of each property that is a number, by name."""
