"""On-disk format of the embedded store: LMDB environments, packing, migrations, schema."""
