"""Table maintenance: create, copy, import, export, check, due index."""
