"""Control room: web pages for the operator of a crawl. Pages read stored statistics and never scan the table.

Exports: ``page_routes.control_room_routes``, ``report.write_report``, ``report.render_json``.
"""
