"""Which class of mrjob's runs a job; each is imported when it is needed, for a task needs none of them."""

from __future__ import annotations

from typing import Any


def runner_class(name: str | None) -> type[Any]:
    """Return the class of a runner by its name; each brings half of mrjob with it."""
    match name:
        case None | "inline":
            from nutch2py.mapreduce.runners import InlineRunner

            return InlineRunner
        case "local":
            from nutch2py.mapreduce.runners import LocalRunner

            return LocalRunner
        case "hadoop":
            from nutch2py.mapreduce.yarn import HadoopRunner

            return HadoopRunner
        case _:
            from nutch2py.mapreduce.spark import SparkRunner

            return SparkRunner
