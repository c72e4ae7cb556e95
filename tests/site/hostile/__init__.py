"""A web of servers that do what no server should: one path a trick, each on a loopback address of its own.

``python -m tests.site.hostile`` serves it and prints its seed list.
"""
