"""Parameters of jobs: typed, checked where they are made, the same in every task, out of reach of -D."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from pathlib import Path

import pytest

import nutch2py.jobs
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import UsageError
from nutch2py.jobs.fetch.fetch_job import FetchParameters
from nutch2py.jobs.index.index_job import IndexParameters
from nutch2py.mapreduce.driver import run_job
from nutch2py.mapreduce.input_splits import FileSplit
from nutch2py.mapreduce.job_file import JobFile, read_job_file
from nutch2py.mapreduce.job_parameters import BatchParameters, JobParameters
from nutch2py.mapreduce.table_job import TableJob
from tests.conftest import ROOT
from tests.mapreduce.tinyjobs import AskedJob, AskedParameters
from tests.test_docs import DEFAULTS, accesses


def jobs() -> Iterator[type[TableJob]]:
    """Yield every job of the package."""
    for module in pkgutil.walk_packages(nutch2py.jobs.__path__, "nutch2py.jobs."):
        importlib.import_module(module.name)
    waiting = [TableJob]
    while waiting:
        job = waiting.pop()
        waiting += job.__subclasses__()
        if job.__module__.startswith("nutch2py.jobs."):
            yield job


def test_every_job_names_frozen_dataclass_parameters() -> None:
    found = list(jobs())
    assert len(found) > 12
    for job in found:
        assert issubclass(job.parameters_class, JobParameters), job
        assert is_dataclass(job.parameters_class)
        assert job.parameters_class.__dataclass_params__.frozen, job
    assert {job.__name__ for job in found if job.parameters_class is JobParameters} == {
        "BulkDeleteJob", "HostGraphJob", "HostInjectorJob", "_DedupJobBase", "DeduplicationJob", "NearDuplicatesJob",
        "ScoresJob", "BaseIndexJob",
    }  # fmt: skip


def test_jobs_set_only_documented_properties() -> None:
    assert not [access for access in accesses() if access.getter.startswith("set") and access.name not in DEFAULTS]


def test_missing_batch_id_is_rejected() -> None:
    with pytest.raises(UsageError, match="no batch given"):
        BatchParameters(batch_id="")
    asked = FetchParameters(batch_id="b")
    with pytest.raises(FrozenInstanceError):
        asked.batch_id = "c"  # type: ignore[misc]
    assert (asked.batch_label, JobParameters().batch_label) == ("b", "")
    assert [IndexParameters(batch_id=each).is_all_batches for each in ("b", "-all", "-reindex")] == [False, True, True]


def parameters() -> set[type[JobParameters]]:
    return {job.parameters_class for job in jobs()}


def of_numbers(takes: type[JobParameters]) -> dict[str, str]:
    return {each.name: str(each.type) for each in fields(takes) if re.search(r"\b(int|float)\b", str(each.type))}


def made(takes: type[JobParameters], **changes: object) -> JobParameters:
    needed = {"batch_id": "b", **dict.fromkeys(of_numbers(takes), 1), **changes}
    return takes(**{each.name: needed[each.name] for each in fields(takes) if each.name in needed})


def test_every_numeric_parameter_has_a_range() -> None:
    """But the end of a fetch, which may be none."""
    for takes in parameters():
        assert set(of_numbers(takes)) - {"deadline"} == set(takes.ranges), takes


@pytest.mark.parametrize("takes", sorted(parameters(), key=lambda takes: takes.__name__))
def test_parameter_out_of_range_is_rejected(takes: type[JobParameters]) -> None:
    for name, allowed in takes.ranges.items():
        for number in (allowed.low, allowed.high):
            made(takes, **{name: number})
        for number in (allowed.low - 1, allowed.high * 2 + 1, float("nan"), "1", None, True):
            with pytest.raises(UsageError, match=f"^{name} is "):
                made(takes, **{name: number})


@pytest.mark.parametrize("wrong", [{"deadline": -1.0}, {"deadline": float("nan")}])
def test_contradictory_fetch_parameters_are_rejected(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(wrong))} is "):
        made(FetchParameters, **wrong)


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_tasks_receive_parameters(conf: Configuration, tmp_path: Path, runner: str) -> None:
    text = tmp_path / "text"
    text.write_text("x\n")
    conf.set("mapreduce.runner", runner)
    conf.set("asked.word", "a property of the same name")
    asked = AskedParameters(batch_id="é\t1", word="ä|\n", numbers=(1, 2**53), share=0.1, nothing=None)
    result = run_job(AskedJob, conf, [FileSplit(str(text), 0, 2, 0)], asked, title="AskedJob")
    assert result.output == [("asked", ["é\t1", "ä|\n", [1, 2**53], 0.1, None])]


def test_wrong_parameter_class_is_rejected(conf: Configuration, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="AskedJob takes AskedParameters, not FetchParameters"):
        run_job(AskedJob, conf, [FileSplit("x", 0, 1, 0)], FetchParameters(batch_id="b"), title="AskedJob")


def test_job_file_is_readable_by_owner_only(conf: Configuration, tmp_path: Path) -> None:
    conf.set("mapreduce.package", "${env.HOME}/package")
    path = tmp_path / "file.json"
    JobFile.from_conf(conf, FetchParameters(batch_id="b", threads=3), "local").write(path)
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    file, read = read_job_file(str(path))
    assert (file.runner, file.driver_pid, file.channel_dir) == ("local", 0, "")
    assert read.raw_properties() == conf.raw_properties() | {"mapreduce.package": f"{os.environ['HOME']}/package"}


@dataclass(frozen=True, kw_only=True)
class Words(JobParameters):
    words: tuple[str, ...] = ()


class Base(TableJob[Words]):
    pass


class Derived(Base):
    pass


def test_derived_job_takes_parameters_of_base() -> None:
    assert Derived.parameters_class is Words


def test_batch_id_documentation_names_existing_functions() -> None:
    """docs/design/jobs.md follows a batch id from the command to the row."""
    text = (ROOT / "docs" / "design" / "jobs.md").read_text(encoding="utf-8")
    walk = text.partition("## The walk of a batch ID")[2].partition("\n#")[0]
    steps = [line for line in walk.splitlines() if line[:1].isdigit()]
    assert len(steps) == 10
    for step in steps:
        name = step.partition("`")[2].partition("`")[0]
        module, _, attribute = name.partition(":")
        found: object = importlib.import_module(f"nutch2py.{module}")
        for part in attribute.split("."):
            found = getattr(found, part)
