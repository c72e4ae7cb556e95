"""Table statistics: collector, snapshot, histograms and quantiles.

Exports: ``stats_collector.StatsCollector``, ``stats_snapshot.snapshot_table_stats``,
``histograms.HistogramCollector``.
"""
