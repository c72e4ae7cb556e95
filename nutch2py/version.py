"""The version of the package, beneath everything else, and those of what it stands on."""

from __future__ import annotations

__version__ = "0.1.0"


def component_versions() -> dict[str, str | None]:
    """Return the versions of the program, Python, the system, and every library that it names; None: not there."""
    import platform
    from importlib import metadata

    from packaging.requirements import Requirement

    found: dict[str, str | None] = {
        "nutch2py": __version__,
        "Python": platform.python_version(),
        "system": platform.platform(),
    }
    for line in metadata.requires("nutch2py") or ():
        name = Requirement(line).name
        try:
            library = metadata.distribution(name)
            found[library.name] = library.version
        except metadata.PackageNotFoundError:
            found[name] = None
    return found
