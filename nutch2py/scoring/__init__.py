"""Scoring: what pages are worth, as plug-ins that :class:`~nutch2py.scoring.filters.ScoringFilters` runs in order."""
