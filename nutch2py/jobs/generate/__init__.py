"""The generate job: candidates, top N, batch lists; and freegen."""
