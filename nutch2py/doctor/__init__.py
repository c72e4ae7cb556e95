"""Health checks of a crawl: configuration, machine, tables, index, cluster and last jobs.

Exports: ``check_runner.run_checks``, ``check_result.CheckResult``, ``check_result.CheckStatus``.
"""
