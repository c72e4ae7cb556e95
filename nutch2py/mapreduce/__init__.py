"""MapReduce jobs over table ranges, based on mrjob.

Exports: ``table_job.TableJob``, ``driver.run_job``, ``driver.JobResult``, ``job_parameters.JobParameters``.
"""

PACKAGE_DIR = "nutch2py-package"
"""Name of the unpacked package in the working directory of a cluster task; contains ``lib`` and ``conf``."""
NLINE_INPUT_FORMAT = "org.apache.hadoop.mapred.lib.NLineInputFormat"
WARNING_PREFIX = "WARN "
"""Prefix of a warning (:func:`nutch2py.support.reporting.warn`)."""
