"""Process-level services of a fetch: file descriptors, garbage collection, event loop watchdog, signals."""
