"""Counts of ``readdb -stats``, collected by map tasks and merged by the driver; converts all other forms of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nutch2py.joblog.table_stats import ScoreSummary, TableStats
from nutch2py.jobs.row_output.row_text import format_float, format_status, parse_status_name, protocol_status_name
from nutch2py.records.cells import ParseStatus
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import CrawlStatus, WebPage
from nutch2py.table.due_index import RowStatistics, score_thousandths
from nutch2py.url.keys import reversed_host_of_key, unreverse_host


def get_status_name(status: int) -> str:
    """Return the name of a status as ``readdb -stats`` prints it: ``status_fetched``; ``null`` for any other."""
    return CrawlStatus(status).label if status in [*CrawlStatus] else "null"


class StatsCollector:
    """Counts rows by status, retries, protocol and parse status, and by host when ``sort`` is set; score bounds.

    Attributes:
        FIELDS: Fields that :meth:`add` reads.
        sort: Count by host, too.
        kept: The statistics are those kept with the table.
        total: Number of rows.
        status: Rows by :class:`~nutch2py.records.webpage.CrawlStatus`; 0: neither fetched nor linked to.
        hosts: Rows by status and host.
        retries: Rows by number of failed fetches since the last success.
        protocol: Rows by name of the protocol status.
        parse: Rows by name of the parse status.
        score_sum: Sum of the scores in thousandths.
        score_min: Lowest score in thousandths; None without rows.
        score_max: Highest score in thousandths; None without rows.
    """

    FIELDS: frozenset[RecordField] = frozenset(
        {
            WebPage.status,
            WebPage.retries_since_fetch,
            WebPage.score,
            WebPage.fetch_interval,
            WebPage.protocol_status,
            WebPage.parse_status,
        }
    )
    """Fields that :meth:`add` reads; every row has ``fetch_interval``, so no row is missed."""

    def __init__(self, sort: bool = False) -> None:
        self.sort = sort
        self.kept = False
        self.total = 0
        self.status: Counter[int] = Counter()
        self.hosts: Counter[tuple[int, str]] = Counter()
        self.retries: Counter[int] = Counter()
        self.protocol: Counter[str] = Counter()
        self.parse: Counter[str] = Counter()
        self.score_sum = 0
        self.score_min: int | None = None
        self.score_max: int | None = None

    def add(self, key: str, page: WebPage) -> None:
        """Count a row; its host is part of the row ``key``."""
        self.total += 1
        self.status[page.status] += 1
        self.retries[page.retries_since_fetch] += 1
        if self.sort:
            host = unreverse_host(reversed_host_of_key(key))
            self.hosts[page.status, host] += 1
        if page.protocol_status is not None:
            self.protocol[protocol_status_name(page.protocol_status.code)] += 1
        if page.parse_status is not None:
            self.parse[parse_status_name(page.parse_status)] += 1
        self._merge_scores(score := score_thousandths(page.score), score, score)

    def _merge_scores(self, total: int, minimum: int, maximum: int) -> None:
        self.score_sum += total
        self.score_min = minimum if self.score_min is None else min(self.score_min, minimum)
        self.score_max = maximum if self.score_max is None else max(self.score_max, maximum)

    def merge(self, other: StatsCollector) -> None:
        """Add the counts of another collector."""
        self.total += other.total
        self.status += other.status
        self.hosts += other.hosts
        self.retries += other.retries
        self.protocol += other.protocol
        self.parse += other.parse
        if other.score_min is not None and other.score_max is not None:
            self._merge_scores(other.score_sum, other.score_min, other.score_max)

    def to_json(self) -> dict[str, object]:
        """Return the counts as JSON types for :meth:`from_json`."""
        return {
            "sort": self.sort,
            "total": self.total,
            "status": [*self.status.items()],
            "hosts": [[status, host, count] for (status, host), count in self.hosts.items()],
            "retries": [*self.retries.items()],
            "protocol": dict(self.protocol),
            "parse": dict(self.parse),
            "score": [self.score_sum, self.score_min, self.score_max],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StatsCollector:
        """Return the collector that :meth:`to_json` wrote."""
        stats = cls(data["sort"])
        stats.total = data["total"]
        stats.status = Counter(dict(data["status"]))
        stats.hosts = Counter({(status, host): count for status, host, count in data["hosts"]})
        stats.retries = Counter(dict(data["retries"]))
        stats.protocol, stats.parse = Counter(data["protocol"]), Counter(data["parse"])
        stats.score_sum, stats.score_min, stats.score_max = data["score"]
        return stats

    @classmethod
    def from_row_statistics(cls, kept: RowStatistics) -> StatsCollector:
        """Return the collector of a full scan from the statistics kept with the table."""
        stats = cls()
        stats.kept, stats.total = True, kept.total
        for counts, found in ((stats.status, kept.status), (stats.retries, kept.retries)):
            counts.update(+found)
            if absent := kept.total - found.total():  # a missing cell reads as 0
                counts[0] += absent
        for code, count in kept.protocol.items():
            stats.protocol[protocol_status_name(code)] += count
        for (major, minor), count in kept.parse.items():
            stats.parse[parse_status_name(ParseStatus(major, minor))] += count
        scores = +(kept.scores + Counter({0: kept.total - kept.scores.total()}))
        for score, count in scores.items():
            stats._merge_scores(score * count, score, score)
        return stats

    @classmethod
    def from_table_stats(cls, table_stats: TableStats) -> StatsCollector:
        """Return the collector of stored table statistics; statuses without a name count as 0."""
        stats = cls()
        codes = {status.label: int(status) for status in CrawlStatus}
        stats.total = table_stats.rows
        for name, count in table_stats.status.items():
            stats.status[codes.get(name, 0)] += count
        stats.retries.update({int(times): count for times, count in table_stats.retries.items()})
        stats.protocol.update(table_stats.protocol)
        stats.parse.update(table_stats.parse)
        if table_stats.score is not None:
            minimum, mean, maximum = (each * 1000.0 for each in table_stats.score)
            stats.score_min, stats.score_max = round(minimum), round(maximum)
            stats.score_sum = round(mean * table_stats.rows)
        return stats

    def to_table_stats(self, counted_at: int, due_rows: int | None = None) -> TableStats:
        """Return the counts as table statistics; ``counted_at``: ms since 1970."""
        status: dict[str, int] = {}
        for code, count in sorted(self.status.items()):
            status[get_status_name(code)] = status.get(get_status_name(code), 0) + count
        score = None
        if self.score_min is not None and self.score_max is not None:
            sums = self.score_min, self.score_sum / self.total, self.score_max
            score = ScoreSummary(*(each / 1000.0 for each in sums))
        retries = {str(times): count for times, count in sorted(self.retries.items())}
        return TableStats(
            counted_at, self.total, status, retries, dict(self.protocol), dict(self.parse), score, due_rows
        )

    def format_lines(self, show_host: Callable[[str], str] = str) -> list[str]:
        """Return ``name:<TAB>value`` lines: those of Nutch 2, then rows by protocol and by parse status.

        With ``sort``, the hosts of a status follow its line, most rows first. (Nutch 2 prints a host once, with the
        count of one of its statuses, and all lines in no order.)
        """
        lines = [f"TOTAL urls:\t{self.total}"]
        # in text order, as Nutch: "retry 10" before "retry 2"
        lines += sorted(f"retry {retries}:\t{count}" for retries, count in self.retries.items())
        if self.score_min is not None and self.score_max is not None:
            lines.append(f"min score:\t{format_float(self.score_min / 1000.0)}")
            lines.append(f"avg score:\t{format_float(self.score_sum / self.total / 1000.0)}")
            lines.append(f"max score:\t{format_float(self.score_max / 1000.0)}")
        for status, count in sorted(self.status.items()):
            lines.append(f"status {format_status(status)}:\t{count}")
            hosts = [(-rows, host) for (of, host), rows in self.hosts.items() if of == status]
            lines += [f"{show_host(host)}:\t{-rows}" for rows, host in sorted(hosts)]
        lines += [f"protocol {name}:\t{count}" for name, count in sorted(self.protocol.items())]
        lines += [f"parse {name}:\t{count}" for name, count in sorted(self.parse.items())]
        return lines

    def format_text(self, more_lines: Iterable[str] = (), show_host: Callable[[str], str] = str) -> str:
        """Return :meth:`format_lines` and ``more_lines``, between the first and last line of Nutch's WebTableReader."""
        lines = ["Statistics for WebTable: ", *self.format_lines(show_host), *more_lines, "WebTable statistics: done"]
        return "\n".join(lines) + "\n"
