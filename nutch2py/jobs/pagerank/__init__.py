"""The pagerank job: link graph, and ranks computed in memory or by MapReduce.

Exports: ``pagerank_job.pagerank``, ``pagerank_job.PageRankResult``.
"""
