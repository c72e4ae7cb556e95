"""Container formats: ZIP packages and OLE compound files.

Exports: ``zip_package.ZipPackage``, ``zip_package.xml_events``, ``compound_file.OleFile``.
"""
