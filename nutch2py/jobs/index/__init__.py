"""Jobs that send documents to an index or delete them."""
