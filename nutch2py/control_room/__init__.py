"""Control room: web pages for the operator of a crawl. Pages read stored statistics and never scan the table."""
