"""robots.txt: parsing, matching and caching of rules."""
