"""REST API: jobs as child processes, crawl data, schedules and configurations, also under the paths of Nutch 2.

Exports: ``api_routes.rest_routes``, ``context.RestContext``, ``http_error.HttpError``.
"""
