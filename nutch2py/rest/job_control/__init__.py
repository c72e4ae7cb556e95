"""Job control of the REST API: job processes, schedules, seed lists and configurations.

Exports: ``job_processes.JobProcessManager``, ``job_processes.JobProcess``, ``schedules.StoredSchedule``.
"""
