"""robots.txt: parsing, matching and caching of rules.

Exports: ``robots_cache.RobotsCache``, ``robots_cache.is_allowed``, ``robots_rules.RobotsRules``.
"""
