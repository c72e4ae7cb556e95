"""Analysis, document weights, embedded index and search-server clients: shared by the index writers and the search.

Exports: ``document_weights.DocumentWeights``, ``index_fields.TERMS_PREFIX``, ``index_fields.FACET_NAMES``.
"""
