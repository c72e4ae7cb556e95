"""Measurements of the jobs: ``scripts/bench NAME [ROWS…]`` runs the real command line and says what it cost.

A module of this package that has a function ``measure`` is a subcommand; ``measuring`` and ``report`` serve them all.
"""
