"""Statistics of a fetch: histograms of responses and failures by host.

Exports: ``fetch_histogram.list_buckets``, ``host_failures.HostFailures``.
"""
