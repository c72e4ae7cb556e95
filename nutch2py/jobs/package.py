"""The package: what a cluster's nodes run."""

from __future__ import annotations

from pathlib import Path

from nutch2py.conf import Configuration
from nutch2py.mapreduce import archive


def package(conf: Configuration, path: Path | None = None) -> int:
    """Make the archive at ``path``, else at ``mapreduce.package``; print what is in it."""
    if path is not None:
        conf = conf.copy()
        conf.set("mapreduce.package", str(path.absolute()))
    target, manifest = archive.build(conf)
    size = target.stat().st_size / 1e6
    print(
        f"package: {target} ({size:.0f} MB): nutch2py {manifest.version}, {len(manifest.libraries)} libraries, "
        f"{len(manifest.files)} configuration files, for Python {manifest.python} on {manifest.platform}"
    )
    return 0
