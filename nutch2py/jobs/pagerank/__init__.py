"""The pagerank job: link graph, ranks in memory and by MapReduce."""
