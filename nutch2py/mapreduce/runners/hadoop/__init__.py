"""Hadoop YARN: client, package archive, locality and error translation.

Exports: ``hadoop_client.HadoopClient``, ``hadoop_runner.HadoopRunner``, ``package_archive.check_package``.
"""
