"""The file in which the driver passes properties, directories and parameters to its tasks."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.job_parameters import JobParameters


class JobFile(msgspec.Struct):
    """Contents of the job file. ``parameters``: those of the job, as JSON of its ``parameters_class``.

    ``base_dir``: the directory that relative paths start from: the driver's working directory. ``channel_dir``: the
    directory through which tasks report to the driver, "" if there is none; ``driver_pid``: its process id, 0 when it
    is on another machine. ``lock_token``: the token of the lock under which tasks write, "" for none. ``crawl_clock``:
    time of the crawl's clock when the job started.
    """

    properties: dict[str, str]
    conf_dirs: list[str]
    parameters: msgspec.Raw
    runner: str
    base_dir: str
    channel_dir: str = ""
    driver_pid: int = 0
    lock_token: str = ""
    crawl_clock: int = 0

    @classmethod
    def from_conf(cls, conf: Configuration, parameters: JobParameters, runner: str) -> JobFile:
        """Build the contents: every property, with environment variables expanded as for the driver."""
        properties = {
            name: conf.get(name, "") if "${env." in value else value for name, value in conf.raw_properties().items()
        }
        encoded = msgspec.Raw(msgspec.json.encode(parameters))
        return cls(properties, [str(folder) for folder in conf.conf_dirs], encoded, runner, str(conf.base_dir))

    def write(self, path: Path) -> None:
        """Write the file, readable by its owner only, because it may contain passwords."""
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(msgspec.json.encode(self))


@lru_cache(maxsize=8)
def read_job_file(path: str) -> tuple[JobFile, Configuration]:
    """Return the contents of a job file, and the configuration of its properties."""
    file = msgspec.json.decode(Path(path).read_bytes(), type=JobFile)
    folders = [Path(folder).absolute() for folder in file.conf_dirs]
    return file, Configuration(file.properties, folders, Path(file.base_dir))
