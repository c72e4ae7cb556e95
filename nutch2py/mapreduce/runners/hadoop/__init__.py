"""Hadoop YARN: client, package archive, locality and error translation."""
