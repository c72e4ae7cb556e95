"""The file by which a driver hands its tasks what they work with: properties, folders, parameters."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import msgspec

from nutch2py.conf.configuration import Configuration
from nutch2py.mapreduce.job_parameters import JobParameters


class JobFile(msgspec.Struct):
    """What the driver hands to tasks in a file. ``parameters``: those of the job, as JSON that ``takes`` decodes.

    ``base_dir``: the folder that relative paths start from, which the driver was started in. ``channel_dir``: the folder
    through which tasks talk to the driver, "" where they cannot; ``driver_pid``: its process id, 0 when it is on another
    machine. ``lock_token``: the token of the lock under which they write, "" for none.
    ``crawl_clock``: of the crawl, when the job began.
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
        """Return what tasks are handed: every property, with what comes from the environment as the driver has it."""
        properties = {
            name: conf.get(name, "") if "${env." in value else value for name, value in conf.raw_properties().items()
        }
        encoded = msgspec.Raw(msgspec.json.encode(parameters))
        return cls(properties, [str(folder) for folder in conf.conf_dirs], encoded, runner, str(conf.base_dir))

    def write(self, path: Path) -> None:
        """Write the file; only its owner can read it, for it may hold passwords."""
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(msgspec.json.encode(self))


@lru_cache(maxsize=8)
def read_job_file(path: str) -> tuple[JobFile, Configuration]:
    """Return what a file holds, and the configuration of its properties."""
    file = msgspec.json.decode(Path(path).read_bytes(), type=JobFile)
    folders = [Path(folder).absolute() for folder in file.conf_dirs]
    return file, Configuration(file.properties, folders, Path(file.base_dir))
