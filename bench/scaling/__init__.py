"""Modelled cost of jobs on larger clusters, from measured costs (``scripts/bench scale``)."""
