"""Scoring: what pages are worth, as plug-ins that :mod:`nutch2py.scoring.scoring_filters` runs in order."""
