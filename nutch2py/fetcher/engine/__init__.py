"""The fetch loop: feeder, robots policy, extra requests, redirects, backoff, monitor and the run itself.

Exports: ``fetch_run.FetchRun``, ``fetch_run.FetchRunSettings``, ``feeder.RowSource``.
"""
