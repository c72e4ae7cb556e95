"""Job locks: which jobs exclude each other, and the lock itself."""
