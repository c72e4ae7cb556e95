"""Links of pages: resolving, extracting and filtering outlinks.

Exports: ``url_reference.clean_reference``, ``outlink_filter.OutlinkFilter``, ``text_link_extractor.extract_links``.
"""
