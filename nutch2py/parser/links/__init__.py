"""Links of pages: resolving, extracting and filtering outlinks."""
