"""Tools outside the crawl cycle: checkers, link readers, web graph, domain statistics, cluster package."""
