"""HTTP server and search page.

Exports: ``http_server.serve``, ``http_server.nutchserver``, ``http_server.stop_nutchserver``.
"""
