"""Benchmarks of the jobs: ``scripts/bench NAME [ROWS…]`` runs the real command line and reports its cost.

Each module of this package with a function ``measure`` is a subcommand; ``measuring`` and ``report`` are shared.
"""
