"""Search quality on public judged collections, next to BM25 (bm25s) in the same run."""
