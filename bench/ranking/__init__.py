"""How good the ranking is: real Chinese pages are crawled, indexed and judged (docs/ranking.md)."""
