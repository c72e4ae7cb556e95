"""URL normalizers: plug-ins that rewrite URLs to a canonical form, and their chain.

Exports: ``url_normalizers.URLNormalizers``.
"""
