"""The package: what a cluster's nodes run."""

from __future__ import annotations

from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.runners.hadoop import package_archive as archive
from nutch2py.mapreduce.runners.hadoop.hadoop_client import MIN_CLEANUP_AGE, HadoopClient


def build_package(conf: Configuration, path: Path | None = None) -> int:
    """Make the archive at ``path``, else at ``mapreduce.package``; print what is in it."""
    if path is not None:
        conf = conf.copy()
        conf.set("mapreduce.package", str(path.absolute()))
    target, manifest = archive.build_package(conf)
    size = target.stat().st_size / 1e6
    print(
        f"package: {target} ({size:.0f} MB): nutch2py {manifest.version}, {len(manifest.libraries)} libraries, "
        f"{len(manifest.conf_files)} configuration files, for Python {manifest.python} on {manifest.platform}"
    )
    return 0


def clean_packages(conf: Configuration) -> int:
    """Delete from HDFS the archives of other versions than that at ``mapreduce.package``, and what dead jobs left."""
    installation = HadoopClient.from_conf(conf)
    gone, young = installation.clean_hdfs_dir(archive.read_manifest(archive.archive_path(conf)))
    for name in gone:
        print(f"package: deleted {installation.hdfs_dir}/{name}")
    if young:
        print(
            f"package: {len(young)} of the last {MIN_CLEANUP_AGE / 60:.0f} minutes stay: a job may be about to use them"
        )
    print(f"package: {len(gone)} deleted from {installation.hdfs_dir}")
    return 0
