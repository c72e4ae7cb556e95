"""Index writers: plug-ins that send documents to an index."""
