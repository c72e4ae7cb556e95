"""Table maintenance: create, copy, import, export, check, due index.

Exports: ``table_maintenance.export_to_file``, ``table_maintenance.import_from_file``,
``table_maintenance.check_tables``, ``table_maintenance.manage_due_index``.
"""
