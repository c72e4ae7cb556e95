"""The job log of a crawl: what its jobs did and do, snapshots of the table, and an overview of it, for who watches."""
