"""Files of the state directory that older versions wrote are read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nutch2py.rest.context import RestContext
from tests.rest.conftest import settings

JOB_ID = "1700000000000-abcdef"
OLD_JOB = {
    "id": JOB_ID, "job": "fetch", "crawlId": "c", "configuration": "default", "words": ["fetch", "-all"],
    "properties": {}, "args": {"batch": "-all"}, "by": "alice", "schedule": "nightly", "begun": 1_700_000_000_000,
}  # fmt: skip
OLD_SCHEDULE = {
    "id": "nightly", "cron": "30 4 * * *", "job": {"job": "readdb", "crawlId": "c", "by": ["host"], "most": 5},
    "enabled": True, "by": "alice", "next": None,
}  # fmt: skip


def test_old_job_file_is_read(tmp_path: Path) -> None:
    context = RestContext(settings(tmp_path), is_local=True)
    folder = context.jobs.jobs_dir / JOB_ID
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps(OLD_JOB))
    (folder / "lock").touch()
    (folder / "exit").write_text("0\n")
    (job,) = context.jobs.all()
    assert (job.state, job.exit_code, job.command_args, job.nutch_args) == (
        "finished", 0, ["fetch", "-all"], {"batch": "-all"},
    )  # fmt: skip
    assert (job.requested_by, job.schedule, job.start_time) == ("alice", "nightly", 1_700_000_000_000)
    context.jobs.prune()
    assert folder.exists()


def test_old_schedule_file_is_read_and_due(tmp_path: Path) -> None:
    context = RestContext(settings(tmp_path), is_local=True)
    folder = context.schedules.directory
    folder.mkdir(parents=True)
    (folder / "nightly.json").write_text(json.dumps(OLD_SCHEDULE))
    (stored,) = context.schedules.all()
    assert (stored.created_by, stored.job.command_args()) == (
        "alice", ["readdb", "-stats", "-by", "host", "-most", "5"],
    )  # fmt: skip
    (started,) = context.scheduler.tick(datetime.now(UTC) + timedelta(days=1))
    context.jobs.abort(started.id)
    assert (started.requested_by, started.schedule) == ("alice", "nightly")
    context.schedules.put(stored.id, stored)
    assert json.loads((folder / "nightly.json").read_text())["createdBy"] == "alice"
    assert context.schedules.get("nightly") == stored
