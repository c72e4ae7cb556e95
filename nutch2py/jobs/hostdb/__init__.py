"""Jobs of the host table.

Exports: ``hostdb_jobs.hostinject``, ``hostdb_jobs.updatehostdb``, ``hostdb_jobs.readhostdb``.
"""
