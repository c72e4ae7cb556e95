"""The inject job and its seed files.

Exports: ``inject_job.inject``, ``seeds.find_seed_files``, ``seeds.parse_seed_line``.
"""
