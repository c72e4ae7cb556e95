"""Runs jobs on Spark, through mrjob's Spark runner, on this machine's cores (``local[N]``).

Replaces what mrjob 0.7.4 does not support on Spark (input formats, task directories with files, properties in the
environment): one file per split, absolute paths, parameters in the configuration file. A cluster master is rejected:
use YARN for clusters.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, NutchError
from nutch2py.mapreduce import NLINE_INPUT_FORMAT
from nutch2py.mapreduce.runners import client_watchdog
from nutch2py.mapreduce.runners.job_dir import add_java_tmpdir
from nutch2py.mapreduce.runners.mrjob_compat import JobKeyMixin, mrjob_importable
from nutch2py.support.invariants import not_none
from nutch2py.support.log_file import log_job_environment

with mrjob_importable():
    from mrjob.logs.spark import _parse_spark_log
    from mrjob.spark.runner import SparkMRJobRunner


def spark_arguments(conf: Configuration, work: Path) -> list[str]:
    """Return the arguments for mrjob; raise for unsupported masters and Python versions."""
    master = conf.get_trimmed("mapreduce.spark.master", "local[*]")
    if master != "local" and not master.startswith("local["):
        raise ConfigurationError(
            f"mapreduce.spark.master is {master!r}: jobs run on Spark with local, local[N] or local[*] only; "
            "for a cluster use -r hadoop"
        )
    submit = find_spark_submit()
    if sys.version_info >= (3, 13):
        raise ConfigurationError(
            "jobs run on Spark with Python 3.11 or 3.12, and this is Python "
            f"{sys.version_info[0]}.{sys.version_info[1]}: use one of those, or run with -r local or -r hadoop"
        )
    return [
        *("--spark-master", master, "--spark-submit-bin", submit, "--spark-tmp-dir", str(work / "spark")),
        *("--python-bin", sys.executable, "--no-read-logs"),
    ]


def find_spark_submit() -> str:
    """Return the program spark-submit of SPARK_HOME, of the package pyspark or of PATH."""
    home = os.environ.get("SPARK_HOME")
    specification = importlib.util.find_spec("pyspark")
    if home:
        found = Path(home, "bin", "spark-submit")
        if not found.is_file():
            raise ConfigurationError(f"SPARK_HOME is {home}, where bin/spark-submit is not: correct it, or unset it")
        return str(found)
    if specification is not None and specification.origin is not None:
        return str(Path(specification.origin).parent / "bin" / "spark-submit")
    raise ConfigurationError(
        "there is no Spark here: install it with pip install 'nutch2py[spark]' (it needs Java 17), or set SPARK_HOME"
    )


class SparkRunner(JobKeyMixin, SparkMRJobRunner):  # type: ignore[misc]
    """Runs steps in one Spark application; the driver sets ``reduce_tasks`` before the run."""

    reduce_tasks = 1
    last_error_line = ""

    def __init__(self, **options: object) -> None:
        if options.get("hadoop_input_format") == NLINE_INPUT_FORMAT:
            options["hadoop_input_format"] = None  # mrjob's harness fails on it
        super().__init__(**options)

    def _get_input_paths(self) -> list[str]:
        """Return a file for each line of the input: Spark runs one task per file."""
        folder = Path(self._get_local_tmp_dir(), "splits")
        if not folder.exists():
            folder.mkdir(parents=True)
            for path in super()._get_input_paths():
                for number, line in enumerate(Path(path).read_bytes().splitlines(keepends=True)):
                    (folder / f"{number:06d}").write_bytes(line)
        return [str(folder)]

    def _jobconf_for_step(self, step_num: int) -> dict[str, str]:
        jobconf: dict[str, str] = super()._jobconf_for_step(step_num)
        return {**jobconf, "mapreduce.job.reduces": str(self.reduce_tasks)}

    def _run_spark_submit(
        self, spark_submit_args: list[str], env: dict[str, str], record_callback: object
    ) -> tuple[int, dict[str, object]]:
        """Run Spark under the watchdog, which stops it when this process exits."""
        if shutil.which("java") is None and "JAVA_HOME" not in env:
            raise ConfigurationError("Spark needs Java, and there is no java on the PATH: install a JDK 17")
        command = [sys.executable, "-S", "-E", client_watchdog.__file__, "--", *spark_submit_args]
        scratch = self._get_local_tmp_dir()
        environment = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": scratch, **env, **log_job_environment()}
        environment["SPARK_SUBMIT_OPTS"] = add_java_tmpdir(env.get("SPARK_SUBMIT_OPTS", ""), scratch)
        process = subprocess.Popen(  # noqa: S603 - no shell; the configured spark-submit
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        stdin, stdout = not_none(process.stdin, "stdin"), not_none(process.stdout, "stdout")
        lines: list[bytes] = []
        try:
            for line in stdout:
                lines.append(line)
                if b"Error" in line or b"Exception" in line:
                    self.last_error_line = line.decode("utf-8", "replace").strip()
            code = process.wait()
        finally:
            stdin.close()
            stdout.close()
            process.wait()
        return code, _parse_spark_log(lines)

    def explain(self, error: Exception) -> NutchError:
        """Return why the application failed, if no task reported an error."""
        return NutchError(f"the job failed on Spark: {self.last_error_line or error}")
