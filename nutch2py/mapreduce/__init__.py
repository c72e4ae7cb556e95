"""Jobs over table ranges, on mrjob."""

PACKAGE_DIR = "nutch2py-package"
"""What a task on a cluster finds the unpacked package as, in its working directory: ``lib`` and ``conf`` are in it."""
NLINE_INPUT_FORMAT = "org.apache.hadoop.mapred.lib.NLineInputFormat"
WARNING_PREFIX = "WARN "
"""How a warning begins (:func:`nutch2py.conf.configuration.warn`)."""
