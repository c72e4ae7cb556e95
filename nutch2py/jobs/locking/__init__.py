"""Job locks: which jobs exclude each other, and the lock itself.

Exports: ``job_lock.hold_job_lock``, ``lock_scopes.make_reader_scope``.
"""
