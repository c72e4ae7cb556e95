"""nutch2py: the successor of Apache Nutch 2 in Python. One table is the whole state of a crawl."""

__version__ = "0.1.0"
