"""Suggestions: spelling, prefix terms and completion.

Exports: ``spelling.correct_query``, ``suggester.Suggester``, ``prefix_terms.PrefixTerm``.
"""
