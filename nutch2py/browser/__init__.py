"""Browser rendering for pages that need JavaScript (``protocol-browser``).

The fetcher requests each page as usual. A response selected by rules or by measured signs is loaded into Chromium,
which sends all further requests through a filtering proxy. The resulting document becomes the content.

Exports: ``renderer_factory.open_renderer``, ``render_diff.format_render_diff``.
"""
