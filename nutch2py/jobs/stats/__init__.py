"""Table statistics: collector, kept statistics, histograms and quantiles.

Exports: ``stats_collector.StatsCollector``, ``kept_stats.snapshot_table_stats``,
``page_histograms.PageHistograms``.
"""
