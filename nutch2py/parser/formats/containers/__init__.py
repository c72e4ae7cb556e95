"""Container formats: ZIP packages and OLE compound files."""
