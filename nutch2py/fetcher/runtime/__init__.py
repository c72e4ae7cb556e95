"""Process-level services of a fetch: file descriptors, garbage collection, event loop watchdog, signals.

Exports: ``fd_budget.compute_fd_budget``, ``gc_tuning.relaxed_gc``, ``loop_watchdog.LoopWatchdog``,
``signal_handling.signals_between_steps``.
"""
