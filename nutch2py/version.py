"""The version of the package, beneath everything else."""

__version__ = "0.1.0"
