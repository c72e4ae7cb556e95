"""Parse filters: plug-ins that add metadata to a parsed page.

Exports: ``language_identifier.LANGUAGE_KEY``, ``language_identifier.LanguagePolicy``,
``structured_filter.STRUCTURED_DATA_KEY``.
"""
