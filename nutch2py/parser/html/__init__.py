"""HTML: DOM, head directives, outlinks, main text and structured data.

Exports: ``html_parser.HtmlParser``, ``main_text.main_or_full_text``, ``dom.parse_tree``,
``structured_data.extract_structured_data``.
"""
