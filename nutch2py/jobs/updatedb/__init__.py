"""The updatedb job: inverted links and new row values.

Exports: ``updatedb_job.updatedb``.
"""
