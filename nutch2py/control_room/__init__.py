"""The control room: a crawl at a glance, for who operates it. What it shows costs no look at the rows of the table."""
