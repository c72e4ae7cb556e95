"""Suggestions: spelling, prefix terms and completion.

Exports: ``spelling.SpellingCorrector``, ``suggester.Suggester``, ``prefix_terms.PrefixTerm``.
"""
