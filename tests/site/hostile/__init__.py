"""A web of hostile servers: one path per trick, each on its own loopback address.

``python -m tests.site.hostile`` serves it and prints its seed list.
"""
