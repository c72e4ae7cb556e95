"""The readdb command: rows, dumps and statistics.

Exports: ``readdb_commands.collect_stats``, ``readdb_dump.dump_table``.
"""
