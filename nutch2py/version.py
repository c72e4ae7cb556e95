"""The version of the package, and the versions of its dependencies."""

from __future__ import annotations

__version__ = "0.1.0"


def component_versions() -> dict[str, str | None]:
    """Return the versions of the program, Python, the system, and all dependencies; None: not installed."""
    import platform
    from importlib import metadata

    from packaging.requirements import Requirement

    versions: dict[str, str | None] = {
        "nutch2py": __version__,
        "Python": platform.python_version(),
        "system": platform.platform(),
    }
    for line in metadata.requires("nutch2py") or ():
        name = Requirement(line).name
        try:
            library = metadata.distribution(name)
            versions[library.name] = library.version
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions
