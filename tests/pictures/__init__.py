"""``scripts/test pictures``: the screenshots of docs/pictures, from a real crawl of the documentation site."""
