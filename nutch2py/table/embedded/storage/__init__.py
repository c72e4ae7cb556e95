"""On-disk format of the embedded store: LMDB environments, packing, migrations, schema.

Exports: ``table_files.TableFiles``, ``packing.unpack_columns``, ``migrations.migrate``.
"""
