"""The process during a fetch: file descriptors, garbage collection, watchdog, signals."""
