"""Jobs over table ranges, on mrjob."""

PACKAGE_FOLDER = "nutch2py-package"
"""What a task on a cluster finds the unpacked package as, in its working directory: ``lib`` and ``conf`` are in it."""
NLINE = "org.apache.hadoop.mapred.lib.NLineInputFormat"
WARNING = "WARN "
"""How a warning begins (:func:`nutch2py.conf.warn`)."""
