"""Statistics of a fetch: histograms of responses and failures by host.

Exports: ``response_histograms.from_job_counters``, ``host_failures.HostFailures``.
"""
