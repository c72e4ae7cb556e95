"""The pagerank job: link graph, and ranks computed in memory or by MapReduce."""
