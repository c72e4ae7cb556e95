"""The REST interface: jobs as child processes, what is in a crawl, schedules, settings; Nutch 2's own paths beside."""
