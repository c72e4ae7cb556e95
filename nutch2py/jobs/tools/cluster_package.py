"""Commands that build and clean up the package archive for cluster nodes."""

from __future__ import annotations

from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.runners.hadoop import package_archive as archive
from nutch2py.mapreduce.runners.hadoop.hadoop_client import MIN_CLEANUP_AGE, HadoopClient


def build_package(conf: Configuration, path: Path | None = None) -> int:
    """Build the archive at ``path``, by default at ``mapreduce.package``; print its contents."""
    if path is not None:
        conf = conf.copy()
        conf.set("mapreduce.package", str(path.absolute()))
    target, manifest = archive.write_package_archive(conf)
    size = target.stat().st_size / 1e6
    print(
        f"package: {target} ({size:.0f} MB): nutch2py {manifest.version}, {len(manifest.libraries)} libraries, "
        f"{len(manifest.conf_files)} configuration files, for Python {manifest.python} on {manifest.platform}"
    )
    return 0


def clean_packages(conf: Configuration) -> int:
    """Delete archives of other versions than ``mapreduce.package`` and leftovers of dead jobs from HDFS."""
    client = HadoopClient.from_conf(conf)
    deleted, recent = client.clean_hdfs_dir(archive.read_manifest(archive.archive_path(conf)))
    for name in deleted:
        print(f"package: deleted {client.hdfs_dir}/{name}")
    if recent:
        print(
            f"package: {len(recent)} of the last {MIN_CLEANUP_AGE / 60:.0f} minutes stay: a starting job may need them"
        )
    print(f"package: {len(deleted)} deleted from {client.hdfs_dir}")
    return 0
