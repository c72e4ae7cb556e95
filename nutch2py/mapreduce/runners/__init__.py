"""Runners of MapReduce jobs: inline, local, Spark and Hadoop.

Exports: ``hadoop``, ``local_runners``, ``fork_server.ForkServer``, ``job_dir.create_job_dir``.
"""
