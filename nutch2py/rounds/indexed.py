"""Which index a crawl sends to, and whether it can be told scores alone."""

from __future__ import annotations

import hashlib

from nutch2py.conf import Configuration
from nutch2py.errors import NutchError
from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.jobs.index_scores import check_scores
from nutch2py.search.search_backends import backend


def index_name(conf: Configuration) -> str:
    """Return a name of the index, which is another one when its place or its settings are others."""
    return hashlib.sha256(IndexWriters(conf).describe().encode()).hexdigest()


def documents_in_index(conf: Configuration) -> int | None:
    """Return how many documents are in the index; None when it is not one that is asked and takes scores alone."""
    try:
        check_scores(conf)
        return backend(conf).count()
    except NutchError:
        return None
