"""Runners of MapReduce jobs: inline, local, Spark and Hadoop."""
